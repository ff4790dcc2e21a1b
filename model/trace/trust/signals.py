"""Signals, each a number of one translation, larger where more speaks against it; and baselines that need no model.
Imports no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.tokens import is_symbol

HALLUCINATION, OMISSION, REPETITION = "hallucination", "omission", "repetition"


@dataclass(frozen=True, eq=False)
class Reading:
    """What signals are read from. log_probability, without_source: natural, of each target token [target], the second
    under an empty source; share: how much of each row came from the source [target], 0 to 1; columns: what each source
    token gave to all rows together [source] (both ALTI+, Ferrando et al. 2022); source, target: the tokens."""

    log_probability: np.ndarray
    without_source: np.ndarray
    share: np.ndarray
    columns: np.ndarray
    source: Sequence[str]
    target: Sequence[str]


def _by_word(values: np.ndarray, tokens: Sequence[str], total: Callable) -> np.ndarray:
    return np.array([total(values[list(group)]) for group in content_words(tokens)])


def _least(values: np.ndarray, tokens: Sequence[str]) -> tuple[int, ...]:
    """The positions of the word with the smallest mean."""
    words = content_words(tokens)
    return tuple(words[int(_by_word(values, tokens, np.mean).argmin())]) if words else ()


def _coverage(reading: Reading) -> np.ndarray:
    """What each source word gave, as a share of what a word gives on average; nothing where there are no words."""
    given = _by_word(reading.columns, reading.source, np.sum)
    return given * len(given) / max(1, len(content_words(reading.target)))


def _unread(reading: Reading) -> float:
    return float(np.maximum(0.0, 1.0 - _coverage(reading)).mean()) if content_words(reading.source) else 0.0


def _again(reading: Reading) -> tuple[int, ...]:
    """Target positions that repeat a sequence of two or more tokens, more often than the source repeats its own."""
    return tuple(_repeating(reading.target)[len(_repeating(reading.source)) :])


def _repeating(tokens: Sequence[str]) -> list[int]:
    seen, found = set(), set()
    for at in range(len(tokens) - 1):
        pair = tuple(tokens[at : at + 2])
        if pair in seen and not all(map(is_symbol, pair)):
            found |= {at, at + 1}
        seen.add(pair)
    return sorted(found)


@dataclass(frozen=True)
class Signal:
    """of: what it is to find; measure: its value; place: the positions that it points at, of the source where
    in_source, else of the target."""

    of: str
    measure: Callable[[Reading], float]
    place: Callable[[Reading], tuple[int, ...]]
    in_source: bool = False


SIGNALS: Mapping[str, Signal] = {
    "unsure": Signal(
        HALLUCINATION,
        lambda r: -float(r.log_probability.mean()),
        lambda r: _least(r.log_probability, r.target),
    ),
    "unmoved": Signal(
        HALLUCINATION,
        lambda r: -float((r.log_probability - r.without_source).mean()),
        lambda r: _least(r.log_probability - r.without_source, r.target),
    ),
    "detached": Signal(
        HALLUCINATION,
        lambda r: 1.0 - float(r.share.mean()),
        lambda r: _least(r.share, r.target),
    ),
    "unread": Signal(OMISSION, _unread, lambda r: _least(r.columns, r.source), in_source=True),
    "repeated": Signal(REPETITION, lambda r: len(_again(r)) / max(1, len(r.target)), _again),
}


def baselines(source: str, target: str) -> dict[str, float]:
    """What needs no model, of two texts: a target that is short, one of unusual length, and how often its most frequent
    pair of words comes back, less the source's (as Guerreiro et al. 2023 count oscillations)."""
    lengths = [max(1, len(text)) for text in (source, target)]
    ratio = float(np.log(lengths[1] / lengths[0]))
    return {"short": -ratio, "length": abs(ratio), "bigrams": float(_most(target) - _most(source))}


def _most(text: str) -> int:
    words = text.lower().split()
    return max(Counter(pairwise(words)).values(), default=0)
