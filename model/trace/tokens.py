"""Tokens with what their tokenizer knows of them. Importable without torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from operator import index

from attention_atlas.model.trace import check_integer, check_sequence
from attention_atlas.model.trace.language import Refusal


class TokenKind(str, Enum):
    """What a piece of a vocabulary is."""

    TEXT = "text"
    SYMBOL = "symbol"  # begin, end, padding, unknown, or a language: no text can become one
    BYTE = "byte"  # one byte of a character that the vocabulary cannot spell
    PREFIX = "prefix"  # of what tells a model its task, such as "translate English to German:": no part of the text


class Token(str):
    """A piece as it is in the vocabulary, and the facts that its tokenizer knows about it: its kind, and in a
    sentence the number of the word that it belongs to (None: not said). Equal to the same piece as a plain string,
    which is text: what reads "<s>" need not be a symbol."""

    __slots__ = ("kind", "word")  # a vocabulary has 256,000 of them
    kind: TokenKind
    word: int | None

    def __new__(cls, piece: str, kind: TokenKind = TokenKind.TEXT, word: int | None = None) -> Token:
        token = super().__new__(cls, piece)
        token.kind = kind if type(kind) is TokenKind else TokenKind(kind)  # the enum's own way takes five times as long
        token.word = word
        return token


def is_byte(token: str) -> bool:
    """Whether a piece is one byte of a character that the vocabulary cannot spell."""
    return getattr(token, "kind", None) is TokenKind.BYTE


def is_symbol(token: str) -> bool:
    """Whether a piece is not part of the text: a control symbol (begin, end, padding, a target language) or a
    prefix."""
    return getattr(token, "kind", None) in (TokenKind.SYMBOL, TokenKind.PREFIX)


def is_prefix(token: str) -> bool:
    """Whether a piece belongs to the prefix that tells a model its task."""
    return getattr(token, "kind", None) is TokenKind.PREFIX


def told_by_spelling(pieces: Iterable[str]) -> tuple[Token, ...]:
    """Tokens whose facts were not recorded: inferred from the spelling, as this project's own tokenizers spell them.
    Only for files from before facts were kept."""
    return tuple(Token(piece, _kind(piece)) for piece in pieces)


def facts(tokens: Iterable[str]) -> dict:
    """What is known of tokens, JSON-ready: kinds, one letter each (t, s, b, p), and their words' numbers or null."""
    tokens = tuple(tokens)
    return {
        "kinds": "".join([getattr(token, "kind", TokenKind.TEXT)[0] for token in tokens]),
        "words": [getattr(token, "word", None) for token in tokens],
    }


def with_facts(pieces: Sequence[str], found: object) -> tuple[Token, ...]:
    """The tokens of facts(). ValueError for what cannot be facts of these pieces."""
    kinds = {kind[0]: kind for kind in TokenKind}
    try:
        return tuple(
            Token(piece, kinds[letter], None if word is None else check_integer("word", word))
            for piece, letter, word in zip(pieces, found["kinds"], found["words"], strict=True)
        )
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"these are no facts of {len(pieces)} tokens: {found!r:.200}") from error


def _kind(piece: str) -> TokenKind:
    if piece in ("<s>", "</s>", "<pad>", "<unk>") or (
        piece.startswith("<2") and piece.endswith(">") and piece[2:-1].isalpha()
    ):
        return TokenKind.SYMBOL
    byte = len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">")
    return TokenKind.BYTE if byte else TokenKind.TEXT


def whole_ids(ids: Sequence[int], vocabulary: int) -> list[int]:
    """The ids as plain integers. ValueError, in words, for one that is not a whole number or not in a vocabulary of
    so many tokens."""
    found = list(check_sequence("token ids", ids))
    try:
        found = [index(i) for i in found]
    except TypeError as error:
        raise ValueError(f"token ids are whole numbers, found {found!r:.80}") from error
    for i in found:
        if not 0 <= i < vocabulary:
            raise Refusal(
                "There is no token {n}: the vocabulary has tokens 0 to {last}.", n=str(i), last=str(vocabulary - 1)
            )
    return found
