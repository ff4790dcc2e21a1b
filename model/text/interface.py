"""The interface of all tokenizers, and what is done to every text before it is encoded."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.tokens import Token, TokenKind
from attention_atlas.model.trace.words import number_words, words_by_spaces

MAX_CHARACTERS = 10_000
LINE_ENDS = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")


class TokenNames(ABC):
    """The part of a tokenizer that a trace needs.

    begin_id  the symbol that a decoder starts from
    """

    begin_id: int
    end_id: int

    @abstractmethod
    def tokens(self, ids: Iterable[int]) -> tuple[Token, ...]:
        """Return the pieces of target ids as in the vocabulary, such as "\u2581ich"."""

    def source_tokens(self, ids: Sequence[int], text: str) -> tuple[Token, ...]:
        """Return the tokens of encode_source(text, ..): pieces, and for an unknown id the text that it stands for."""
        return self.tokens(ids)

    def in_words(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        """Return a sentence's tokens, each with the number of its word.

        Words are separated by spaces. A tokenizer of a script without spaces overrides this method, the only place that
        decides what a word is.
        """
        return number_words(tokens, words_by_spaces(tokens))

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of target ids, without control symbols."""


class TextTokenizer(TokenNames):
    """Converts text to token ids and back; no text becomes a control symbol.

    pieces       the target's vocabulary by id, each with its kind; a space is "\u2581"
    special_ids  the control symbols of the target's vocabulary, which decode() omits
    """

    pieces: tuple[Token, ...]
    pad_id: int
    special_ids: frozenset[int]

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of tokens of the source and the target vocabulary. Override this if they differ."""
        return len(self.pieces), len(self.pieces)

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the target ids of a text, without any symbol. Raises ValueError for lone surrogates."""

    @abstractmethod
    def encode_joined(self, text: str) -> list[int]:
        """Return the target ids of text that continues without a space."""

    @abstractmethod
    def encode_source(self, text: str, target_language: str, source_language: str | None = None) -> list[int]:
        """Return the ids that an encoder reads: the text's source ids with the symbols around them.

        Raises ValueError as encode() does, and for a language without a symbol in this vocabulary.
        """

    def forced_prefix(self, target_language: str) -> tuple[int, ...]:
        """Return the ids that every translation begins with: none, or the target language's symbol in some families."""
        return ()

    def decode_source(self, ids: Iterable[int]) -> str:
        """Return the text of source ids. Override it where the source has its own vocabulary."""
        return self.decode(ids)

    @abstractmethod
    def write(self, folder: Path) -> dict[str, Any]:
        """Write the tokenizer's files into a checkpoint folder. Returns the "tokenizer" entry of its config.json."""

    def tokens(self, ids: Iterable[int]) -> tuple[Token, ...]:
        return tuple(self.pieces[i] for i in ids)

    def __len__(self) -> int:
        return len(self.pieces)


def normalize_text(text: str) -> str:
    """Return a text composed (NFC), on one line and without blanks at its ends, as the training data is.

    Pasted lines become one sentence, and no piece of a vocabulary stands for the end of a line. Raises ValueError for
    anything but a string, and Refusal for more than MAX_CHARACTERS characters.
    """
    if not isinstance(text, str):
        raise ValueError(f"a text is a string, found {text!r:.80}")
    if len(text) > MAX_CHARACTERS:
        raise Refusal("The text has {n} characters; the limit is {limit}.", n=len(text), limit=MAX_CHARACTERS)
    # Stripping each line takes linear time; a pattern of line ends with blanks around them takes quadratic time.
    lines = (line.strip() for line in LINE_ENDS.split(unicodedata.normalize("NFC", text)))
    return " ".join(line for line in lines if line)


def check_utf8(text: str) -> None:
    """Raise Refusal for half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Refusal(
            "the text has half of a surrogate pair at character {n}: it cannot be written as UTF-8", n=error.start + 1
        ) from error


def with_kinds(pieces: Iterable[str], symbols: Collection[int], byte_ids: Collection[int] = ()) -> tuple[Token, ...]:
    """Return the pieces as tokens, whose kind is symbol or byte for these ids and text for the others."""
    return tuple(
        Token(piece, TokenKind.SYMBOL if i in symbols else TokenKind.BYTE if i in byte_ids else TokenKind.TEXT)
        for i, piece in enumerate(pieces)
    )
