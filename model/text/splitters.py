"""From a text to the pieces of a vocabulary and back: by SentencePiece, byte by byte, or by merging bytes."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from functools import lru_cache
from itertools import pairwise

import sentencepiece

from model.trace.tokens import Token, TokenKind

SPACE = "\u2581"  # how SentencePiece writes a space


class Splitter(ABC):
    """From a text to pieces and back. put_first: the space that it puts before any text, as it writes it."""

    put_first: str = ""

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """The pieces of a text, one after the other."""

    @abstractmethod
    def join(self, pieces: list[str]) -> str:
        """The text of pieces."""

    @abstractmethod
    def token(self, piece: str) -> Token:
        """A piece as it is shown: a space is SPACE, a byte that is no character "<0xC3>"."""


class SentencePieces(Splitter):
    """A SentencePiece model's, by its own rule."""

    def __init__(self, model: bytes) -> None:
        """ValueError if it is no SentencePiece model."""
        self.put_first = SPACE
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise ValueError(f"not a SentencePiece model: {error}") from error
        numbers = range(self.processor.GetPieceSize())
        self.bytes = {self.processor.IdToPiece(i) for i in numbers if self.processor.IsByte(i)}

    def split(self, text: str) -> list[str]:
        return self.processor.encode(text, out_type=str)

    def join(self, pieces: list[str]) -> str:
        return self.processor.decode_pieces(pieces).replace(SPACE, " ").strip()

    def token(self, piece: str) -> Token:
        return Token(piece, TokenKind.BYTE if piece in self.bytes else TokenKind.TEXT)


class Bytes(Splitter):
    """Every byte of UTF-8 is a piece (Xue et al. 2022); one that is a character of its own is called by it."""

    pieces = tuple(
        SPACE if byte == 0x20 else chr(byte) if 0x20 < byte < 0x7F else f"<0x{byte:02X}>" for byte in range(256)
    )

    def split(self, text: str) -> list[str]:
        return [self.pieces[byte] for byte in text.encode("utf-8")]

    def join(self, pieces: list[str]) -> str:
        return bytes(self.pieces.index(piece) for piece in pieces).decode("utf-8", errors="ignore").strip()

    def token(self, piece: str) -> Token:
        return Token(piece, TokenKind.BYTE if len(piece) > 1 else TokenKind.TEXT)


def _letters() -> dict[int, str]:
    """The character by which each byte is written in a vocabulary of merged bytes: itself where it can be seen."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + n) for n, byte in enumerate(others)}


LETTERS = _letters()
BYTES = {letter: byte for byte, letter in LETTERS.items()}
ENDINGS = re.compile("'(?:s|t|re|ve|m|ll|d)")
WORDS = re.compile(" ?L+| ?N+| ?O+|[S ]+(?![^S ])|[S ]+")  # of a text's classes
BLANKS = {*"\t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000", *map(chr, range(0x2000, 0x200B))}


class MergedBytes(Splitter):
    """Byte pair encoding (Sennrich et al. 2016) over the bytes of UTF-8 (Radford et al. 2019): BART's.

    Words are cut first, each with the space before it: what stands after an apostrophe in English, runs of letters, of
    numbers, of anything else. In each the pair of pieces that was learned first is merged, again and again.
    """

    HEADER, PREFIX = "#version: 0.2", "a space first"  # of the list of merges; and what is added to it for Blenderbot

    def __init__(self, merges: str) -> None:
        """merges: a line of two pieces each, best first, after the header. ValueError for anything else."""
        header, *lines = merges.rstrip("\n").split("\n")
        self.put_first = LETTERS[0x20] if header.endswith(self.PREFIX) else ""
        pairs = [tuple(line.split(" ")) for line in lines]
        if not header.startswith(self.HEADER) or not all(len(pair) == 2 and all(pair) for pair in pairs):
            raise ValueError("not a list of merges: each line has two pieces")
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self.merged = lru_cache(maxsize=10_000)(self._merged)

    def split(self, text: str) -> list[str]:
        if self.put_first and text and not text.startswith(" "):
            text = f" {text}"
        classes, at, pieces = "".join(map(self._class, text)), 0, []
        while at < len(text):
            found = ENDINGS.match(text, at) or WORDS.match(classes, at)
            word = "".join(LETTERS[byte] for byte in text[at : found.end()].encode("utf-8"))
            pieces += self.merged(word)
            at = found.end()
        return pieces

    def _class(self, character: str) -> str:
        if character == " ":
            return " "
        kind = unicodedata.category(character)[0]
        return kind if kind in "LN" else "S" if character in BLANKS else "O"

    def _merged(self, word: str) -> tuple[str, ...]:
        parts = list(word)
        while len(parts) > 1:
            pair = min(pairwise(parts), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if pair not in self.ranks:
                break
            joined, at = [], 0
            while at < len(parts):
                both = tuple(parts[at : at + 2]) == pair
                joined.append("".join(pair) if both else parts[at])
                at += 1 + both
            parts = joined
        return tuple(parts)

    def join(self, pieces: list[str]) -> str:
        return self._spelled(pieces).decode("utf-8", errors="replace").strip()

    def _spelled(self, pieces: list[str]) -> bytes:
        return bytes(BYTES[letter] for piece in pieces for letter in piece if letter in BYTES)

    def token(self, piece: str) -> Token:
        spelled = self._spelled([piece])
        try:
            return Token(spelled.decode("utf-8").replace(" ", SPACE))
        except UnicodeDecodeError:  # a part of a character, or of several
            return Token(f"<0x{spelled[0]:02X}>", TokenKind.BYTE) if len(spelled) == 1 else Token(piece)


def splitter_of(model: bytes) -> Splitter:
    """From what a vocabulary's file holds: nothing for bytes, a list of merges, or a SentencePiece model. ValueError
    for what is none of these."""
    if not model:
        return Bytes()
    if model.startswith(MergedBytes.HEADER.encode()):
        return MergedBytes(model.decode("utf-8"))
    return SentencePieces(model)
