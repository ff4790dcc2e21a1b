"""Interventions as plain JSON-ready data, and back. Importable without torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields

from model.trace import whole
from model.trace.edits import file as edits_file
from model.trace.interventions import (
    NO_INTERVENTIONS,
    Edge,
    HeadOutput,
    Interventions,
    Patch,
    Positions,
    Stream,
    SubLayerOutput,
)
from model.trace.kinds import AttentionKind, Side, SubLayerName

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
    try:
        return Interventions(**{name: _READ[name](value) for name, value in found.items()})
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"interventions that cannot be read: {error}") from error


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


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {value!r}")
    return value


# How each field of the plain values is read; a name that is not here is refused.
_FIELDS: dict[str, Callable] = {
    "kind": AttentionKind,
    "side": Side,
    "sublayer": SubLayerName,
    "query": whole,
    "key": whole,
    "shift": whole,
    "enabled": _truth,
    "after": _maybe(SubLayerName),
    "layer": whole,
    "head": whole,
}
_EDGE = {**_FIELDS, "layer": _maybe(whole), "head": _maybe(whole)}


def _object(type_: type, values: dict, read: dict[str, Callable] = _FIELDS) -> object:
    return type_(**{name: read[name](value) for name, value in values.items()})


def _head(values: list) -> tuple[AttentionKind, int, int]:
    kind, layer, head = values
    return AttentionKind(kind), whole(layer), whole(head)


def _edges(values: list) -> frozenset[Edge]:
    return frozenset(_object(Edge, edge, _EDGE) for edge in values)


def _patch(values: dict) -> Patch:
    positions = values["positions"]
    place = {name: value for name, value in values.items() if name not in ("place", "positions")}
    return Patch(_object(_PLACES[values["place"]], place), None if positions is None else tuple(map(whole, positions)))


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
