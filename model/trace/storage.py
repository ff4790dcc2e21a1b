"""A TranslationTrace as a file, exact to the last bit of every float32: JSON for reading, NPZ for computing.

Both hold the fields of TranslationTrace and AttentionMaps under their own names; the maps are nested by kind:

    {"schema": "attention-atlas-trace", "version": 2, "source_text": .., .., "cross": {"weights": [layers, heads, query,
    key], "query_tokens": [..], "key_tokens": [..]}, "interventions": "cross layer 2 head 3 off", "interventions_data":
    {"heads_off": [{"kind": "cross", "layer": 1, "head": 2}]}, ..}

    kinds           the kinds of attention whose maps the file has
    decoding        {"width": 5, "length_penalty": 0.0, "given": 0}; null or absent: unknown
    attention_only  true for a model of another library; otherwise false or absent
    token_facts     the kind (text, symbol, byte) and the word of each token; if absent, they are inferred from the
                    tokens' spelling

Version 1, which still opens, has all three kinds, and interventions only as text. Version 3 is NPZ for long texts:
instead of "cross.weights" it has "cross.queries", "cross.keys" and perhaps "cross.bias", from which the maps are
computed (model.trace.maps), with the other parameters under "computed".

In an NPZ file the arrays are "cross.weights", "top_ids", ..; everything else is JSON text under "fields". There is no
pickle. Files are untrusted: sizes are read from the archive's headers before memory is allocated, entries with other
names are not read, and each field is checked.

>>> from attention_atlas.model.translator import Translator
>>> trace = Translator.load("checkpoints/de-en", device="cpu").translate("Der Hund schläft.")
>>> bool((from_npz(to_npz(trace)).cross.weights == trace.cross.weights).all())
True
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from attention_atlas.model.trace import decoding, interventions_file, is_integer, is_number
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import AttentionMaps, ComputedWeights
from attention_atlas.model.trace.tokens import facts_to_plain, tokens_from_facts, tokens_from_spelling
from attention_atlas.model.trace.translation import TranslationTrace, tokens_of

__all__ = ["from_json", "from_npz", "read_fields", "to_json", "to_npz", "write_npz"]

SCHEMA, VERSION, COMPUTED_VERSION, READABLE = "attention-atlas-trace", 2, 3, (1, 2, 3)
MAX_BYTES = 64_000_000  # of the arrays of any file in memory
MAX_EXPANSION = 8  # for larger files: times the file's size that its arrays may take; compressed weights take 2
MAX_ID = 2**31 - 1


@dataclass(frozen=True)
class _ArrayForm:
    """The dtype, the number of axes and the range of an array in a file. Ranges allow for rounding."""

    dtype: type[np.generic]
    ndim: int
    low: float
    high: float

    def read(self, name: str, data: object) -> np.ndarray:
        """Convert an array of a file, or lists. ValueError if they have another form."""
        array = np.asarray(data)
        if array.ndim != self.ndim or array.dtype.kind not in ("iuf" if self.dtype is np.float32 else "iu"):
            raise ValueError(f"{name} must be numbers of {self.ndim} axes, found {array.dtype} {list(array.shape)}")
        if not ((array >= self.low) & (array <= self.high)).all():
            raise ValueError(f"{name} must be from {self.low:g} to {self.high:g}")
        return np.asarray(array, self.dtype)


_KINDS = tuple(kind.value for kind in AttentionKind)
_WEIGHTS = _ArrayForm(np.float32, 4, -math.inf, math.inf)  # AttentionMaps checks the values
_ARRAYS = {
    "top_ids": _ArrayForm(np.int32, 2, 0, MAX_ID),
    "top_probabilities": _ArrayForm(np.float32, 2, 0.0, 1.001),
    "chosen_rank": _ArrayForm(np.int32, 1, 1, MAX_ID),
    "entropy": _ArrayForm(np.float32, 1, -0.001, 64.0),
    "log_probability": _ArrayForm(np.float32, 1, -math.inf, 0.001),
}
_TOKEN_FIELDS = ("source_tokens", "decoder_inputs", "target_tokens")
_COMPUTED_ARRAYS = ("queries", "keys", "bias")  # of ComputedWeights
_CONVERTED = (
    "interventions",
    "decoding",
    "attention_only",
    "unique",
    "recipe",
)  # or not written
_PLAIN = tuple(f.name for f in fields(TranslationTrace) if f.name not in (*_ARRAYS, *_KINDS, *_CONVERTED))
_REQUIRED = {1: ("interventions",), 2: ("kinds", "interventions_data"), 3: ("kinds", "interventions_data", "computed")}


def to_json(trace: TranslationTrace) -> str:
    """Convert a trace to JSON text, from which from_json() makes an equal one.

    Raises a Refusal for a trace with computed maps, whose numbers would be gigabytes of text.
    """
    if any(trace.maps(kind).is_computed for kind in trace.kinds):
        raise Refusal("This translation is too long for JSON: use NPZ, which stores what its maps are computed from.")
    data = {"schema": SCHEMA, "version": VERSION, **_fields_to_plain(trace)}
    data.update({name: _array_to_lists(getattr(trace, name)) for name in _ARRAYS})
    for kind in trace.kinds:
        maps = trace.maps(kind)
        data[kind.value] = {
            "weights": _array_to_lists(maps.weights),
            "query_tokens": maps.query_tokens,
            "key_tokens": maps.key_tokens,
        }
    return json.dumps(data, ensure_ascii=False)


def from_json(text: str) -> TranslationTrace:
    """Read the result of to_json(). ValueError for anything else."""
    with _raising_value_error("not JSON"):
        data = json.loads(text)
    with _raising_value_error("not a trace"):
        _check_version(data)
        maps = {kind: data.get(kind) for kind in _KINDS}
        weights = {kind: value.get("weights") if isinstance(value, dict) else None for kind, value in maps.items()}
        return _read_trace(data, {name: data.get(name) for name in _ARRAYS}, weights)


def to_npz(trace: TranslationTrace) -> bytes:
    """Convert a trace to the bytes of an NPZ file, from which from_npz() makes an equal one."""
    file = io.BytesIO()
    write_npz(trace, file)
    return file.getvalue()


def write_npz(trace: TranslationTrace, file: IO[bytes] | Path) -> None:
    """Write the bytes of to_npz() to a file, one array at a time."""
    data = {"schema": SCHEMA, "version": VERSION, **_fields_to_plain(trace)}
    arrays, computed = {}, {}
    for kind in trace.kinds:
        weights = trace.maps(kind).weights
        if isinstance(weights, ComputedWeights):
            parts = {name: getattr(weights, name) for name in _COMPUTED_ARRAYS}
            arrays |= {f"{kind.value}.{name}": array for name, array in parts.items() if array is not None}
            computed[kind.value] = {"causal": weights.causal, "scaled": weights.scaled, "cut": weights.cut}
        else:
            arrays[f"{kind.value}.weights"] = weights
    if computed:
        data |= {"version": COMPUTED_VERSION, "computed": computed}
    arrays |= {name: getattr(trace, name) for name in _ARRAYS}
    arrays = {"fields": np.array(json.dumps(data, ensure_ascii=False)), **arrays}
    # Only the text is compressed: compressing the numbers saves a fifth and takes ten times as long.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            entry = f"{name}.npy" if name == "fields" else zipfile.ZipInfo(f"{name}.npy")  # a ZipInfo is stored
            with archive.open(entry, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def read_fields(path: Path) -> dict[str, Any]:
    """Read the JSON fields of a file of write_npz(), without its arrays. ValueError for any other file."""
    with _raising_value_error("not a trace in NPZ format"), path.open("rb") as file:
        return json.loads(str(_read_arrays(file, ("fields",))["fields"]))


def from_npz(data: bytes) -> TranslationTrace:
    """Read the result of to_npz(). ValueError for anything else."""
    parts = ("weights", *_COMPUTED_ARRAYS)
    names = ("fields", *_ARRAYS, *(f"{kind}.{part}" for kind in _KINDS for part in parts))
    with _raising_value_error("not a trace in NPZ format"):
        arrays = _read_arrays(io.BytesIO(data), names)
        values = json.loads(str(arrays["fields"]))
    with _raising_value_error("not a trace"):
        _check_version(values)
        weights: dict[str, Any] = {kind: arrays.get(f"{kind}.weights") for kind in _KINDS}
        if values["version"] == COMPUTED_VERSION:
            computed = dict(values["computed"])
            weights |= {kind: _read_computed(kind, parameters, arrays) for kind, parameters in computed.items()}
        return _read_trace(values, {name: arrays.get(name) for name in _ARRAYS}, weights)


@contextmanager
def _raising_value_error(message: str) -> Iterator[None]:
    """Turn every error that a damaged or hostile file causes into a ValueError."""
    try:
        yield
    except Exception as error:  # zipfile, NumPy and json raise almost anything for hostile bytes
        if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):
            raise  # it already describes the damage
        raise ValueError(f"{message}: {error!s:.200}") from error


def _read_arrays(file: IO[bytes], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Read the arrays of an NPZ file that have one of these names.

    ValueError for an unreadable array and, before anything is read, for arrays that need far more memory than the file.
    """
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        present = {entry.filename: entry for entry in archive.infolist()}
        entries = {name: present[f"{name}.npy"] for name in names if f"{name}.npy" in present}
        total = sum(entry.file_size for entry in entries.values())
        if total > max(MAX_BYTES, MAX_EXPANSION * size):
            raise ValueError(f"not a trace: its arrays would take {total:,} bytes, the file has {size:,}")
        arrays = {}
        for name, entry in entries.items():
            _check_entry(archive, name, entry)
            with archive.open(entry) as part:
                arrays[name] = np.lib.format.read_array(part, allow_pickle=False)
        return arrays


def _check_entry(archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo) -> None:
    """Raise ValueError unless the entry is an array as write_npz() writes it, of the size that the archive says."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"not a trace: {name} has an unsupported compression")
    with archive.open(entry) as part:
        if np.lib.format.read_magic(part) != (1, 0):
            raise ValueError(f"not a trace: {name} has an unsupported version of NPY")
        shape, _, dtype = np.lib.format.read_array_header_1_0(part)
        if (dtype.kind != "U" or shape) if name == "fields" else dtype not in (np.float32, np.int32):
            raise ValueError(f"not a trace: {name} is of {dtype!s:.80} {list(shape)}")
        if math.prod(shape) * dtype.itemsize != entry.file_size - part.tell():
            raise ValueError(f"not a trace: {name} is of {list(shape)}, and has {entry.file_size:,} bytes")


def _read_computed(kind: str, parameters: dict, arrays: dict) -> ComputedWeights:
    """Make ComputedWeights of untrusted fields. ValueError if they do not fit together."""
    queries, keys, bias = (arrays.get(f"{kind}.{name}") for name in _COMPUTED_ARRAYS)
    for array in (queries, keys):
        if array is None or array.ndim != 4 or array.dtype != np.float32 or not array.size:
            raise ValueError(f"the {kind} maps need queries and keys, float32 with four axes")
    layers, heads, num_queries, width = queries.shape
    if (layers, heads, width) != (keys.shape[0], keys.shape[1], keys.shape[3]):
        raise ValueError(f"the {kind} queries are of {list(queries.shape)}, the keys of {list(keys.shape)}")
    if bias is not None and (
        bias.ndim != 3
        or bias.dtype != np.float32
        or len(bias) not in (1, layers)
        or bias.shape[1:] != (heads, num_queries + keys.shape[2] - 1)
    ):
        raise ValueError(f"the {kind} bias of {list(bias.shape)} does not fit its queries and keys")
    if not all(np.isfinite(array).all() for array in (queries, keys, bias) if array is not None):
        raise ValueError(f"the {kind} queries, keys and bias must be finite")
    cut, flags = parameters.get("cut", []), (parameters.get("causal", False), parameters.get("scaled", True))
    if not all(isinstance(flag, bool) for flag in flags):
        raise ValueError(f"causal and scaled of the {kind} maps are true or false")
    edges = [edge for layer in cut for edge in layer]
    if len(cut) not in (0, layers) or not all(
        len(edge) == 3 and all(is_integer(part, 0) or (part is None and n == 2) for n, part in enumerate(edge))
        for edge in edges
    ):
        raise ValueError(f"the {kind} edges that are cut must be (query, key, head) by layer")
    return ComputedWeights(queries, keys, bias, *flags, _to_tuples(cut))


def _fields_to_plain(trace: TranslationTrace) -> dict:
    return {
        **{name: getattr(trace, name) for name in _PLAIN},
        "kinds": [kind.value for kind in trace.kinds],
        "interventions": trace.interventions.describe(),
        "interventions_data": interventions_file.to_plain(trace.interventions),
        "decoding": decoding.to_plain(trace.decoding),
        "attention_only": trace.attention_only,
        "token_facts": {name: facts_to_plain(getattr(trace, name)) for name in _TOKEN_FIELDS}
        | {"top_tokens": [facts_to_plain(row) for row in trace.top_tokens]},
    }


def _array_to_lists(array: np.ndarray) -> list:
    if array.dtype != np.float32:
        return array.tolist()
    # 9 digits give back every float32; the text of its float64 would be half as long again.
    numbers = [float(f"{number:.9g}") for number in array.ravel().tolist()]
    return np.reshape(numbers, array.shape).tolist()


def _check_version(data: object) -> None:
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"not a trace: expected schema {SCHEMA!r}")
    if data.get("version") not in READABLE:
        raise ValueError(
            f"trace version {data.get('version')!r:.80}: this program reads the versions "
            f"{' and '.join(map(str, READABLE))}"
        )


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


# The check of each field of _PLAIN, and what the field must be, for the error.
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("source_text", "direction", "translation", "device", "checkpoint", "digest"),
        (lambda value: isinstance(value, str), "a text"),
    ),
    **dict.fromkeys(
        ("source_ids", "decoder_ids", "target_ids"),
        (lambda value: isinstance(value, list) and all(is_integer(i, 0, MAX_ID) for i in value), "a list of token ids"),
    ),
    **dict.fromkeys(_TOKEN_FIELDS, (_are_texts, "a list of texts")),
    "top_tokens": (lambda value: isinstance(value, list) and all(map(_are_texts, value)), "lists of texts"),
    "finished": (lambda value: isinstance(value, bool), "true or false"),
    "seconds": (lambda value: is_number(value) and 0 <= value < 1e12, "a number from 0"),
}


def _read_trace(data: dict, arrays: dict, weights: dict) -> TranslationTrace:
    # ValueError for numbers that are not finite, and for lone surrogates, which no file and no page can hold.
    texts = {name: value for name, value in data.items() if name not in (*_ARRAYS, *_KINDS)}
    json.dumps(texts, ensure_ascii=False, allow_nan=False).encode()
    kinds = data.get("kinds", ()) if data["version"] > 1 else tuple(kind.value for kind in TRANSFORMER_KINDS)
    if not isinstance(kinds, (list, tuple)) or not all(kind in _KINDS for kind in kinds):
        raise ValueError(f"kinds of attention are {', '.join(_KINDS)}; found {kinds!r:.200}")
    weights = {kind: weights[kind] for kind in kinds}
    missing = [name for name, value in {**arrays, **weights}.items() if value is None]
    missing += [name for name in (*_PLAIN, *_REQUIRED[data["version"]]) if name not in data]
    if missing:
        raise ValueError(f"the trace lacks {', '.join(missing)}")
    for name in _PLAIN:
        is_valid, form = _CHECKS[name]
        if not is_valid(data[name]):
            raise ValueError(f"{name} must be {form}, found {data[name]!r:.80}")
    if not isinstance(data.get("attention_only", False), bool):
        raise ValueError(f"attention_only must be true or false, found {data['attention_only']!r:.80}")
    plain = {name: _to_tuples(data[name]) for name in _PLAIN}
    plain |= _read_tokens(plain, data.get("token_facts"))
    maps: dict[str, AttentionMaps | None] = dict.fromkeys(_KINDS)
    for kind in kinds:
        values = weights[kind] if isinstance(weights[kind], ComputedWeights) else _WEIGHTS.read(kind, weights[kind])
        tokens = tokens_of(AttentionKind(kind), plain["source_tokens"], plain["decoder_inputs"])
        maps[kind] = AttentionMaps(values, *tokens)
    numbers = {name: form.read(name, arrays[name]) for name, form in _ARRAYS.items()}
    rows, width = len(plain["top_tokens"]), numbers["top_ids"].shape[1]
    if numbers["top_probabilities"].shape != (rows, width) or any(len(row) != width for row in plain["top_tokens"]):
        raise ValueError("top_ids, top_tokens and top_probabilities are not of one shape")
    return TranslationTrace(
        **plain,
        **maps,
        **numbers,
        # Version 1 has only a description, which can be shown but not repeated.
        interventions=Interventions(in_words=str(data["interventions"]))
        if data["version"] == 1
        else interventions_file.from_plain(data["interventions_data"]),
        decoding=decoding.from_plain(data.get("decoding")),
        attention_only=data.get("attention_only", False),
    )


def _read_tokens(plain: dict, facts: object) -> dict:
    """Return the token fields as Tokens with their facts."""
    if facts is None:
        return {name: tokens_from_spelling(plain[name]) for name in _TOKEN_FIELDS} | {
            "top_tokens": tuple(map(tokens_from_spelling, plain["top_tokens"]))
        }
    if not isinstance(facts, dict) or set(facts) != {*_TOKEN_FIELDS, "top_tokens"}:
        raise ValueError(f"token_facts must be of {', '.join(_TOKEN_FIELDS)} and top_tokens, found {facts!r:.200}")
    if not isinstance(facts["top_tokens"], list) or len(facts["top_tokens"]) != len(plain["top_tokens"]):
        raise ValueError(f"token_facts must be of {len(plain['top_tokens'])} rows of top_tokens")
    return {name: tokens_from_facts(plain[name], facts[name]) for name in _TOKEN_FIELDS} | {
        "top_tokens": tuple(map(tokens_from_facts, plain["top_tokens"], facts["top_tokens"]))
    }


def _to_tuples(value: object) -> object:
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
