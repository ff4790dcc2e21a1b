"""A TranslationTrace as a file, exact to the last bit of every float32: JSON for reading, NPZ for computing.

Schema 2, the same in both. Each field of TranslationTrace and AttentionMaps has its own name (see translation.py and
maps.py); the maps are nested by kind:

    {"schema": "attention-atlas-trace", "version": 2, "source_text": .., .., "cross": {"weights": [layers, heads, query,
    key], "query_tokens": [..], "key_tokens": [..]}, "interventions": "cross layer 2 head 3 off", "interventions_data":
    {"heads_off": [{"kind": "cross", "layer": 1, "head": 2}]}, ..}

"kinds" lists the maps that there are. Version 1, which still opens, had all three, and of interventions only the words.
"decoding" says how the target was decoded, {"width": 5, "length_penalty": 0.0, "given": 0}; null or absent: not known.
"attention_only": true for a model of another library; otherwise false or absent.
"token_facts" says of each token whether it is text, a symbol or a byte, and of which word; if a file lacks it, it
is inferred from the spelling.
Version 3 is NPZ for a text so long that its maps are not kept: in place of "cross.weights" it has "cross.queries",
"cross.keys" and perhaps "cross.bias", and under "computed" how maps follow from them (model.trace.maps).
NPZ: the arrays under "cross.weights", "top_ids", ..; everything else as JSON text under "fields". No pickle.
A file is untrusted: sizes are read from the archive's headers before any memory is taken, entries of other names are
not read, and each field is checked.
Importable without torch.

>>> from attention_atlas.model.translator import Translator
>>> trace = Translator.load("checkpoints/de-en", device="cpu").translate("Der Hund schläft.")
>>> bool((from_npz(to_npz(trace)).cross.weights == trace.cross.weights).all())
True
"""

from __future__ import annotations

import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
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
from attention_atlas.model.trace.tokens import facts, told_by_spelling, with_facts
from attention_atlas.model.trace.translation import TranslationTrace, tokens_of

__all__ = ["from_json", "from_npz", "read_fields", "to_json", "to_npz", "write_npz"]

SCHEMA, VERSION, COMPUTED, READABLE = "attention-atlas-trace", 2, 3, (1, 2, 3)
_KINDS = tuple(kind.value for kind in AttentionKind)
ROOM = 64_000_000  # bytes that the arrays of any file may take in memory
GROWTH = 8  # times a file's own size that its arrays may take where that is more: compressed weights take 2


@dataclass(frozen=True)
class _Numbers:
    """The form of an array: its axes, and the least and the greatest number. A limit leaves room for rounding."""

    dtype: type[np.generic]
    ndim: int
    least: float
    most: float

    def read(self, name: str, found: object) -> np.ndarray:
        """ValueError for anything else. found: an array of a file, or lists."""
        array = np.asarray(found)
        if array.ndim != self.ndim or array.dtype.kind not in ("iuf" if self.dtype is np.float32 else "iu"):
            raise ValueError(f"{name} must be numbers of {self.ndim} axes, found {array.dtype} {list(array.shape)}")
        if not ((array >= self.least) & (array <= self.most)).all():
            raise ValueError(f"{name} must be from {self.least:g} to {self.most:g}")
        return np.asarray(array, self.dtype)


LARGEST_ID = 2**31 - 1
_WEIGHTS = _Numbers(np.float32, 4, -math.inf, math.inf)  # AttentionMaps checks what they are
_ARRAYS = {
    "top_ids": _Numbers(np.int32, 2, 0, LARGEST_ID),
    "top_probabilities": _Numbers(np.float32, 2, 0.0, 1.001),
    "chosen_rank": _Numbers(np.int32, 1, 1, LARGEST_ID),
    "entropy": _Numbers(np.float32, 1, -0.001, 64.0),
    "log_probability": _Numbers(np.float32, 1, -math.inf, 0.001),
}
_SENTENCES = ("source_tokens", "decoder_inputs", "target_tokens")
_NEEDED = {1: ("interventions",), 2: ("kinds", "interventions_data"), 3: ("kinds", "interventions_data", "computed")}
_HELD = ("queries", "keys", "bias")  # the arrays of ComputedWeights
_OWN_FORM = ("interventions", "decoding", "attention_only", "unique", "recipe")
_PLAIN = tuple(f.name for f in fields(TranslationTrace) if f.name not in (*_ARRAYS, *_KINDS, *_OWN_FORM))
LEAST = 1e-12  # the numbers from here to 1 need no larger power of ten than these, which float64 holds exactly
TENS = np.array([float(f"1e{n}") for n in range(23)])
# What reading a damaged or hostile file raises besides ValueError.
DAMAGE = (
    OSError,
    EOFError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    RuntimeError,  # also of deep nesting, of encryption and of unknown compression
    SyntaxError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def to_json(trace: TranslationTrace) -> str:
    """The trace as JSON text; from_json() gives back an equal one. A Refusal for one so long that its maps are not
    kept: its numbers would be gigabytes of text."""
    if any(trace.maps(kind).computed for kind in trace.kinds):
        raise Refusal("This translation is too long for JSON: take NPZ, which holds what its maps are computed from.")
    found = {"schema": SCHEMA, "version": VERSION, **_plain(trace)}
    found.update({name: _numbers(getattr(trace, name)) for name in _ARRAYS})
    for kind in trace.kinds:
        maps = trace.maps(kind)
        found[kind.value] = {
            "weights": _numbers(maps.weights),
            "query_tokens": maps.query_tokens,
            "key_tokens": maps.key_tokens,
        }
    return json.dumps(found, ensure_ascii=False)


def from_json(text: str) -> TranslationTrace:
    """The trace of to_json()'s text. ValueError if it is anything else."""
    with _refusing("not JSON"):
        found = json.loads(text)
    with _refusing("not a trace"):
        _check(found)
        maps = {kind: found.get(kind) for kind in _KINDS}
        weights = {kind: one.get("weights") if isinstance(one, dict) else None for kind, one in maps.items()}
        return _trace(found, {name: found.get(name) for name in _ARRAYS}, weights)


def to_npz(trace: TranslationTrace) -> bytes:
    """The trace as the bytes of an .npz file; from_npz() gives back an equal one."""
    written = io.BytesIO()
    write_npz(trace, written)
    return written.getvalue()


def write_npz(trace: TranslationTrace, file: IO[bytes] | Path) -> None:
    """to_npz()'s bytes into a file, an array at a time."""
    found = {"schema": SCHEMA, "version": VERSION, **_plain(trace)}
    arrays, computed = {}, {}
    for kind in trace.kinds:
        weights = trace.maps(kind).weights
        if isinstance(weights, ComputedWeights):
            held = {name: getattr(weights, name) for name in _HELD}
            arrays |= {f"{kind.value}.{name}": array for name, array in held.items() if array is not None}
            computed[kind.value] = {"causal": weights.causal, "scaled": weights.scaled, "cut": weights.cut}
        else:
            arrays[f"{kind.value}.weights"] = weights
    if computed:
        found |= {"version": COMPUTED, "computed": computed}
    arrays |= {name: getattr(trace, name) for name in _ARRAYS}
    arrays = {"fields": np.array(json.dumps(found, ensure_ascii=False)), **arrays}
    # Packing the numbers, too, saves a fifth for ten times as long; packing the fields harder, 0.4 % for two fifths
    # more.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            entry = f"{name}.npy" if name == "fields" else zipfile.ZipInfo(f"{name}.npy")  # the latter is stored
            with archive.open(entry, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def read_fields(path: Path) -> dict[str, Any]:
    """What stands in a file of write_npz() beside the arrays. ValueError if it is anything else."""
    with _refusing("not a trace in NPZ format"), path.open("rb") as file:
        return json.loads(str(_arrays(file, ("fields",))["fields"]))


def from_npz(data: bytes) -> TranslationTrace:
    """The trace of to_npz()'s bytes. ValueError if they are anything else."""
    parts = ("weights", *_HELD)
    names = ("fields", *_ARRAYS, *(f"{kind}.{part}" for kind in _KINDS for part in parts))
    with _refusing("not a trace in NPZ format"):
        arrays = _arrays(io.BytesIO(data), names)
        found = json.loads(str(arrays["fields"]))
    with _refusing("not a trace"):
        _check(found)
        weights: dict[str, Any] = {kind: arrays.get(f"{kind}.weights") for kind in _KINDS}
        if found["version"] == COMPUTED:
            weights |= {kind: _computed(kind, how, arrays) for kind, how in dict(found["computed"]).items()}
        return _trace(found, {name: arrays.get(name) for name in _ARRAYS}, weights)


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """ValueError, in words, for whatever a damaged or hostile file raises."""
    try:
        yield
    except (*DAMAGE, json.JSONDecodeError) as error:
        raise ValueError(f"{what}: {error!s:.200}") from error


def _arrays(file: IO[bytes], names: Iterable[str]) -> dict[str, np.ndarray]:
    """The arrays of an .npz file that have one of these names. ValueError for what cannot be read, and before anything
    is, for arrays that would take far more memory than the file."""
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        present = {entry.filename: entry for entry in archive.infolist()}
        entries = {name: present[f"{name}.npy"] for name in names if f"{name}.npy" in present}
        total = sum(entry.file_size for entry in entries.values())
        if total > max(ROOM, GROWTH * size):
            raise ValueError(f"not a trace: its arrays would take {total:,} bytes, the file has {size:,}")
        found = {}
        for name, entry in entries.items():
            _check_entry(archive, name, entry)
            with archive.open(entry) as part:
                found[name] = np.lib.format.read_array(part, allow_pickle=False)
        return found


def _check_entry(archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo) -> None:
    """ValueError unless an entry is an array as write_npz() makes it, of the size that the archive says."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"not a trace: {name} is compressed in another way")
    with archive.open(entry) as part:
        if np.lib.format.read_magic(part) != (1, 0):
            raise ValueError(f"not a trace: {name} is of another version of NPY")
        shape, _, dtype = np.lib.format.read_array_header_1_0(part)
        if (dtype.kind != "U" or shape) if name == "fields" else dtype not in (np.float32, np.int32):
            raise ValueError(f"not a trace: {name} is of {dtype!s:.80} {list(shape)}")
        if math.prod(shape) * dtype.itemsize != entry.file_size - part.tell():
            raise ValueError(f"not a trace: {name} is of {list(shape)}, and has {entry.file_size:,} bytes")


def _computed(kind: str, how: dict, arrays: dict) -> ComputedWeights:
    """What computes a kind's maps, of untrusted fields. ValueError for what cannot."""
    queries, keys, bias = (arrays.get(f"{kind}.{name}") for name in _HELD)
    for array in (queries, keys):
        if array is None or array.ndim != 4 or array.dtype != np.float32 or not array.size:
            raise ValueError(f"the {kind} maps need queries and keys, float32 with four axes")
    heads = (queries.shape[0], queries.shape[1], queries.shape[3])
    if heads != (keys.shape[0], keys.shape[1], keys.shape[3]):
        raise ValueError(f"the {kind} queries are of {list(queries.shape)}, the keys of {list(keys.shape)}")
    if bias is not None and (
        bias.ndim != 3
        or bias.dtype != np.float32
        or len(bias) not in (1, heads[0])
        or bias.shape[1:] != (heads[1], queries.shape[2] + keys.shape[2] - 1)
    ):
        raise ValueError(f"the {kind} bias of {list(bias.shape)} does not fit its queries and keys")
    if not all(np.isfinite(array).all() for array in (queries, keys, bias) if array is not None):
        raise ValueError(f"the {kind} queries, keys and bias must be finite")
    cut, switches = how.get("cut", []), (how.get("causal", False), how.get("scaled", True))
    if not all(isinstance(switch, bool) for switch in switches):
        raise ValueError(f"causal and scaled of the {kind} maps are true or false")
    edges = [edge for layer in cut for edge in layer]
    if len(cut) not in (0, heads[0]) or not all(
        len(edge) == 3 and all(is_integer(part, 0) or (part is None and n == 2) for n, part in enumerate(edge))
        for edge in edges
    ):
        raise ValueError(f"the {kind} edges that are cut must be (query, key, head) by layer")
    return ComputedWeights(queries, keys, bias, *switches, _tuples(cut))


def _plain(trace: TranslationTrace) -> dict:
    plain = {name: getattr(trace, name) for name in _PLAIN}
    return {
        **plain,
        "kinds": [kind.value for kind in trace.kinds],
        "interventions": trace.interventions.describe(),
        "interventions_data": interventions_file.to_plain(trace.interventions),
        "decoding": decoding.to_plain(trace.decoding),
        "attention_only": trace.attention_only,
        "token_facts": {name: facts(getattr(trace, name)) for name in _SENTENCES}
        | {"top_tokens": [facts(row) for row in trace.top_tokens]},
    }


def _numbers(array: np.ndarray) -> list:
    if array.dtype != np.float32:
        return array.tolist()
    return _shortest(array).tolist()


def _shortest(array: np.ndarray) -> np.ndarray:
    """float64 whose text is the shortest decimal that reads back as this float32: half as long as that of the same
    number as a float64. Of numbers of an ordinary size by rounding to 6 to 9 digits, which is twelve times faster than
    by numpy's text, from which all others are read."""
    values = array.astype(np.float64).ravel()
    found, size = np.zeros_like(values), np.abs(values)
    left = np.flatnonzero((size >= LEAST) & (size < 1))
    other = np.flatnonzero((size > 0) & (size < LEAST) | ~(size < 1))
    for digits in (6, 7, 8, 9):
        # Tens up to 1e22 are exact, and so a quotient by one is the float64 that its decimal's text is read as.
        tens = TENS[digits - 1 - np.floor(np.log10(size[left])).astype(int)]
        rounded = np.rint(values[left] * tens) / tens
        same = rounded.astype(np.float32) == values[left]
        found[left[same]] = rounded[same]
        left = left[~same]
    other = np.concatenate([other, left])
    found[other] = array.ravel()[other].astype("U").astype(np.float64)
    return np.where(size == 0, values, found).reshape(array.shape)


def _check(found: object) -> None:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise ValueError(f"not a trace: expected schema {SCHEMA!r}")
    if found.get("version") not in READABLE:
        raise ValueError(
            f"trace version {found.get('version')!r:.80}: this program reads the versions "
            f"{' and '.join(map(str, READABLE))}"
        )


def _is_text(found: object) -> bool:
    return isinstance(found, str)


def _are_texts(found: object) -> bool:
    return isinstance(found, list) and all(map(_is_text, found))


def _are_ids(found: object) -> bool:
    return isinstance(found, list) and all(is_integer(i, 0, LARGEST_ID) for i in found)


# The form of each field of _PLAIN, and its name in words.
_FORMS: dict[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(
        ("source_text", "direction", "translation", "device", "checkpoint", "digest"), (_is_text, "a text")
    ),
    **dict.fromkeys(("source_ids", "decoder_ids", "target_ids"), (_are_ids, "a list of token ids")),
    **dict.fromkeys(_SENTENCES, (_are_texts, "a list of texts")),
    "top_tokens": (lambda found: isinstance(found, list) and all(map(_are_texts, found)), "lists of texts"),
    "finished": (lambda found: isinstance(found, bool), "true or false"),
    "seconds": (lambda found: is_number(found) and 0 <= found < 1e12, "a number from 0"),
}


def _trace(found: dict, arrays: dict, weights: dict) -> TranslationTrace:
    # ValueError for numbers that are not finite, and for lone surrogates, which no file and no page can hold.
    rest = {name: value for name, value in found.items() if name not in (*_ARRAYS, *_KINDS)}
    json.dumps(rest, ensure_ascii=False, allow_nan=False).encode()
    kinds = found.get("kinds", ()) if found["version"] > 1 else tuple(kind.value for kind in TRANSFORMER_KINDS)
    if not isinstance(kinds, (list, tuple)) or not all(kind in _KINDS for kind in kinds):
        raise ValueError(f"kinds of attention are {', '.join(_KINDS)}; found {kinds!r:.200}")
    weights = {kind: weights[kind] for kind in kinds}
    absent = [name for name, value in {**arrays, **weights}.items() if value is None]
    absent += [name for name in (*_PLAIN, *_NEEDED[found["version"]]) if name not in found]
    if absent:
        raise ValueError(f"the trace lacks {', '.join(absent)}")
    for name in _PLAIN:
        has_form, form = _FORMS[name]
        if not has_form(found[name]):
            raise ValueError(f"{name} must be {form}, found {found[name]!r:.80}")
    if not isinstance(found.get("attention_only", False), bool):
        raise ValueError(f"attention_only must be true or false, found {found['attention_only']!r:.80}")
    plain = {name: _tuples(found[name]) for name in _PLAIN}
    plain |= _told(plain, found.get("token_facts"))
    maps = {
        kind: None
        if kind not in kinds
        else AttentionMaps(
            weights[kind] if isinstance(weights[kind], ComputedWeights) else _WEIGHTS.read(kind, weights[kind]),
            *tokens_of(AttentionKind(kind), plain["source_tokens"], plain["decoder_inputs"]),
        )
        for kind in _KINDS
    }
    numbers = {name: form.read(name, arrays[name]) for name, form in _ARRAYS.items()}
    if not {len(row) for row in plain["top_tokens"]} <= {width := numbers["top_ids"].shape[1]} or numbers[
        "top_probabilities"
    ].shape != (len(plain["top_tokens"]), width):
        raise ValueError("top_ids, top_tokens and top_probabilities are not of one shape")
    return TranslationTrace(
        **plain,
        **maps,
        **numbers,
        interventions=_interventions(found),
        decoding=decoding.from_plain(found.get("decoding")),
        attention_only=found.get("attention_only", False),
    )


def _told(plain: dict, known: object) -> dict:
    """The tokens with their facts, by field."""
    if known is None:
        return {name: told_by_spelling(plain[name]) for name in _SENTENCES} | {
            "top_tokens": tuple(map(told_by_spelling, plain["top_tokens"]))
        }
    if not isinstance(known, dict) or set(known) != {*_SENTENCES, "top_tokens"}:
        raise ValueError(f"token_facts must be of {', '.join(_SENTENCES)} and top_tokens, found {known!r:.200}")
    if not isinstance(known["top_tokens"], list) or len(known["top_tokens"]) != len(plain["top_tokens"]):
        raise ValueError(f"token_facts must be of {len(plain['top_tokens'])} rows of top_tokens")
    return {name: with_facts(plain[name], known[name]) for name in _SENTENCES} | {
        "top_tokens": tuple(map(with_facts, plain["top_tokens"], known["top_tokens"]))
    }


def _interventions(found: dict) -> Interventions:
    if found["version"] == 1:  # prose: what it says can be shown, not run
        return Interventions(in_words=str(found["interventions"]))
    return interventions_file.from_plain(found["interventions_data"])


def _tuples(value: object) -> object:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
