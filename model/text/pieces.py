"""The tokenizer of other families: a splitter (model.text.splitters) makes pieces, and a table gives them ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from attention_atlas.model.config import from_json
from attention_atlas.model.files import (
    MAX_VOCABULARY_BYTES,
    read_bytes,
    read_json,
    replace_file,
    value_errors,
    write_json,
)
from attention_atlas.model.text.interface import TextTokenizer, check_utf8
from attention_atlas.model.text.splitters import Bytes, Splitter, splitter_of
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.tokens import Token, TokenKind

UNKNOWN = "<unk>"


class SourceRow(str, Enum):
    """The row of ids that an encoder reads for a text x."""

    BARE = "bare"  # x: Blenderbot-small
    PLAIN = "plain"  # x </s>: Marian for one pair of languages, T5 with its prefix as a part of x
    TARGET_FIRST = "target first"  # >>xxx<< x </s>: Marian for many targets, MADLAD-400 (Johnson et al. 2017)
    LANGUAGE_FIRST = "language first"  # src x </s>: M2M100, NLLB, mBART-50
    LANGUAGE_LAST = "language last"  # x </s> src: mBART cc25, NLLB before April 2023


@dataclass(frozen=True)
class Symbols:
    """The ids with a special meaning and their places in a source or target. Raises ValueError for invalid values.

    source_row    the places of symbols around a source
    forced        whether a decoder is made to write the target language's symbol first
    languages     pairs of a language's code and its symbol's id
    special_ids   ids, in addition to those here, that no text becomes and no translation shows
    prefixes      pairs of a direction and the text before its sources: T5's "translate English to German: "
    sentinels     pairs of a gap's name and its id, the only symbols that a person may type: T5's <extra_id_0>
    source_begin  the ids before every source
    target_begin  the ids that every translation begins with
    """

    pad_id: int
    begin_id: int
    end_id: int
    unknown_id: int
    source_row: SourceRow = SourceRow.PLAIN
    forced: bool = False
    languages: tuple[tuple[str, int], ...] = ()
    special_ids: tuple[int, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()
    sentinels: tuple[tuple[str, int], ...] = ()
    source_begin: tuple[int, ...] = ()
    target_begin: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        with value_errors("the tokenizer's symbols cannot be read", TypeError, ValueError):
            object.__setattr__(self, "source_row", SourceRow(self.source_row))
            pairs = [(str(code), int(token_id)) for code, token_id in (*self.languages, *self.sentinels)]
            if not all(isinstance(text, str) for pair in self.prefixes for text in pair):
                raise ValueError("a prefix is a text for a direction")
            dict(self.prefixes)
        ids = [(name, getattr(self, name)) for name in ("pad_id", "begin_id", "end_id", "unknown_id")]
        ids += pairs
        ids += [("special_ids", i) for i in (*self.special_ids, *self.source_begin, *self.target_begin)]
        for name, value in ids:
            if not is_integer(value, 0):
                raise ValueError(f"the id of {name} must be a whole number from 0, found {value!r}")


@dataclass(frozen=True, eq=False)
class SideVocabulary:
    """The vocabulary of one side. model: the splitter's file (model.text.splitters.splitter_of); pieces: by id."""

    model: bytes
    pieces: tuple[str, ...]


class PieceTokenizer(TextTokenizer):
    """A splitter's pieces with a family's ids.

    A piece that the table lacks gets the unknown id. Text is normalized only by the SentencePiece model's own rule. A
    piece spelled like a control symbol is unknown: typed text never becomes a control symbol, except a sentinel.
    """

    def __init__(self, source: SideVocabulary, target: SideVocabulary, symbols: Symbols) -> None:
        """source and target may be the same object. Raises ValueError for a damaged model or an id without a piece."""
        self.source, self.target, self.symbols = source, target, symbols
        self.pad_id, self.begin_id, self.end_id = symbols.pad_id, symbols.begin_id, symbols.end_id
        self.language_ids = dict(symbols.languages)
        self.special_ids = (
            frozenset(symbols.special_ids)
            | set(self.language_ids.values())
            | {symbols.pad_id, symbols.begin_id, symbols.end_id, symbols.unknown_id, *dict(symbols.sentinels).values()}
        )
        smallest = min(len(source.pieces), len(target.pieces))
        if max(self.special_ids) >= smallest:
            raise ValueError(f"a symbol has id {max(self.special_ids)}, the vocabulary only {smallest} pieces")
        for side in (source, target):
            if not side.model and not set(side.pieces).issuperset(Bytes.pieces):
                raise ValueError("an empty model splits a text into bytes, which are not among the pieces")
        self._source, self._target = splitter_of(source.model), splitter_of(target.model)
        self.pieces = self._with_kinds(target.pieces, self._target)
        self._source_pieces = self.pieces if target is source else self._with_kinds(source.pieces, self._source)
        self._sentinels = dict(symbols.sentinels)
        self._sentinel_pattern = (
            re.compile(f"({'|'.join(map(re.escape, self._sentinels))})") if self._sentinels else None
        )
        self._prefixes = dict(symbols.prefixes)
        self._source_ids = self._ids(source)
        self._target_ids = self._source_ids if target is source else self._ids(target)

    def _ids(self, side: SideVocabulary) -> dict[str, int]:
        return {piece: i for i, piece in enumerate(side.pieces) if i not in self.special_ids} | self._sentinels

    def _with_kinds(self, pieces: tuple[str, ...], splitter: Splitter) -> tuple[Token, ...]:
        return tuple(
            Token(piece, TokenKind.SYMBOL) if i in self.special_ids else splitter.token(piece)
            for i, piece in enumerate(pieces)
        )

    def _split(self, splitter: Splitter, text: str) -> list[str]:
        """Return the pieces of a text, sentinels among them."""
        check_utf8(text)
        if self._sentinel_pattern is None:
            return splitter.split(text)
        parts = self._sentinel_pattern.split(text)  # every second part is a sentinel
        return [piece for n, part in enumerate(parts) for piece in ([part] if n % 2 else splitter.split(part))]

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.source.pieces), len(self.target.pieces)

    def encode(self, text: str) -> list[int]:
        return self._look_up(self._split(self._target, text), self._target_ids)

    def encode_joined(self, text: str) -> list[int]:
        first, *rest = self._split(self._target, text) or [""]
        joined = first.removeprefix(self._target.put_first)
        joined = [joined] if joined in self._target_ids else list(joined)
        return self._look_up([*joined, *rest], self._target_ids)

    def encode_source(self, text: str, target_language: str, source_language: str | None = None) -> list[int]:
        prefix = self._prefixes.get(f"{source_language}-{target_language}", "")
        ids = self._look_up(self._split(self._source, prefix + text), self._source_ids)
        row = self.symbols.source_row
        if row is SourceRow.BARE:
            return ids
        if row is SourceRow.PLAIN:
            return [*self.symbols.source_begin, *ids, self.end_id]
        if row is SourceRow.TARGET_FIRST:
            return [self._language(target_language), *ids, self.end_id]
        language = self._language(source_language)
        return [language, *ids, self.end_id] if row is SourceRow.LANGUAGE_FIRST else [*ids, self.end_id, language]

    def forced_prefix(self, target_language: str) -> tuple[int, ...]:
        return (self._language(target_language),) if self.symbols.forced else self.symbols.target_begin

    def _language(self, code: str | None) -> int:
        if code not in self.language_ids:
            raise ValueError(
                f"this vocabulary has no symbol for the language {code!r}; it has "
                f"{', '.join(list(self.language_ids)[:20])}{' …' * (len(self.language_ids) > 20)}"
            )
        return self.language_ids[code]

    def source_tokens(self, ids: Sequence[int], text: str) -> tuple[Token, ...]:
        names = [self._source_pieces[i] for i in ids]
        first = len(self.symbols.source_begin)
        first += self.symbols.source_row in (SourceRow.TARGET_FIRST, SourceRow.LANGUAGE_FIRST)
        for prefix in (*self._prefixes.values(), ""):
            surfaces = self._split(self._source, prefix + text)
            if list(ids[first : first + len(surfaces)]) == self._look_up(surfaces, self._source_ids):
                break
        else:
            return tuple(names)
        before = self._split(self._source, prefix)
        for at, surface in enumerate(surfaces, first):
            if ids[at] == self.symbols.unknown_id:
                names[at] = Token(surface + UNKNOWN)
            if before[at - first : at - first + 1] == [surface]:
                names[at] = Token(names[at], TokenKind.PREFIX)
            else:
                before = []  # the prefix has ended
        return tuple(names)

    def in_words(self, tokens: Sequence[Token]) -> tuple[Token, ...]:
        return super().in_words(self._target.in_place(tokens))

    def decode(self, ids: Iterable[int]) -> str:
        return self._target.join([self.target.pieces[i] for i in map(int, ids) if i not in self.special_ids])

    def decode_source(self, ids: Iterable[int]) -> str:
        ids = list(map(int, ids))
        for prefix in self._prefixes.values():
            before = self._look_up(self._split(self._source, prefix), self._source_ids)
            if ids[: len(before)] == before:
                ids = ids[len(before) :]
                break
        return self._source.join([self.source.pieces[i] for i in ids if i not in self.special_ids])

    def _look_up(self, pieces: Iterable[str], ids: dict[str, int]) -> list[int]:
        return [ids.get(piece, self.symbols.unknown_id) for piece in pieces]

    def write(self, folder: Path) -> dict:
        sides = {"source": self.source} | ({} if self.target is self.source else {"target": self.target})
        for name, side in sides.items():
            replace_file(folder / f"{name}.spm", lambda path, side=side: path.write_bytes(side.model))
            write_json(folder / f"{name}.pieces.json", list(side.pieces))
        return {"sides": list(sides), **asdict(self.symbols)}

    @classmethod
    def read(cls, folder: Path, described: dict) -> PieceTokenizer:
        """Read what write() wrote. Raises ValueError naming the file for anything else."""
        settings = dict(described)
        names = settings.pop("sides", None)
        if names not in (["source"], ["source", "target"]):
            raise ValueError(f"the tokenizer's sides must be source, or source and target, found {names!r}")
        sides = [
            SideVocabulary(
                read_bytes(folder / f"{name}.spm", MAX_VOCABULARY_BYTES), _read_pieces(folder / f"{name}.pieces.json")
            )
            for name in names
        ]
        return cls(sides[0], sides[-1], from_json(Symbols, settings))


def _read_pieces(path: Path) -> tuple[str, ...]:
    pieces = read_json(path, limit=MAX_VOCABULARY_BYTES)
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise ValueError(f"{path} is not a list of pieces")
    return tuple(pieces)
