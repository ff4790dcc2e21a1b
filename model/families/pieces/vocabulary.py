"""From the tokenizer files of the families to pieces by id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from attention_atlas.model.config import LIMITS, ModelConfig
from attention_atlas.model.families.folder import Folder
from attention_atlas.model.families.pieces.splitter import FAIRSEQ, FAST, check_distinct
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.files import MAX_VOCABULARY_BYTES
from attention_atlas.model.text.pieces import PieceTokenizer, SideVocabulary, SourceRow, Symbols
from attention_atlas.model.text.splitters import HEADER, SentencePieces
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.directions import Languages, language_of

SPIECE = "spiece.model"  # what Google calls its SentencePiece models
MANY = 12  # directions above which a page has two menus of languages
LISTED = 60  # of more are those between the languages below
UNNAMED = "source-target"  # the direction of a model whose files do not say which it is
KNOWN_FIRST = ("en", "de", "fr", "es", "zh", "ar", "hi", "ru")


def numbered(folder: Folder, name: str) -> dict[str, int]:
    """A file of pieces and their ids. ValueError unless it is one."""
    if not folder.has(name):
        raise ValueError(f"{folder.path / name} is missing")
    return checked_ids(folder.json(name, limit=MAX_VOCABULARY_BYTES), folder.path / name)


def checked_ids(found: dict, path: Path) -> dict[str, int]:
    """Pieces and their ids, as a file has them. ValueError, naming it, unless they are ids."""
    for piece, i in found.items():
        if not is_integer(i, 0, LIMITS["vocabulary_size"] - 1):
            raise ValueError(f"{path}: the id of {piece!r:.60} must be a whole number, found {i!r:.60}")
    check_distinct(found, path)
    return found


def named(ids: dict[str, int], size: int) -> tuple[tuple[str, ...], list[int]]:
    """All pieces by id, and the ids up to `size` that no piece has. ValueError for ids beyond the network's."""
    if ids and max(ids.values()) >= size:
        raise ValueError(f"the vocabulary goes up to id {max(ids.values())}, the network has {size} tokens")
    pieces: list[str | None] = [None] * size
    for piece, i in ids.items():
        pieces[i] = piece
    nameless = [i for i, piece in enumerate(pieces) if piece is None]
    return tuple(f"<unused {i}>" if piece is None else piece for i, piece in enumerate(pieces)), nameless


def piece_ids(model: bytes) -> dict[str, int]:
    """Ids of a SentencePiece model's pieces, as it numbers them itself. ValueError if it is none."""
    processor = SentencePieces(model).processor
    return {processor.IdToPiece(i): i for i in range(processor.GetPieceSize())}


def merges(folder: Folder, *, mark: str = "") -> tuple[dict[str, int], bytes]:
    """Ids of merged pieces, and the list of merges as splitter_of() takes it, with a mark in its header. ValueError
    naming the file that is missing, or is none."""
    if folder.has("vocab.json") or not folder.has(FAST):
        ids = numbered(folder, "vocab.json")
        try:
            lines = folder.bytes("merges.txt").decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{folder.path / 'merges.txt'} is not UTF-8: {error}") from error
    else:
        path, found = folder.path / FAST, folder.json(FAST, limit=MAX_VOCABULARY_BYTES).get("model")
        listed = found.get("merges") if isinstance(found, dict) else None
        if not isinstance(listed, list) or not isinstance(found.get("vocab"), dict):
            raise ValueError(f"{path} has no vocabulary of merged bytes")
        ids = checked_ids(found["vocab"], path)
        lines = [" ".join(map(str, pair)) if isinstance(pair, list) else str(pair) for pair in listed]
    lines = [line for line in lines if line and not line.startswith(HEADER)]
    return ids, "\n".join((f"{HEADER} {mark}".rstrip(), *lines)).encode()


def fairseq_ids(model: bytes) -> dict[str, int]:
    """Ids of a SentencePiece model's pieces as fairseq numbers them: its own symbols first, then one more than
    SentencePiece's. ValueError if it is no SentencePiece model."""
    pieces = {piece: i + 1 for piece, i in piece_ids(model).items() if i >= 3}
    return {symbol: i for i, symbol in enumerate(FAIRSEQ)} | pieces


def languages(folder: Folder, settings: dict, form: re.Pattern) -> dict[str, int]:
    """Code -> id of the language symbols that the folder itself names, first in tokenizer_config.json, then in
    tokenizer.json, then in added_tokens.json; {} if it names none. form: what a symbol looks like, its code in a
    group."""
    declared = settings.get("added_tokens_decoder")
    pairs = (
        [(str(i), token.get("content")) for i, token in declared.items() if isinstance(token, dict)]
        if isinstance(declared, dict)
        else []
    )
    found = _codes(pairs, form)
    if not found:
        added = folder.json("tokenizer.json", limit=MAX_VOCABULARY_BYTES).get("added_tokens")
        found = _codes(
            [(str(token.get("id")), token.get("content")) for token in added if isinstance(token, dict)]
            if isinstance(added, list)
            else [],
            form,
        )
    return found or _codes([(str(i), text) for text, i in folder.json("added_tokens.json").items()], form)


def _codes(pairs: list[tuple[str, object]], form: re.Pattern) -> dict[str, int]:
    return {
        match[1]: int(i)
        for i, text in pairs
        if isinstance(text, str) and i.isdecimal() and (match := form.fullmatch(text))
    }


def directions(sources: Sequence[str], targets: Sequence[str]) -> tuple[tuple[str, ...], Languages | None]:
    """Every pair of different languages. Of many, those between a few that many people know, and all the languages."""
    pairs = [(source, target) for source in sources for target in targets if source != target]
    languages = Languages(tuple(sources), tuple(targets)) if len(pairs) > MANY else None
    if languages:
        known = [
            tuple(
                KNOWN_FIRST.index(language_of(code)) if language_of(code) in KNOWN_FIRST else len(KNOWN_FIRST)
                for code in pair
            )
            for pair in pairs
        ]
        few = len(sources) > 1 and len(targets) > 1 and min(map(max, known)) < len(KNOWN_FIRST)
        ranked = sorted(zip(known, pairs), key=lambda one: one[0])  # English first, where there is any
        pairs = [pair for rank, pair in ranked if not few or max(rank) < len(KNOWN_FIRST)][:LISTED]
    return tuple(f"{source}-{target}" for source, target in pairs), languages


def fairseq_tokenizer(
    settings: Settings,
    config: ModelConfig,
    spm: bytes,
    ids: dict[str, int],
    codes: dict[str, int],
    *,
    begin_id: int,
    source_row: SourceRow,
    forced: bool,
) -> tuple[PieceTokenizer, ModelConfig]:
    """The tokenizer of a family that fairseq trained, one SentencePiece model for both sides, and the config with the
    tokens that decoding may not choose. ids: of all pieces; codes: of languages. Eight parameters: the parts of files,
    and three ways in which these families differ."""
    pieces, nameless = named(ids, config.vocabulary_size)
    side = SideVocabulary(spm, pieces)
    symbols = Symbols(
        pad_id=config.pad_id,
        begin_id=begin_id,
        end_id=2,
        unknown_id=3,
        source_row=source_row,
        forced=forced,
        languages=tuple(codes.items()),
        special_ids=tuple(sorted({0, 1, 2, 3, *nameless, *(ids[m] for m in ("<mask>",) if m in ids)})),
    )
    banned = sorted(i for i in {*settings.banned(), *nameless} if i < config.vocabulary_size)
    return PieceTokenizer(side, side, symbols), replace(config, banned_ids=tuple(banned))
