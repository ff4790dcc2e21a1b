"""Read the tokenizer files of the families: pieces and their ids, merges, SentencePiece models, language symbols.

`transformers` 5 saves some tokenizers as tokenizer.json alone. It holds the pieces, the scores of a unigram model or
the merges of a BPE model, and the normalization table, which is all that a SentencePiece model consists of:
convert_json() writes them in the wire format of sentencepiece_model.proto.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from attention_atlas.model.config import LIMITS
from attention_atlas.model.families.folder import Folder
from attention_atlas.model.families.settings import Settings
from attention_atlas.model.files import MAX_VOCABULARY_BYTES, read_json, value_errors
from attention_atlas.model.text.splitters import HEADER, SentencePieces
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.directions import Languages, language_of

SPM, SPIECE = "sentencepiece.bpe.model", "spiece.model"  # SentencePiece models of fairseq's and of Google's families
TOKENIZER_JSON = "tokenizer.json"
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")  # ids 0 to 3 of every vocabulary that fairseq made
UNKNOWN, CONTROL, BYTE, NORMAL = 2, 3, 6, 1  # SentencePiece's types of pieces
FIRST_PIECES = (("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL))
BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")
UNIGRAM, BPE = 1, 2  # SentencePiece's types of models
MAX_LISTED = 12  # directions of a model; a model of more also gets menus of its languages
MAX_COMMON = 60  # directions between COMMON_LANGUAGES that a model of many languages lists
COMMON_LANGUAGES = ("en", "de", "fr", "es", "zh", "ar", "hi", "ru")
UNNAMED = "source-target"  # the direction of a model whose files name none


def read_ids(folder: Folder, name: str) -> dict[str, int]:
    """Return the ids of a JSON file of pieces. Raises ValueError, naming the file, for anything else."""
    if not folder.has(name):
        raise ValueError(f"{folder.path / name} is missing")
    return check_ids(folder.json(name, limit=MAX_VOCABULARY_BYTES), folder.path / name)


def check_ids(ids: dict, path: object) -> dict[str, int]:
    """Return the ids of pieces. Raises ValueError, naming the file, for an id out of range or of two pieces."""
    pieces: dict[int, str] = {}
    for piece, i in ids.items():
        if not is_integer(i, 0, LIMITS["vocabulary_size"] - 1):
            raise ValueError(f"{path}: the id of {piece!r:.60} must be a whole number, found {i!r:.60}")
        if i in pieces:
            raise ValueError(f"{path}: {pieces[i]!r:.60} and {piece!r:.60} have the same id {i}")
        pieces[i] = piece
    return ids


def list_pieces(ids: dict[str, int], size: int) -> tuple[tuple[str, ...], list[int]]:
    """Return all pieces by id, and the ids below `size` without a piece, which get placeholders.

    Raises ValueError for ids beyond the network's.
    """
    if ids and max(ids.values()) >= size:
        raise ValueError(f"the vocabulary goes up to id {max(ids.values())}, the network has {size} tokens")
    pieces: list[str | None] = [None] * size
    for piece, i in ids.items():
        pieces[i] = piece
    nameless = [i for i, piece in enumerate(pieces) if piece is None]
    return tuple(f"<unused {i}>" if piece is None else piece for i, piece in enumerate(pieces)), nameless


def sentencepiece_ids(model: bytes) -> dict[str, int]:
    """Return the ids of a SentencePiece model's pieces. Raises ValueError if it is none."""
    processor = SentencePieces(model).processor
    return {processor.IdToPiece(i): i for i in range(processor.GetPieceSize())}


def fairseq_ids(model: bytes) -> dict[str, int]:
    """Return the ids of a SentencePiece model's pieces in fairseq's numbering: its symbols first, then SentencePiece's
    ids plus one. Raises ValueError if it is no SentencePiece model."""
    pieces = {piece: i + 1 for piece, i in sentencepiece_ids(model).items() if i >= 3}
    return {symbol: i for i, symbol in enumerate(FAIRSEQ)} | pieces


def read_merges(folder: Folder, *, mark: str = "") -> tuple[dict[str, int], bytes]:
    """Return the ids of merged pieces, and the list of merges as splitter_of() takes it, with a mark in its header.

    Raises ValueError naming the file that is missing or damaged.
    """
    if folder.has("vocab.json") or not folder.has(TOKENIZER_JSON):
        ids = read_ids(folder, "vocab.json")
        with value_errors(f"{folder.path / 'merges.txt'} is not UTF-8", UnicodeDecodeError):
            lines = folder.bytes("merges.txt").decode("utf-8").split("\n")
    else:
        path, model = folder.path / TOKENIZER_JSON, folder.json(TOKENIZER_JSON, limit=MAX_VOCABULARY_BYTES).get("model")
        merges = model.get("merges") if isinstance(model, dict) else None
        if not isinstance(merges, list) or not isinstance(model.get("vocab"), dict):
            raise ValueError(f"{path} has no vocabulary of merged bytes")
        ids = check_ids(model["vocab"], path)
        lines = [" ".join(map(str, pair)) if isinstance(pair, list) else str(pair) for pair in merges]
    lines = [line for line in lines if line and not line.startswith(HEADER)]
    return ids, "\n".join((f"{HEADER} {mark}".rstrip(), *lines)).encode()


def read_fairseq_model(folder: Folder) -> bytes:
    """Return the SentencePiece model of a family that fairseq trained, from its file or from tokenizer.json.

    Raises ValueError naming the file that is missing or damaged.
    """
    if folder.has(SPM) or not folder.has(TOKENIZER_JSON):
        return folder.bytes(SPM)
    model, ids, symbols = convert_json(folder, FAIRSEQ)
    numbers = sorted(i for piece, i in ids.items() if piece not in symbols)
    if numbers != list(range(len(FAIRSEQ), len(FAIRSEQ) + len(numbers))):
        raise ValueError(
            f"{folder.path / TOKENIZER_JSON}: the pieces' ids must go on from {len(FAIRSEQ)} without a gap"
        )
    return model


def convert_json(folder: Folder, known_symbols: tuple[str, ...]) -> tuple[bytes, dict[str, int], set[str]]:
    """Return tokenizer.json as a SentencePiece model, the ids of its pieces, and which pieces are symbols.

    Symbols are the known ones and the tokens that the file adds. Raises ValueError for a damaged file.
    """
    path, values = folder.path / TOKENIZER_JSON, folder.json(TOKENIZER_JSON, limit=MAX_VOCABULARY_BYTES)
    model, added = values.get("model"), values.get("added_tokens")
    if not isinstance(model, dict) or not isinstance(added, list):
        raise ValueError(f'{path} has no "model" and no "added_tokens"')
    ids, scores = _read_model(model, f"{path}")
    symbols = {token.get("content") for token in added if isinstance(token, dict)} | set(known_symbols)
    has_bytes = model.get("byte_fallback") is True
    entries = [(piece, 0.0, kind) for piece, kind in FIRST_PIECES]
    for _, piece in sorted((i, piece) for piece, i in ids.items() if piece not in symbols):
        entries.append((piece, scores.get(piece, 0.0), BYTE if has_bytes and BYTE_PIECE.fullmatch(piece) else NORMAL))
    # Fields of ModelProto: 1 pieces (piece, score, type); 2 TrainerSpec; 3 NormalizerSpec.
    pieces = [
        _bytes(1, _bytes(1, piece.encode()) + _float(2, score) + _number(3, kind)) for piece, score, kind in entries
    ]
    # TrainerSpec: 3 model_type, 4 vocab_size, 35 byte_fallback, 40 unk_id, 41 bos_id, 42 eos_id, 43 pad_id (none).
    kind = UNIGRAM if model.get("type") == "Unigram" else BPE
    fields = ((3, kind), (4, len(entries)), (35, int(has_bytes)), (40, 0), (41, 1), (42, 2), (43, -1))
    trainer = b"".join(_number(*field) for field in fields)
    # NormalizerSpec: 2 the table, 3 add_dummy_prefix, 4 remove_extra_whitespaces, 5 escape_whitespaces.
    normalizer = _bytes(2, _read_table(values, f"{path}")) + b"".join(_number(field, 1) for field in (3, 4, 5))
    return b"".join(pieces) + _bytes(2, trainer) + _bytes(3, normalizer), ids, symbols


def _read_model(model: dict, path: str) -> tuple[dict[str, int], dict[str, float]]:
    """Return the ids of all pieces and the scores by which SentencePiece ranks them."""
    kind, vocabulary = model.get("type"), model.get("vocab")
    if kind == "Unigram" and isinstance(vocabulary, list):
        types = ([*map(type, entry)] if isinstance(entry, list) else None for entry in vocabulary)
        if not all(pair in ([str, float], [str, int]) for pair in types):
            raise ValueError(f"{path}: an entry of the vocabulary is a piece and its score")
        ids, scores = {piece: i for i, (piece, _) in enumerate(vocabulary)}, dict(vocabulary)
    elif kind == "BPE" and isinstance(vocabulary, dict) and isinstance(model.get("merges"), list):
        ids, scores = vocabulary, {}
        for rank, merge in enumerate(model["merges"]):
            parts = merge.split(" ") if isinstance(merge, str) else merge
            if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
                raise ValueError(f"{path}: a merge is of two pieces, found {merge!r:.60}")
            scores.setdefault("".join(parts), -float(rank))
    else:
        raise ValueError(f"{path}: expected a vocabulary of type Unigram or BPE, found {kind!r:.60}")
    return check_ids(ids, path), scores


def _read_table(values: dict, path: str) -> bytes:
    """Return the compiled rules of the normalization; nothing if there are none."""
    normalizer = values.get("normalizer") or {}
    steps = normalizer.get("normalizers", [normalizer]) if isinstance(normalizer, dict) else []
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and isinstance(table := step.get("precompiled_charsmap"), str):
            with value_errors(f"{path}: the table of the normalisation is not base64", binascii.Error):
                return base64.b64decode(table, validate=True)
    return b""


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


@cache
def language_codes(name: str) -> tuple[str, ...]:
    """Return the language codes of a family's models in the order of their symbols' ids, from language_codes.json."""
    return tuple(read_json(Path(__file__).with_name("language_codes.json"))[name])


def language_ids(
    folder: Folder, settings: Settings, form: re.Pattern, default: Iterable[str] = (), first: int = 0
) -> dict[str, int]:
    """Return code -> id of the language symbols that the folder's own files name.

    tokenizer_config.json is asked first, then tokenizer.json, then added_tokens.json. If they name none, the default
    codes have ids from `first` on. form: the pattern of a symbol, with its code in a group.
    """
    declared = settings.tokenizer.get("added_tokens_decoder")
    pairs = (
        [(str(i), token.get("content")) for i, token in declared.items() if isinstance(token, dict)]
        if isinstance(declared, dict)
        else []
    )
    codes = _match_codes(pairs, form)
    if not codes:
        added = folder.json(TOKENIZER_JSON, limit=MAX_VOCABULARY_BYTES).get("added_tokens")
        tokens = [token for token in added if isinstance(token, dict)] if isinstance(added, list) else []
        codes = _match_codes([(str(token.get("id")), token.get("content")) for token in tokens], form)
    codes = codes or _match_codes([(str(i), text) for text, i in folder.json("added_tokens.json").items()], form)
    return codes or {code: i for i, code in enumerate(default, first)}


def _match_codes(pairs: list[tuple[str, object]], form: re.Pattern) -> dict[str, int]:
    return {
        match[1]: int(i)
        for i, text in pairs
        if isinstance(text, str) and i.isdecimal() and (match := form.fullmatch(text))
    }


def list_directions(sources: Sequence[str], targets: Sequence[str]) -> tuple[tuple[str, ...], Languages | None]:
    """Return the directions that a model lists: every pair of different languages.

    Of many pairs only those between common languages are listed, English first; then all languages are returned, too.
    """
    pairs = [(source, target) for source in sources for target in targets if source != target]
    languages = Languages(tuple(sources), tuple(targets)) if len(pairs) > MAX_LISTED else None
    if languages:
        rank = {code: i for i, code in enumerate(COMMON_LANGUAGES)}
        ranks = [tuple(rank.get(language_of(code), len(rank)) for code in pair) for pair in pairs]
        some_common = len(sources) > 1 and len(targets) > 1 and min(map(max, ranks)) < len(rank)
        ordered = sorted(zip(ranks, pairs), key=lambda entry: entry[0])
        pairs = [pair for both, pair in ordered if not some_common or max(both) < len(rank)][:MAX_COMMON]
    return tuple(f"{source}-{target}" for source, target in pairs), languages
