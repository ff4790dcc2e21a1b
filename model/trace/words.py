"""Which pieces make a word. Importable without torch."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.tokens import Token, is_byte, is_symbol

SPACE = "\u2581"  # how SentencePiece writes a space
STOPS, WIDE_STOPS = (".", "!", "?", "…"), ("。", "！", "？")  # the latter stand in scripts without spaces
CLOSING = "\"'”’»«“)]」』"


def word_groups(tokens: Sequence[str]) -> Groups:
    """Positions grouped into whole words, in order; every position is in exactly one group. Which tokens make a word
    is their tokenizer's decision, kept in the tokens; if it is not, words_by_spaces() decides."""
    numbers = [getattr(token, "word", None) for token in tokens]
    if None in numbers:
        return words_by_spaces(tokens)
    starts = [i for i, number in enumerate(numbers) if i == 0 or number != numbers[i - 1]]
    return tuple(tuple(range(start, end)) for start, end in zip(starts, [*starts[1:], len(numbers)]))


def in_words(tokens: Sequence[Token], groups: Groups) -> tuple[Token, ...]:
    """The same tokens, each with the number of its word."""
    return tuple(Token(tokens[i], tokens[i].kind, number) for number, group in enumerate(groups) for i in group)


def words_by_spaces(tokens: Sequence[str]) -> Groups:
    """The grouping of languages that put spaces between words, for pieces that carry SentencePiece's space mark.

    A word is what stands between spaces. Special symbols stand alone, and so does the punctuation that ends a word:
    attention to a full stop is not attention to the word before it. Punctuation inside a word ("don't") stays in it.
    """
    groups: list[list[int]] = []
    for i, token in enumerate(tokens):
        alone = is_symbol(token) or (i > 0 and is_symbol(tokens[i - 1]))
        if i == 0 or alone or token.startswith(SPACE):
            groups.append([])
        groups[-1].append(i)
    return tuple(part for group in groups for part in _without_final_punctuation(tokens, group))


def sentence_ends(tokens: Sequence[str]) -> tuple[int, ...]:
    """Positions of the tokens after which another sentence begins: of a document one less than it has sentences. As far
    as punctuation tells: what ends in a full stop, or a mark like it, before a space or, in scripts without, before
    anything, with the closing quotes and brackets after it; "z. B." then ends one, too."""
    texts = ["" if is_symbol(token) else token.removeprefix(SPACE) for token in tokens]
    found = []
    for i, text in enumerate(texts[:-1]):
        bare = text.rstrip(CLOSING)
        before = next((one.rstrip(CLOSING) for one in reversed(texts[:i]) if one.rstrip(CLOSING)), "")
        ended = (bare or before).endswith((*STOPS, *WIDE_STOPS)) and (bare or i) and text
        wide = (bare or before).endswith(WIDE_STOPS)
        after = tokens[i + 1]
        if ended and texts[i + 1] and (after.startswith(SPACE) or (wide and texts[i + 1].strip(CLOSING))):
            found.append(i)
    return tuple(found)


def _without_final_punctuation(tokens: Sequence[str], group: list[int]) -> list[tuple[int, ...]]:
    end = len(group)
    while end > 0 and is_punctuation(tokens[group[end - 1]]):
        end -= 1
    if end in (0, len(group)):
        return [tuple(group)]
    return [tuple(group[:end]), tuple(group[end:])]


def is_punctuation(token: str) -> bool:
    """Whether a piece is punctuation alone, with or without the space before it."""
    text = token.removeprefix(SPACE)
    return _are_marks(text) and not is_symbol(token) and not is_byte(token)


@lru_cache(maxsize=1 << 14)
def _are_marks(text: str) -> bool:
    return bool(text) and all(unicodedata.category(c)[0] == "P" for c in text)
