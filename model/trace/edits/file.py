"""Edits as plain JSON-ready data, and back."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from attention_atlas.model.trace.edits.values import Ablate, Add, Edit, Numbers, Recipe, Replace, Scale

KINDS = {"add": Add, "replace": Replace, "scale": Scale, "ablate": Ablate}


def to_plain(edits: tuple[tuple[str, Edit], ...]) -> list[dict]:
    """An object for each, in order: its place, its kind and its fields; numbers as a shape and base64 of float32, a
    recipe as its sentences and, where it was found, its vector."""
    names = {type_: name for name, type_ in KINDS.items()}
    return [
        {"place": place, "kind": names[type(edit)], **{name: _plain(value) for name, value in vars(edit).items()}}
        for place, edit in edits
    ]


def from_plain(found: list) -> tuple[tuple[str, Edit], ...]:
    """What to_plain() gave. ValueError, in words, for anything else."""
    if not isinstance(found, list) or not all(isinstance(edit, dict) for edit in found):
        raise ValueError(f"edits are a list of objects, found {found!r:.80}")
    return tuple(map(_edit, found))


def _edit(found: dict) -> tuple[str, Edit]:
    values = dict(found)
    place, kind = values.pop("place", None), values.pop("kind", None)
    if not isinstance(place, str) or kind not in KINDS:
        raise ValueError(f"an edit has a place and a kind of {', '.join(KINDS)}, found {found!r:.80}")
    try:
        return place, KINDS[kind](**{name: READ[name](value) for name, value in values.items()})
    except (KeyError, TypeError) as error:
        raise ValueError(f"an edit that cannot be read: {error}") from error


def _as_it_is(found: Any) -> Any:
    return found  # the edit itself looks at it


def _counted(found: Any) -> tuple | None:
    return tuple(found) if isinstance(found, list) else found


def _plain(value: object) -> object:
    if isinstance(value, Recipe):
        return {name: _plain(found) for name, found in vars(value).items() if found is not None}
    if isinstance(value, Numbers):
        return {"shape": list(value.shape), "float32": base64.b64encode(value.data).decode()}
    return list(value) if isinstance(value, tuple) else value


def _value(found: Any) -> Numbers | Recipe:
    if not isinstance(found, dict) or "towards" not in found:
        return _numbers(found)
    values = dict(found)
    vector = values.pop("vector", None)
    if not values.keys() <= {"towards", "away", "languages"} or not all(isinstance(v, str) for v in values.values()):
        raise ValueError(f"a recipe is of the texts towards and away, and of languages, found {found!r:.80}")
    return Recipe(**values, vector=None if vector is None else _numbers(vector))


def _numbers(found: Any) -> Numbers:
    try:
        numbers = Numbers(tuple(map(int, found["shape"])), base64.b64decode(found["float32"], validate=True))
        checked = Numbers.of(numbers.array)
        assert isinstance(checked, Numbers)  # an array makes no recipe
        return checked
    except (TypeError, KeyError, ValueError, binascii.Error) as error:
        raise ValueError(f"an edit's numbers are a shape and base64 of float32: {error}") from error


# How each field is read; a name that is not here is refused.
READ = {"value": _value, "strength": _as_it_is, "by": _as_it_is, "positions": _counted, "heads": _counted}
