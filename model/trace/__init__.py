"""What a translation left behind, and what may be done to one: numpy and plain values. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any, TypeGuard, TypeVar

Many = TypeVar("Many", bound=Iterable)


def is_whole(value: object, least: float = float("-inf"), most: float = float("inf")) -> TypeGuard[int]:
    """Whether it is a whole number from `least` to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number, whole or not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: object) -> int:
    """The whole number itself. ValueError for anything else."""
    if is_whole(value):
        return value
    raise ValueError(f"expected a whole number, found {value!r}")


def number_of(what: str, value: Any) -> int:
    """The number of a layer, a head, a step: also numpy's. ValueError, in words, for what is not whole."""
    try:
        return index(value)
    except TypeError as error:
        raise ValueError(f"a {what} is told by a whole number, found {value!r:.80}") from error


def count_of(what: str, value: Any) -> int:
    """How many there are to be of something: 1 or more. ValueError, in words, for anything else."""
    if (found := number_of(what, value)) < 1:
        raise ValueError(f"a {what} is 1 or more, found {found}")
    return found


def several(what: str, values: Many) -> Many:
    """The values themselves. ValueError for a text in their place, which would be taken for its letters, and for what
    is not several of anything."""
    if isinstance(values, str | bytes):
        raise ValueError(f"{what} are a list, found the text {values!r:.80}: put it into brackets")
    if not isinstance(values, Iterable):
        raise ValueError(f"{what} are a list, found {values!r:.80}")
    return values
