"""Typing errors in sources: lower case, no end mark, a mistyped letter."""

from __future__ import annotations

import numpy as np

_END_MARKS = ".!?"
SLIPS = 0.4  # the share of hurried sentences that have one; the others lack capitals, an end mark or both


def hurried(sentence: str, random: np.random.Generator) -> str:
    """Return the sentence with a mistyped word, in lower case, without its end mark, or both of the latter; unchanged
    if nothing applies."""
    if random.random() < SLIPS:
        return _slipped(sentence, random)
    kind = random.integers(3)  # 0: no capitals; 1: no end mark; 2: neither
    if kind > 0 and sentence[-1:] in _END_MARKS and sentence[-2:-1].isalnum():
        sentence = sentence[:-1]
    return sentence if kind == 1 else sentence.lower()


def _slipped(sentence: str, random: np.random.Generator) -> str:
    """Omit, double or swap one letter within a word of at least four letters."""
    words = sentence.split(" ")
    long = [number for number, word in enumerate(words) if len(word) > 3 and word.isalpha()]
    if not long:
        return sentence
    number = long[random.integers(len(long))]
    word = words[number]
    at = int(random.integers(1, len(word) - 1))  # the first letter stays, and something stands behind it
    words[number] = (
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    )[random.integers(3)]
    return " ".join(words)
