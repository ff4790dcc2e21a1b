"""Split a text into the pieces of a vocabulary and join them again: by SentencePiece, bytes, or byte pair encoding."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

import sentencepiece
from tokenizers import decoders, models, pre_tokenizers

from attention_atlas.model.files import value_errors
from attention_atlas.model.trace.tokens import Token, TokenKind
from attention_atlas.model.trace.words import SPACE

HEADER = "#version: 0.2"  # the first line of a list of merges


class Splitter(ABC):
    """Splits a text into pieces and joins them. put_first: the space that it writes before any text."""

    put_first: str = ""

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """Return the pieces of a text in order."""

    @abstractmethod
    def join(self, pieces: list[str]) -> str:
        """Return the text of pieces."""

    @abstractmethod
    def token(self, piece: str) -> Token:
        """Return a piece as it is displayed: a space is SPACE, a byte that is no character is "<0xC3>"."""

    def in_place(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """Return the tokens of a sentence, where the display of a piece depends on the piece before it."""
        return tokens


class SentencePieces(Splitter):
    """A SentencePiece model."""

    def __init__(self, model: bytes) -> None:
        """Raises ValueError if the bytes are no SentencePiece model."""
        self.put_first = SPACE
        self.processor = sentencepiece.SentencePieceProcessor()
        with value_errors("not a SentencePiece model", RuntimeError):
            self.processor.LoadFromSerializedProto(model)
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
    """Every byte of UTF-8 is a piece (Xue et al. 2022); the printable characters of ASCII are their own names."""

    pieces = tuple(
        SPACE if byte == 0x20 else chr(byte) if 0x20 < byte < 0x7F else f"<0x{byte:02X}>" for byte in range(256)
    )

    def split(self, text: str) -> list[str]:
        return [self.pieces[byte] for byte in text.encode("utf-8")]

    def join(self, pieces: list[str]) -> str:
        return bytes(self.pieces.index(piece) for piece in pieces).decode("utf-8", errors="ignore").strip()

    def token(self, piece: str) -> Token:
        return Token(piece, TokenKind.BYTE if len(piece) > 1 else TokenKind.TEXT)


class MergedPieces(Splitter):
    """Byte pair encoding (Sennrich et al. 2016), by the library `tokenizers`."""

    suffix = ""  # of a word's last letter, in the merges

    def __init__(self, merges: str) -> None:
        """merges: a header, then lines of two pieces each, in the order in which they were learned.

        Raises ValueError for anything else.
        """
        header, *lines = merges.rstrip("\n").split("\n")
        pairs = [tuple(line.split(" ")) for line in lines]
        if not header.startswith(HEADER) or not all(len(pair) == 2 and all(pair) for pair in pairs):
            raise ValueError("not a list of merges: each line has two pieces")
        unknown = ""  # stands for a letter of no merge
        pieces = dict.fromkeys((unknown, *(piece for pair in pairs for piece in (*pair, "".join(pair)))))
        ids = {piece: i for i, piece in enumerate(pieces)}
        self.model = models.BPE(ids, pairs, unk_token=unknown, end_of_word_suffix=self.suffix)

    def split_word(self, word: str) -> list[str]:
        """Return the pieces of a word after all merges, without the suffix."""
        spelled = word.encode("utf-8")
        return [spelled[slice(*token.offsets)].decode("utf-8") for token in self.model.tokenize(word)]


class MergedBytes(MergedPieces):
    """Byte pair encoding over the bytes of UTF-8 (Radford et al. 2019): BART's and Blenderbot's.

    The text is cut into words first, each with the space before it: English contractions, runs of letters, of digits,
    of anything else.
    """

    PREFIX = "a space first"  # ends the header where a space precedes any text: Blenderbot
    # A vocabulary writes a byte as the character of this number if it is printable, else as the next one from 256.
    PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
    LETTERS = {chr(byte): byte for byte in PRINTABLE} | {
        chr(256 + n): byte for n, byte in enumerate(sorted({*range(256)} - {*PRINTABLE}))
    }

    def __init__(self, merges: str) -> None:
        super().__init__(merges)
        space_first = merges.split("\n")[0].endswith(self.PREFIX)
        self.put_first = "\u0120" * space_first
        self.words = pre_tokenizers.ByteLevel(add_prefix_space=space_first)
        self.decoder = decoders.ByteLevel()

    def split(self, text: str) -> list[str]:
        return [piece for word, _ in self.words.pre_tokenize_str(text) for piece in self.split_word(word)]

    def join(self, pieces: list[str]) -> str:
        return self.decoder.decode(pieces).strip()

    def token(self, piece: str) -> Token:
        text = self.decoder.decode([piece])
        if "\ufffd" not in text:
            return Token(text.replace(" ", SPACE))
        # A part of a character, or of several.
        return Token(f"<0x{self.LETTERS[piece]:02X}>", TokenKind.BYTE) if len(piece) == 1 else Token(piece)


class MergedLetters(MergedPieces):
    """Byte pair encoding over the letters of lower-case words: Blenderbot-small's.

    A piece that does not end its word is written with "@@". Full stops, commas and the like begin a word, and an
    apostrophe is a word.
    """

    MARK, GOES_ON = "lower case, @@", "@@"  # the end of the header; the end of a piece that does not end its word
    UNKNOWN = "<unk>"
    WORDS = re.compile("[^ \t\n\v\f\r\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+\n?")

    suffix = "</w>"

    def split(self, text: str) -> list[str]:
        pieces = []
        for run in self.WORDS.findall(text):
            spaced = re.sub("'", " ' ", re.sub("([.,!?()])", r" \1", run))
            spaced = re.sub("[ \n]{2,}", " ", spaced).replace("\n", " __newln__")
            for word in filter(None, spaced.split(" ")):
                *parts, last = self.split_word(word.lower())
                pieces += [*(part + self.GOES_ON for part in parts), last]
        return pieces

    def join(self, pieces: list[str]) -> str:
        return " ".join(pieces).replace(f"{self.GOES_ON} ", "").removesuffix(self.GOES_ON).strip()

    def token(self, piece: str) -> Token:
        return Token(piece)

    def in_place(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """Return the tokens as SentencePiece writes them: SPACE before a piece that begins a word."""
        displayed, begins = [], True
        for token in tokens:
            piece = token.removesuffix(self.UNKNOWN)
            text = piece.removesuffix(self.GOES_ON)
            if token.kind is not TokenKind.SYMBOL:
                token = Token(SPACE * begins + text + token[len(piece) :], token.kind)
            displayed.append(token)
            begins = token.kind is TokenKind.SYMBOL or text == piece
        return displayed


def splitter_of(model: bytes) -> Splitter:
    """Return the splitter of a vocabulary's file: nothing for bytes, a list of merges, or a SentencePiece model.

    Raises ValueError for anything else.
    """
    if not model:
        return Bytes()
    if model.startswith(HEADER.encode()):
        merges = model.decode("utf-8")
        return (MergedLetters if merges.split("\n")[0].endswith(MergedLetters.MARK) else MergedBytes)(merges)
    return SentencePieces(model)
