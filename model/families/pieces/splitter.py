"""The SentencePiece model of a family's folder: a file of it, or put together again from tokenizer.json, which is all
that `transformers` 5 keeps of some.

tokenizer.json holds the pieces, a unigram model's scores or the order of a BPE model's merges, and the table of the
normalisation, which is all that a SentencePiece model consists of (sentencepiece_model.proto, whose wire format is
written here by hand: it takes a page, and the library's own writer a further package).
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterator

from attention_atlas.model.config import LIMITS
from attention_atlas.model.families.folder import Folder
from attention_atlas.model.files import MAX_VOCABULARY_BYTES
from attention_atlas.model.trace import is_integer

SPM, FAST = "sentencepiece.bpe.model", "tokenizer.json"
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")  # ids 0 to 3 of every vocabulary that fairseq made
OWN = (("<unk>", 2), ("<s>", 3), ("</s>", 3))  # SentencePiece's first pieces; 2: unknown, 3: control, 6: a byte
BYTE = re.compile("<0x[0-9A-F]{2}>")
UNIGRAM, BPE = 1, 2


def splitter(folder: Folder) -> bytes:
    """The serialized SentencePiece model of a family that fairseq trained. ValueError naming the file that is missing,
    or is none."""
    if folder.has(SPM) or not folder.has(FAST):
        return folder.bytes(SPM)
    model, ids, symbols = fast(folder, FAIRSEQ)
    found = sorted(i for piece, i in ids.items() if piece not in symbols)
    if found != list(range(len(FAIRSEQ), len(FAIRSEQ) + len(found))):
        raise ValueError(f"{folder.path / FAST}: the pieces' ids must go on from {len(FAIRSEQ)} without a gap")
    return model


def fast(folder: Folder, known: tuple[str, ...]) -> tuple[bytes, dict[str, int], set[str]]:
    """tokenizer.json as a SentencePiece model, the ids of its pieces, and which of those are symbols: the known ones
    and those that it adds. ValueError for what is no such file."""
    path, found = folder.path / FAST, folder.json(FAST, limit=MAX_VOCABULARY_BYTES)
    model, added = found.get("model"), found.get("added_tokens")
    if not isinstance(model, dict) or not isinstance(added, list):
        raise ValueError(f'{path} has no "model" and no "added_tokens"')
    ids, scores = _vocabulary(model, f"{path}")
    symbols = {token.get("content") for token in added if isinstance(token, dict)} | set(known)
    pieces = sorted((i, piece) for piece, i in ids.items() if piece not in symbols)
    kind = UNIGRAM if model.get("type") == "Unigram" else BPE
    scored = [(piece, scores.get(piece, 0.0)) for _, piece in pieces]
    spm = _serialized(scored, kind, _table(found, f"{path}"), bytes_too=model.get("byte_fallback") is True)
    return spm, ids, symbols


def _vocabulary(model: dict, path: str) -> tuple[dict[str, int], dict[str, float]]:
    """Ids of all pieces, and what SentencePiece ranks them by."""
    kind, vocabulary = model.get("type"), model.get("vocab")
    if kind == "Unigram" and isinstance(vocabulary, list):
        if not all(
            isinstance(entry, list)
            and len(entry) == 2
            and isinstance(entry[0], str)
            and isinstance(entry[1], (int, float))
            for entry in vocabulary
        ):
            raise ValueError(f"{path}: an entry of the vocabulary is a piece and its score")
        found, scores = {piece: i for i, (piece, _) in enumerate(vocabulary)}, dict(vocabulary)
    elif kind == "BPE" and isinstance(vocabulary, dict) and isinstance(model.get("merges"), list):
        found, scores = vocabulary, {}
        for rank, merge in enumerate(model["merges"]):
            parts = merge.split(" ") if isinstance(merge, str) else merge
            if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
                raise ValueError(f"{path}: a merge is of two pieces, found {merge!r:.60}")
            scores.setdefault("".join(parts), -float(rank))
    else:
        raise ValueError(f"{path}: expected a vocabulary of type Unigram or BPE, found {kind!r:.60}")
    for piece, i in found.items():
        if not is_integer(i, 0, LIMITS["vocabulary_size"] - 1):
            raise ValueError(f"{path}: the id of {piece!r:.60} must be a whole number, found {i!r:.60}")
    check_distinct(found, path)
    return found, scores


def check_distinct(ids: dict[str, int], path: object) -> None:
    """ValueError, naming the file, for an id that two pieces have: one of them could never be read back."""
    pieces: dict[int, str] = {}
    for piece, i in ids.items():
        if i in pieces:
            raise ValueError(f"{path}: {pieces[i]!r:.60} and {piece!r:.60} have the same id {i}")
        pieces[i] = piece


def _table(found: dict, path: str) -> bytes:
    """The compiled rules of the normalisation; nothing where there are none."""
    normalizer = found.get("normalizer") or {}
    steps = normalizer.get("normalizers", [normalizer]) if isinstance(normalizer, dict) else []
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and isinstance(table := step.get("precompiled_charsmap"), str):
            try:
                return base64.b64decode(table, validate=True)
            except binascii.Error as error:
                raise ValueError(f"{path}: the table of the normalisation is not base64: {error}") from error
    return b""


def _serialized(pieces: list[tuple[str, float]], kind: int, table: bytes, *, bytes_too: bool = False) -> bytes:
    """bytes_too: what no piece spells becomes bytes, each with a piece of its own."""
    entries = [(piece, 0.0, special) for piece, special in OWN]
    entries += [(piece, score, 6 if bytes_too and BYTE.fullmatch(piece) else 1) for piece, score in pieces]
    written = [
        _bytes(1, _bytes(1, piece.encode()) + _float(2, score) + _number(3, special))
        for piece, score, special in entries
    ]
    # Model type and size; whether bytes spell the rest; ids of <unk>, <s>, </s> and no padding.
    fields = ((3, kind), (4, len(entries)), (35, int(bytes_too)), (40, 0), (41, 1), (42, 2), (43, -1))
    trainer = b"".join(_number(*field) for field in fields)
    # Then: a space before the text, none at its ends.
    normalizer = _bytes(2, table) + b"".join(_number(field, 1) for field in (3, 4, 5))
    return b"".join(written) + _bytes(2, trainer) + _bytes(3, normalizer)


def _varint(value: int) -> bytes:
    def digits(rest: int) -> Iterator[int]:
        while rest > 0x7F:
            yield rest & 0x7F | 0x80
            rest >>= 7
        yield rest

    return bytes(digits(value % (1 << 64)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
