"""Edits as values: what happens to the numbers at a place of a pass.

>>> Add([1.0, 2.0], positions=(3,)) == Add([1, 2], positions=[3])
True
>>> Scale(0.5).describe()
'times 0.5'
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.trace import check_integer, is_number

__all__ = ["Ablate", "Add", "Edit", "Numbers", "Recipe", "Replace", "Scale"]


@dataclass(frozen=True)
class Numbers:
    """float32 numbers that can be compared, hashed and written down. shape: of the array; data: its bytes."""

    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, values: Any) -> Numbers | Recipe:
        """Of an array, a tensor of the CPU, a list or a number. -0.0 becomes 0.0, so that equal numbers have equal
        bytes. ValueError unless all are finite."""
        if isinstance(values, (Numbers, Recipe)):
            return values
        found = np.ascontiguousarray(values.detach().float() if hasattr(values, "detach") else values, np.float32)
        if not np.isfinite(found).all():
            raise ValueError("an edit's values must be finite numbers")
        return cls(found.shape, (found + np.float32(0)).tobytes())

    @property
    def array(self) -> np.ndarray:
        """float32, not to be written to."""
        return np.frombuffer(self.data, np.float32).reshape(self.shape)


@dataclass(frozen=True)
class Recipe:
    """A direction by how it is made: what a place holds of one sentence less what it holds of another, each averaged
    over its tokens (model.analysis.steering.direction). Whoever translates finds the vector; a trace keeps both.

    languages  such as "de-en"; None: those of the translation
    vector     of the place's width; None: not found yet
    """

    towards: str
    away: str
    languages: str | None = None
    vector: Numbers | None = None

    @property
    def array(self) -> np.ndarray:
        """As of Numbers. ValueError before the vector is found."""
        if self.vector is None:
            raise ValueError("a direction's recipe has no vector yet: give it to a translator, which finds it")
        return self.vector.array

    @property
    def shape(self) -> tuple[int, ...]:
        """The vector's shape; () before it is found."""
        return () if self.vector is None else self.vector.shape


class Edit:
    """Where at a place, and what: one of the four below.

    positions  of the place's rows, from 0 at the start of the sentence; None: all
    heads      of a place that has heads; None: all

    Both are kept as tuples.
    """

    positions: Sequence[int] | None
    heads: Sequence[int] | None

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        raise NotImplementedError

    def _told(self, **numbers: object) -> None:
        for name, values in numbers.items():
            object.__setattr__(self, name, Numbers.of(values))
        for name in ("strength", "by"):
            if hasattr(self, name):
                object.__setattr__(self, name, _finite(name, getattr(self, name)))
        for name in ("positions", "heads"):
            found = getattr(self, name)
            if found is not None:
                object.__setattr__(self, name, _counted(name, found))
        shape = getattr(getattr(self, "value", None), "shape", ())
        if shape[:-1] and shape[:-1] != (len(self.positions or ()),):
            raise ValueError(f"a value of shape {list(shape)} needs as many positions as rows, found {self.positions}")


@dataclass(frozen=True)
class Add(Edit):
    """x + strength * value. value: [width], or [positions, width] with a row for each of the named positions; or the
    Recipe of a direction."""

    value: Numbers | Recipe | Any  # an array, a tensor, a list or a number will do
    strength: float = 1.0
    positions: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def __post_init__(self) -> None:
        self._told(value=self.value)

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        if isinstance(self.value, Recipe):
            return f"plus {self.strength:g} times ({self.value.towards!r} less {self.value.away!r})"
        return f"plus {self.strength:g} times a vector"


@dataclass(frozen=True)
class Replace(Edit):
    """The value in x's place, as of another run (activation patching). value: as in Add."""

    value: Numbers | Any  # an array, a tensor, a list or a number will do
    positions: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def __post_init__(self) -> None:
        self._told(value=self.value)

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        return "replaced"


@dataclass(frozen=True)
class Scale(Edit):
    """x times a number: `Scale(0.5, heads=[1])`."""

    by: float
    positions: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def __post_init__(self) -> None:
        self._told()

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        return f"times {self.by:g}"


@dataclass(frozen=True)
class Ablate(Edit):
    """0 in x's place: `Ablate(heads=[1])`."""

    positions: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def __post_init__(self) -> None:
        self._told()

    def describe(self) -> str:
        """Describe the edit in words, for a trace's record."""
        return "0"


def _finite(name: str, value: object) -> float:
    """The number as float64, 0.0 for -0.0: equal edits are then written alike. ValueError for anything else."""
    number = value.item() if isinstance(value, np.generic) else value
    if not is_number(number) or not abs(number) <= sys.float_info.max:
        raise ValueError(f"an edit's {name} must be a finite number, found {number!r:.80}")
    return float(number) + 0.0


def _counted(name: str, values: Iterable[int]) -> tuple[int, ...]:
    if not isinstance(values, Iterable):
        raise ValueError(f"an edit's {name} are a list of numbers, found {values!r:.80}")
    found = tuple(check_integer(name.removesuffix("s"), value) for value in values)
    if any(i < 0 for i in found) or len(set(found)) < len(found):
        raise ValueError(f"an edit's {name} count from 0, each once, found {found!r:.80}")
    return found
