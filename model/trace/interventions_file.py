"""Interventions as plain JSON-ready data, and back. Importable without torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields, replace

from attention_atlas.model.trace import check_integer
from attention_atlas.model.trace import edits as edits_file
from attention_atlas.model.trace.edits import Add, Edit, SteeringVector
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
from attention_atlas.model.trace.kinds import AttentionKind, Side, SubLayerName

MOST = 1000  # changes that somebody else may ask for at once
MOST_RECIPES = 16  # of them that take a pass over two sentences each
_PLACES = {"head_output": HeadOutput, "sublayer_output": SubLayerOutput, "stream": Stream}


def to_plain(interventions: Interventions) -> dict:
    """What differs from the plain model, by field; {} for nothing. Sets become sorted lists, so that equal
    interventions give equal data."""
    found = {}
    for field in fields(Interventions):
        value = getattr(interventions, field.name)
        if value != getattr(NO_INTERVENTIONS, field.name):
            found[field.name] = _WRITE.get(field.name, _data)(value)
    return found


def from_plain(found: object) -> Interventions:
    """What to_plain() gave. ValueError, in words, for anything else."""
    if not isinstance(found, dict) or not set(found) <= set(_READ):
        raise ValueError(f"interventions are an object of {', '.join(_READ)}; found {found!r:.200}")
    return Interventions(**{name: _read(name, value) for name, value in found.items()})


def _read(name: str, value: object) -> object:
    try:
        return _READ[name](value)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"interventions: these are no {name}: {value!r:.200}") from error


def requested(found: object) -> Interventions:
    """What to_plain() gave, as somebody else asks for it. ValueError, in words, for what is not, or cannot be run from
    there."""
    made = from_plain(found)
    if made.patches or made.in_words:
        raise ValueError('what interventions put in place of something are edits: "replace" at a place, with a value')
    if (n := sum(map(len, (made.heads_off, made.cut_edges, made.zeroed_edges, made.edits)))) > MOST:
        raise ValueError(f"interventions are at most {MOST:,} at once, found {n:,}")
    recipes = [edit for _, edit in made.edits if isinstance(edit, Add) and isinstance(edit.value, SteeringVector)]
    if len(recipes) > MOST_RECIPES:
        raise ValueError(f"directions made of sentences are at most {MOST_RECIPES} at once, found {len(recipes)}")
    return made


def to_text(interventions: Interventions, longest: int) -> str | None:
    """What requested() takes, as JSON; "" for nothing. Of a recipe its sentences alone: whoever reads it finds the
    vector again. None for what cannot be asked for, or takes more than so many characters."""
    if not interventions:
        return ""
    edits = tuple((place, _without_vector(edit)) for place, edit in interventions.edits)
    found = to_plain(replace(interventions, edits=edits))
    try:
        requested(found)
    except ValueError:
        return None
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= longest else None


def from_text(text: str) -> Interventions:
    """What to_text() gave. ValueError, in words, for anything else."""
    if not text:
        return NO_INTERVENTIONS
    try:
        return requested(json.loads(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"changes to the model that are no JSON: {error}") from error


def _without_vector(edit: Edit) -> Edit:
    made_by = isinstance(edit, Add) and isinstance(edit.value, SteeringVector)
    return replace(edit, value=replace(edit.value, vector=None)) if made_by else edit


def _data(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted((_data(part) for part in value), key=repr)
    return asdict(value) if isinstance(value, (Edge, Positions)) else value


def _patches(patches: frozenset[Patch]) -> list[dict]:
    names = {type_: name for name, type_ in _PLACES.items()}
    return sorted(
        ({"place": names[type(patch.place)], **asdict(patch.place), "positions": patch.positions} for patch in patches),
        key=repr,
    )


def _maybe(read: Callable) -> Callable:
    return lambda value: None if value is None else read(value)


def _integer(value: object) -> int:
    return check_integer("a number", value)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {value!r}")
    return value


# How each field of the plain values is read; a name that is not here is refused.
_FIELDS: dict[str, Callable] = {
    "kind": AttentionKind,
    "side": Side,
    "sublayer": SubLayerName,
    "query": _integer,
    "key": _integer,
    "shift": _integer,
    "enabled": _truth,
    "after": _maybe(SubLayerName),
    "layer": _integer,
    "head": _integer,
}
_EDGE = {**_FIELDS, "layer": _maybe(_integer), "head": _maybe(_integer)}


def _object(type_: type, values: dict, read: dict[str, Callable] = _FIELDS) -> object:
    return type_(**{name: read[name](value) for name, value in values.items()})


def _head(values: list) -> tuple[AttentionKind, int, int]:
    if not isinstance(values, (list, tuple)) or len(values) != 3:
        raise ValueError(f"a head is its kind, its layer and its number, found {values!r:.80}")
    kind, layer, head = values
    return AttentionKind(kind), check_integer("layer", layer), check_integer("head", head)


def _edges(values: list) -> frozenset[Edge]:
    return frozenset(_object(Edge, edge, _EDGE) for edge in values)


def _patch(values: dict) -> Patch:
    positions = values["positions"]
    place = {name: value for name, value in values.items() if name not in ("place", "positions")}
    return Patch(
        _object(_PLACES[values["place"]], place), None if positions is None else tuple(map(_integer, positions))
    )


def _words(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected words, found {value!r}")
    return value


_WRITE: dict[str, Callable] = {"patches": _patches, "edits": edits_file.to_plain}
_READ: dict[str, Callable] = {
    "heads_off": lambda values: frozenset(map(_head, values)),
    "cut_edges": _edges,
    "zeroed_edges": _edges,
    "source_positions": lambda value: _object(Positions, value),
    "target_positions": lambda value: _object(Positions, value),
    "patches": lambda values: frozenset(map(_patch, values)),
    "edits": edits_file.from_plain,
    "in_words": _words,
}
