"""From a text to the pieces of a vocabulary and back: by SentencePiece, byte by byte, by merging bytes or letters."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import sentencepiece

from attention_atlas.model.trace.tokens import Token, TokenKind

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

    def in_place(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """The tokens of a sentence, where what stands before a piece says how it is shown."""
        return tokens


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
        if not numbers:  # an empty file is read as a model without pieces
            raise ValueError("not a SentencePiece model: it has no pieces")
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


HEADER = "#version: 0.2"  # of a list of merges


def _ranks(merges: str) -> dict[tuple[str, str], int]:
    """Which pair was learned when. merges: a line of two pieces each, best first, after the header. ValueError for
    anything else."""
    header, *lines = merges.rstrip("\n").split("\n")
    pairs = [tuple(line.split(" ")) for line in lines]
    if not header.startswith(HEADER) or not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise ValueError("not a list of merges: each line has two pieces")
    return {pair: rank for rank, pair in enumerate(pairs)}


def _merged(parts: list[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """The parts of a word after all merges (Sennrich et al. 2016, algorithm 1)."""
    while len(parts) > 1:
        pair = min(pairwise(parts), key=lambda pair: ranks.get(pair, len(ranks)))
        if pair not in ranks:
            break
        joined, at = [], 0
        while at < len(parts):
            both = tuple(parts[at : at + 2]) == pair
            joined.append("".join(pair) if both else parts[at])
            at += 1 + both
        parts = joined
    return parts


class MergedBytes(Splitter):
    """Byte pair encoding (Sennrich et al. 2016) over the bytes of UTF-8 (Radford et al. 2019): BART's.

    Words are cut first, each with the space before it: what stands after an apostrophe in English, runs of letters, of
    numbers, of anything else. In each the pair of pieces that was learned first is merged, again and again.
    """

    PREFIX = "a space first"  # what is added to the header for Blenderbot

    def __init__(self, merges: str) -> None:
        """merges: a line of two pieces each, best first, after the header. ValueError for anything else."""
        self.put_first = LETTERS[0x20] if merges.split("\n")[0].endswith(self.PREFIX) else ""
        self.ranks = _ranks(merges)
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
        return tuple(_merged(list(word), self.ranks))

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


class MergedLetters(Splitter):
    """Byte pair encoding over the letters of words in lower case, where "@@" says that a word goes on (Sennrich et al.
    2016): Blenderbot-small's. Full stops, commas and the like begin a word, an apostrophe is one."""

    MARK, LAST, GOES_ON = "lower case, @@", "</w>", "@@"  # of the header; of a word's last letter; of what is not last
    UNKNOWN = "<unk>"
    WORDS = re.compile(f"[^ {''.join(sorted(BLANKS))}]+\n?")

    def __init__(self, merges: str) -> None:
        """As MergedBytes."""
        self.ranks = _ranks(merges)
        self.merged = lru_cache(maxsize=10_000)(self._merged)

    def split(self, text: str) -> list[str]:
        pieces = []
        for found in self.WORDS.findall(text):
            apart = re.sub("'", " ' ", re.sub("([.,!?()])", r" \1", found))
            apart = re.sub("[ \n]{2,}", " ", apart).replace("\n", " __newln__")
            pieces += [piece for word in apart.split(" ") if word for piece in self.merged(word.lower())]
        return pieces

    def _merged(self, word: str) -> tuple[str, ...]:
        *parts, last = _merged([*word[:-1], word[-1] + self.LAST], self.ranks)
        return *(part + self.GOES_ON for part in parts), last.removesuffix(self.LAST)

    def join(self, pieces: list[str]) -> str:
        return " ".join(pieces).replace(f"{self.GOES_ON} ", "").removesuffix(self.GOES_ON).strip()

    def token(self, piece: str) -> Token:
        return Token(piece)

    def in_place(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """As SentencePiece writes them: a space before what begins a word."""
        found, begins = [], True
        for token in tokens:
            bare = token.removesuffix(self.UNKNOWN)
            text = bare.removesuffix(self.GOES_ON)
            if token.kind is TokenKind.SYMBOL:
                found.append(token)
            else:
                found.append(Token(SPACE * begins + text + token[len(bare) :], token.kind))
            begins = token.kind is TokenKind.SYMBOL or text == bare
        return found


def splitter_of(model: bytes) -> Splitter:
    """From what a vocabulary's file holds: nothing for bytes, a list of merges, or a SentencePiece model. ValueError
    for what is none of these."""
    if not model:
        return Bytes()
    if model.startswith(HEADER.encode()):
        merges = model.decode("utf-8")
        return (MergedLetters if merges.split("\n")[0].endswith(MergedLetters.MARK) else MergedBytes)(merges)
    return SentencePieces(model)
