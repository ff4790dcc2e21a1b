"""Which tokens make a word, which are punctuation, and where a sentence ends."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.tokens import Token, is_byte, is_symbol

SPACE = "\u2581"  # how SentencePiece writes a space
STOPS, WIDE_STOPS = (".", "!", "?", "…"), ("。", "！", "？")  # wide ones are used by scripts without spaces
CLOSING = "\"'”’»«“)]」』"


def word_groups(tokens: Sequence[str]) -> Groups:
    """Group token positions into words, in order; each position is in exactly one group.

    The tokens' word numbers, which their tokenizer assigned, decide; without them, words_by_spaces() does.
    """
    numbers = [getattr(token, "word", None) for token in tokens]
    if None in numbers:
        return words_by_spaces(tokens)
    starts = [i for i, number in enumerate(numbers) if i == 0 or number != numbers[i - 1]]
    return tuple(tuple(range(start, end)) for start, end in zip(starts, [*starts[1:], len(numbers)]))


def spell_word(tokens: Sequence[str], group: Iterable[int]) -> str:
    """Return the tokens of a word as one text, without space marks. Bytes become the characters that they spell."""
    parts = (bytes.fromhex(tokens[i][3:5]) if is_byte(tokens[i]) else tokens[i].encode() for i in group)
    return b"".join(parts).decode(errors="replace").replace(SPACE, "")


def number_words(tokens: Sequence[Token], groups: Groups) -> tuple[Token, ...]:
    """Return the tokens with the number of their group as their word."""
    return tuple(Token(tokens[i], tokens[i].kind, number) for number, group in enumerate(groups) for i in group)


def words_by_spaces(tokens: Sequence[str]) -> Groups:
    """Group token positions into words at SentencePiece's space mark.

    Symbols stand alone. So does punctuation at the end of a word, since attention to a full stop is not attention to
    the word before it; punctuation inside a word ("don't") stays in it.
    """
    groups: list[list[int]] = []
    for i, token in enumerate(tokens):
        stands_alone = is_symbol(token) or (i > 0 and is_symbol(tokens[i - 1]))
        if i == 0 or stands_alone or token.startswith(SPACE):
            groups.append([])
        groups[-1].append(i)
    parts = []
    for group in groups:
        end = len(group)
        while end > 0 and is_punctuation(tokens[group[end - 1]]):
            end -= 1
        parts += [part for part in (tuple(group[:end]), tuple(group[end:])) if part]
    return tuple(parts)


def sentence_ends(tokens: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of tokens after which another sentence begins.

    A sentence ends with a full stop or a similar mark, and the closing quotes and brackets after it, before a space or,
    in scripts without spaces, before anything. An abbreviation such as "z. B." is taken for an end, too.
    """
    texts = ["" if is_symbol(token) else token.removeprefix(SPACE) for token in tokens]
    ends = []
    for i, text in enumerate(texts[:-1]):
        bare = text.rstrip(CLOSING)
        before = next((earlier.rstrip(CLOSING) for earlier in reversed(texts[:i]) if earlier.rstrip(CLOSING)), "")
        is_stop = (bare or before).endswith((*STOPS, *WIDE_STOPS)) and (bare or i) and text
        is_wide = (bare or before).endswith(WIDE_STOPS)
        after = tokens[i + 1]
        if is_stop and texts[i + 1] and (after.startswith(SPACE) or (is_wide and texts[i + 1].strip(CLOSING))):
            ends.append(i)
    return tuple(ends)


def is_punctuation(token: str) -> bool:
    """Whether a token is punctuation only, with or without a space before it."""
    return _are_marks(token.removeprefix(SPACE)) and not is_symbol(token) and not is_byte(token)


@lru_cache(maxsize=1 << 14)
def _are_marks(text: str) -> bool:
    return bool(text) and all(unicodedata.category(c)[0] == "P" for c in text)
