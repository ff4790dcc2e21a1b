"""Edits: what to do with the numbers at a named place of a forward pass, as plain values, and their JSON form.

>>> Add([1.0, 2.0], positions=(3,)) == Add([1, 2], positions=[3])
True
>>> Scale(0.5).describe()
'times 0.5'
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.files import value_errors
from attention_atlas.model.trace import check_integer, is_number

__all__ = ["Ablate", "Add", "Edit", "Numbers", "Replace", "Scale", "SteeringVector"]


@dataclass(frozen=True)
class Numbers:
    """A float32 array that can be compared, hashed and written to a file, as its shape and its bytes."""

    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, values: Any) -> Numbers | SteeringVector:
        """Convert an array, a CPU tensor, a list or a number; return Numbers and a SteeringVector unchanged.

        -0.0 becomes 0.0, so that equal numbers have equal bytes. Raises ValueError unless all numbers are finite.
        """
        if isinstance(values, (Numbers, SteeringVector)):
            return values
        array = np.ascontiguousarray(values.detach().float() if hasattr(values, "detach") else values, np.float32)
        if not np.isfinite(array).all():
            raise ValueError("an edit's values must be finite numbers")
        return cls(array.shape, (array + np.float32(0)).tobytes())

    @property
    def array(self) -> np.ndarray:
        """The array, float32 and read-only."""
        return np.frombuffer(self.data, np.float32).reshape(self.shape)


@dataclass(frozen=True)
class SteeringVector:
    """A steering vector, described by two texts: the mean over tokens of what a place holds for `towards`, less that
    for `away` (model.analysis.steering.compute_steering_vector). The translator computes the vector; a trace keeps it.

    languages  the language pair of the texts, such as "de-en"; None: that of the translation
    vector     [width of the place]; None: not computed yet
    """

    towards: str
    away: str
    languages: str | None = None
    vector: Numbers | None = None

    @property
    def array(self) -> np.ndarray:
        """The vector, float32. ValueError if it is not computed yet."""
        if self.vector is None:
            raise ValueError("a steering vector is computed by a translator: this one has only its texts")
        return self.vector.array

    @property
    def shape(self) -> tuple[int, ...]:
        """The vector's shape; () if it is not computed yet."""
        return () if self.vector is None else self.vector.shape


class Edit:
    """Base of the four edits, which convert and check their fields.

    positions  rows of the place, from 0 at the start of the sentence; None: all
    heads      heads, at a place that has heads; None: all
    """

    positions: Sequence[int] | None
    heads: Sequence[int] | None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name == "value":
                self._set(name, Numbers.of(value))
            elif name in ("strength", "by"):
                self._set(name, _check_finite(name, value))
            elif value is not None:
                self._set(name, _check_indices(name, value))
        shape = getattr(getattr(self, "value", None), "shape", ())
        if shape[:-1] and shape[:-1] != (len(self.positions or ()),):
            raise ValueError(f"a value of shape {list(shape)} needs as many positions as rows, found {self.positions}")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        raise NotImplementedError


@dataclass(frozen=True)
class Add(Edit):
    """x + strength * value.

    value: [width], or [positions, width] with a row for each of `positions`, or a SteeringVector.
    """

    value: Numbers | SteeringVector | Any  # an array, a tensor, a list or a number is converted
    strength: float = 1.0
    positions: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        if isinstance(self.value, SteeringVector):
            return f"plus {self.strength:g} times ({self.value.towards!r} less {self.value.away!r})"
        return f"plus {self.strength:g} times a vector"


@dataclass(frozen=True)
class Replace(Edit):
    """The value instead of x, such as one from another run (activation patching). value: as in Add."""

    value: Numbers | Any  # an array, a tensor, a list or a number is converted
    positions: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        return "replaced"


@dataclass(frozen=True)
class Scale(Edit):
    """x times a number: `Scale(0.5, heads=[1])`."""

    by: float
    positions: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        return f"times {self.by:g}"


@dataclass(frozen=True)
class Ablate(Edit):
    """0 instead of x: `Ablate(heads=[1])`."""

    positions: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        return "0"


KINDS: dict[str, type[Edit]] = {"add": Add, "replace": Replace, "scale": Scale, "ablate": Ablate}


def to_plain(edits: Iterable[tuple[str, Edit]]) -> list[dict[str, Any]]:
    """Convert (place, edit) pairs to JSON-ready objects {place, kind, ..fields}, in order.

    Numbers become {shape, float32 in base64}; a SteeringVector becomes its texts and, if computed, its vector.
    """
    names = {type_: name for name, type_ in KINDS.items()}
    return [
        {"place": place, "kind": names[type(edit)], **{name: _to_plain(value) for name, value in vars(edit).items()}}
        for place, edit in edits
    ]


def from_plain(data: object) -> tuple[tuple[str, Edit], ...]:
    """Read the result of to_plain(). ValueError for anything else."""
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ValueError(f"edits are a list of objects, found {data!r:.80}")
    return tuple(_read_edit(**item) for item in data)


def _read_edit(place: object = None, kind: object = None, **fields: Any) -> tuple[str, Edit]:
    if not isinstance(place, str) or not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"an edit has a place and a kind of {', '.join(KINDS)}, found {place!r:.80} and {kind!r:.80}")
    with value_errors("an edit cannot be read", TypeError):
        if "value" in fields:
            fields["value"] = _read_value(fields["value"])
        return place, KINDS[kind](**fields)


def _to_plain(value: object) -> object:
    if isinstance(value, SteeringVector):
        return {name: _to_plain(field) for name, field in vars(value).items() if field is not None}
    if isinstance(value, Numbers):
        return {"shape": list(value.shape), "float32": base64.b64encode(value.data).decode()}
    return list(value) if isinstance(value, tuple) else value


def _read_value(data: Any) -> Numbers | SteeringVector:
    if not isinstance(data, dict) or "towards" not in data:
        return _read_numbers(data)
    texts = {name: value for name, value in data.items() if name != "vector"}
    if not texts.keys() <= {"towards", "away", "languages"} or not all(isinstance(v, str) for v in texts.values()):
        raise ValueError(f"a steering vector has the texts towards and away, and languages, found {data!r:.80}")
    vector = data.get("vector")
    return SteeringVector(**texts, vector=None if vector is None else _read_numbers(vector))


def _read_numbers(data: Any) -> Numbers:
    with value_errors("an edit's numbers are a shape and base64 of float32", TypeError, KeyError, ValueError):
        numbers = Numbers(tuple(map(int, data["shape"])), base64.b64decode(data["float32"], validate=True))
        checked = Numbers.of(numbers.array)
        assert isinstance(checked, Numbers)  # an array never becomes a SteeringVector
        return checked


def _check_finite(name: str, value: object) -> float:
    """Return the number as float64, 0.0 for -0.0, so that equal edits are written alike."""
    number = value.item() if isinstance(value, np.generic) else value
    if not is_number(number) or not abs(number) <= sys.float_info.max:
        raise ValueError(f"an edit's {name} must be a finite number, found {number!r:.80}")
    return float(number) + 0.0


def _check_indices(name: str, values: Iterable[int]) -> tuple[int, ...]:
    if not isinstance(values, Iterable):
        raise ValueError(f"an edit's {name} are a list of numbers, found {values!r:.80}")
    indices = tuple(check_integer(name.removesuffix("s"), value) for value in values)
    if any(i < 0 for i in indices) or len(set(indices)) < len(indices):
        raise ValueError(f"an edit's {name} count from 0, each once, found {indices!r:.80}")
    return indices
