"""Tokens: pieces of a vocabulary with the facts that their tokenizer knows about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from operator import index
from typing import Any

from attention_atlas.model.trace import check_integer, check_sequence
from attention_atlas.model.trace.language import Refusal


class TokenKind(str, Enum):
    """The kinds of pieces in a vocabulary."""

    TEXT = "text"
    SYMBOL = "symbol"  # begin, end, padding, unknown, or a language: no text can become one
    BYTE = "byte"  # one byte of a character that the vocabulary cannot spell
    PREFIX = "prefix"  # part of a task description such as "translate English to German:", not of the text


class Token(str):
    """A piece of the vocabulary, with its kind and the number of its word in the sentence (None: unknown).

    It equals the same piece as a plain string, which counts as text: a text may contain "<s>".
    """

    __slots__ = ("kind", "word")  # a vocabulary has 256,000 of them
    kind: TokenKind
    word: int | None

    def __new__(cls, piece: str, kind: TokenKind = TokenKind.TEXT, word: int | None = None) -> Token:
        token = super().__new__(cls, piece)
        token.kind = kind if type(kind) is TokenKind else TokenKind(kind)  # five times as fast as calling the enum
        token.word = word
        return token


def is_byte(token: str) -> bool:
    """Whether a token is one byte of a character that the vocabulary cannot spell."""
    return getattr(token, "kind", None) is TokenKind.BYTE


def is_symbol(token: str) -> bool:
    """Whether a token is not part of the text: a control symbol or part of the task prefix."""
    return getattr(token, "kind", None) in (TokenKind.SYMBOL, TokenKind.PREFIX)


def is_prefix(token: str) -> bool:
    """Whether a token belongs to the prefix that names the model's task."""
    return getattr(token, "kind", None) is TokenKind.PREFIX


def tokens_from_spelling(pieces: Iterable[str]) -> tuple[Token, ...]:
    """Infer the kinds of tokens from their spelling in this project's own vocabularies, for old files without facts."""
    return tuple(Token(piece, _kind_from_spelling(piece)) for piece in pieces)


def facts_to_plain(tokens: Iterable[str]) -> dict:
    """Convert the facts about tokens to JSON-ready data: kinds as one letter each (t, s, b, p), words as numbers."""
    tokens = tuple(tokens)
    return {
        "kinds": "".join([getattr(token, "kind", TokenKind.TEXT)[0] for token in tokens]),
        "words": [getattr(token, "word", None) for token in tokens],
    }


def tokens_from_facts(pieces: Sequence[str], facts: Any) -> tuple[Token, ...]:
    """Make tokens of pieces and the result of facts_to_plain(). ValueError if it does not fit the pieces."""
    kinds = {kind[0]: kind for kind in TokenKind}
    try:
        return tuple(
            Token(piece, kinds[letter], None if word is None else check_integer("word", word))
            for piece, letter, word in zip(pieces, facts["kinds"], facts["words"], strict=True)
        )
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"facts of {len(pieces)} tokens cannot be read: {facts!r:.200}") from error


def _kind_from_spelling(piece: str) -> TokenKind:
    if piece in ("<s>", "</s>", "<pad>", "<unk>") or (
        piece.startswith("<2") and piece.endswith(">") and piece[2:-1].isalpha()
    ):
        return TokenKind.SYMBOL
    is_byte_piece = len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">")
    return TokenKind.BYTE if is_byte_piece else TokenKind.TEXT


def check_ids(ids: Sequence[int], vocabulary: int) -> list[int]:
    """Return token ids as a list of int. ValueError unless all are integers in a vocabulary of this size."""
    numbers = list(check_sequence("token ids", ids))
    try:
        numbers = [index(i) for i in numbers]
    except TypeError as error:
        raise ValueError(f"token ids must be whole numbers, found {numbers!r:.80}") from error
    for i in numbers:
        if not 0 <= i < vocabulary:
            raise Refusal(
                "There is no token {n}: the vocabulary has tokens 0 to {last}.", n=str(i), last=str(vocabulary - 1)
            )
    return numbers
