"""A TranslationTrace as a file, exact to the last bit of every float32: JSON for reading, NPZ for computing.

Schema 1, the same in both. Each field of TranslationTrace and AttentionMaps has its own name (see translation.py and
maps.py); the maps are nested by kind:

    {"schema": "attention-atlas-trace", "version": 1, "source_text": .., .., "cross": {"weights": [layers, heads, query,
    key], "query_tokens": [..], "key_tokens": [..]}, ..}

NPZ: the arrays under "cross.weights", "top_ids", ..; everything else as JSON text under "fields". No pickle.
Importable without torch.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from dataclasses import fields

import numpy as np

from model.trace.kinds import AttentionKind
from model.trace.maps import AttentionMaps
from model.trace.translation import TranslationTrace

SCHEMA, VERSION = "attention-atlas-trace", 1
_KINDS = tuple(kind.value for kind in AttentionKind)
_ARRAYS = {"top_ids": np.int32, "top_probabilities": np.float32, "chosen_rank": np.int32, "entropy": np.float32,
           "log_probability": np.float32}


def to_json(trace: TranslationTrace) -> str:
    """The trace as JSON text; from_json() gives it back equal."""
    found = {"schema": SCHEMA, "version": VERSION, **_plain(trace)}
    found.update({name: _numbers(getattr(trace, name)) for name in _ARRAYS})
    for kind in _KINDS:
        maps = getattr(trace, kind)
        found[kind] = {"weights": _numbers(maps.weights), "query_tokens": maps.query_tokens,
                       "key_tokens": maps.key_tokens}
    return json.dumps(found, ensure_ascii=False)


def from_json(text: str) -> TranslationTrace:
    """The trace of to_json()'s text. ValueError if it is anything else."""
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    _check(found)
    return _trace(found, {name: found.get(name) for name in _ARRAYS},
                  {kind: (found.get(kind) or {}).get("weights") for kind in _KINDS})


def to_npz(trace: TranslationTrace) -> bytes:
    """The trace as the bytes of a compressed .npz file; from_npz() gives it back equal."""
    written = io.BytesIO()
    text = json.dumps({"schema": SCHEMA, "version": VERSION, **_plain(trace)}, ensure_ascii=False)
    weights = {f"{kind}.weights": getattr(trace, kind).weights for kind in _KINDS}
    np.savez_compressed(written, fields=np.array(text), **weights, **{name: getattr(trace, name) for name in _ARRAYS})
    return written.getvalue()


def from_npz(data: bytes) -> TranslationTrace:
    """The trace of to_npz()'s bytes. ValueError if they are anything else."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        found = json.loads(str(arrays["fields"]))
    except (OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, json.JSONDecodeError) as error:
        raise ValueError(f"not a trace in NPZ format: {error}") from error
    _check(found)
    return _trace(found, {name: arrays.get(name) for name in _ARRAYS},
                  {kind: arrays.get(f"{kind}.weights") for kind in _KINDS})


def _plain(trace: TranslationTrace) -> dict:
    return {f.name: getattr(trace, f.name) for f in fields(trace) if f.name not in _ARRAYS and f.name not in _KINDS}


def _numbers(array: np.ndarray) -> list:
    if array.dtype != np.float32:
        return array.tolist()
    # The shortest decimal that reads back as this float32; half as long as that of the same number as a float64.
    return array.astype("U").astype(np.float64).tolist()


def _check(found: object) -> None:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise ValueError(f"not a trace: expected schema {SCHEMA!r}")
    if found.get("version") != VERSION:
        raise ValueError(f"trace version {found.get('version')!r}: this program reads version {VERSION}")


def _trace(found: dict, arrays: dict, weights: dict) -> TranslationTrace:
    absent = [name for name, value in {**arrays, **weights}.items() if value is None]
    absent += [f.name for f in fields(TranslationTrace)
               if f.name not in (*_ARRAYS, *_KINDS) and f.name not in found]
    if absent:
        raise ValueError(f"the trace lacks {', '.join(absent)}")
    plain = {f.name: _tuples(found[f.name]) for f in fields(TranslationTrace) if f.name not in (*_ARRAYS, *_KINDS)}
    source, inputs = plain["source_tokens"], plain["decoder_inputs"]
    tokens = {"encoder_self": (source, source), "decoder_self": (inputs, inputs), "cross": (inputs, source)}
    maps = {kind: AttentionMaps(np.asarray(weights[kind], np.float32), *tokens[kind]) for kind in _KINDS}
    rest = {name: np.asarray(arrays[name], type_) for name, type_ in _ARRAYS.items()}
    return TranslationTrace(**plain, **maps, **rest)


def _tuples(value: object) -> object:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
