"""Detect a text in an unexpected language, of those of the shipped models, by its most common words."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from attention_atlas.model.files import read_json

ENOUGH_WORDS = 4  # in which a single common word decides


@cache
def common_words() -> dict[str, frozenset[str]]:
    """Return the most common words of each language that are at least ten times as common as in both others.

    They were counted in captions, everyday sentences and news.
    """
    words = read_json(Path(__file__).with_name("common_words.json"))
    return {language: frozenset(common) for language, common in words.items()}


def other_language(text: str, expected: str) -> str | None:
    """Return the language that a text is in if that is clearly not the expected one, else None.

    A text is in another language if at least two more of its words are common there than in the expected language, or
    if it has at least four words, of which one is common there and none in the expected language. None also if
    there are no common words of `expected`.
    """
    if expected not in common_words():
        return None
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {language: sum(word in common for word in words) for language, common in common_words().items()}
    expected_count = counts.pop(expected)
    language = max(counts, key=counts.__getitem__)
    is_clear = counts[language] >= expected_count + 2 or (
        expected_count == 0 < counts[language] and len(words) >= ENOUGH_WORDS
    )
    return language if is_clear else None
