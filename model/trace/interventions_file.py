"""Interventions as JSON-ready data: in files, links and API requests.

The dataclasses of model.trace.interventions check their own fields; this module only converts between them and JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from typing import Any

from attention_atlas.model.files import value_errors
from attention_atlas.model.trace import edits as edits_file
from attention_atlas.model.trace.edits import Add, SteeringVector
from attention_atlas.model.trace.interventions import (
    NO_INTERVENTIONS,
    Edge,
    HeadOutput,
    Interventions,
    Patch,
    Positions,
    Stream,
    SubLayerOutput,
)

MAX_CHANGES = 1000  # in one request
MAX_STEERING_VECTORS = 16  # in one request; each takes a pass over two texts
_PLACES = {"head_output": HeadOutput, "sublayer_output": SubLayerOutput, "stream": Stream}


def to_plain(interventions: Interventions) -> dict:
    """Convert to {field: value} of the fields that differ from the plain model; {} for no interventions.

    Sets become sorted lists, so that equal interventions give equal data.
    """
    return {
        field.name: edits_file.to_plain(value) if field.name == "edits" else _to_plain(value)
        for field in fields(Interventions)
        if (value := getattr(interventions, field.name)) != getattr(NO_INTERVENTIONS, field.name)
    }


def from_plain(data: object) -> Interventions:
    """Read the result of to_plain(). ValueError for anything else."""
    if not isinstance(data, dict) or not set(data) <= {field.name for field in fields(Interventions)}:
        names = ", ".join(field.name for field in fields(Interventions))
        raise ValueError(f"interventions are an object of {names}; found {data!r:.200}")
    values = {}
    for name, value in data.items():
        try:
            values[name] = _READERS[name](value)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"interventions: {name} cannot be read: {value!r:.200}") from error
    return Interventions(**values)


def from_request(data: object) -> Interventions:
    """Read the result of to_plain() from an untrusted client.

    ValueError for anything else, for interventions that the server cannot run (patches, text), and for too many.
    """
    interventions = from_plain(data)
    if interventions.patches or interventions.in_words:
        raise ValueError('patches cannot be requested: replacements of values are edits, of the kind "replace"')
    changes = (interventions.heads_off, interventions.cut_edges, interventions.zeroed_edges, interventions.edits)
    if (n := sum(map(len, changes))) > MAX_CHANGES:
        raise ValueError(f"interventions are at most {MAX_CHANGES:,} at once, found {n:,}")
    if (n := sum(_has_steering_vector(edit) for _, edit in interventions.edits)) > MAX_STEERING_VECTORS:
        raise ValueError(f"steering vectors are at most {MAX_STEERING_VECTORS} at once, found {n}")
    return interventions


def to_text(interventions: Interventions, max_length: int) -> str | None:
    """Convert to the JSON text that from_text() reads; "" for no interventions.

    Of a steering vector only the texts are written, since the reader can compute it again. Returns None if from_text()
    would refuse the interventions, or for more than `max_length` characters.
    """
    if not interventions:
        return ""
    edits = [
        (place, replace(edit, value=replace(edit.value, vector=None)) if _has_steering_vector(edit) else edit)
        for place, edit in interventions.edits
    ]
    data = to_plain(replace(interventions, edits=edits))
    try:
        from_request(data)
    except ValueError:
        return None
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= max_length else None


def from_text(text: str) -> Interventions:
    """Read the result of to_text() from an untrusted client. ValueError for anything else."""
    if not text:
        return NO_INTERVENTIONS
    with value_errors("interventions must be JSON", json.JSONDecodeError, RecursionError):
        return from_request(json.loads(text))


def _has_steering_vector(edit: object) -> bool:
    return isinstance(edit, Add) and isinstance(edit.value, SteeringVector)


def _to_plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(map(_to_plain, value), key=repr)
    if isinstance(value, Patch):
        name = next(name for name, type_ in _PLACES.items() if type(value.place) is type_)
        return {"place": name, **asdict(value.place), "positions": value.positions}
    if isinstance(value, (Edge, Positions)):
        return asdict(value)
    return value


def _read_patch(data: dict) -> Patch:
    place = {name: value for name, value in data.items() if name not in ("place", "positions")}
    return Patch(_PLACES[data["place"]](**place), data["positions"])


def _read_in_words(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"in_words must be a text, found {value!r:.80}")
    return value


_READERS: dict[str, Callable[[Any], object]] = {
    "heads_off": list,
    "cut_edges": lambda edges: [Edge(**edge) for edge in edges],
    "zeroed_edges": lambda edges: [Edge(**edge) for edge in edges],
    "source_positions": lambda positions: Positions(**positions),
    "target_positions": lambda positions: Positions(**positions),
    "patches": lambda patches: [_read_patch(patch) for patch in patches],
    "edits": edits_file.from_plain,
    "in_words": _read_in_words,
}
