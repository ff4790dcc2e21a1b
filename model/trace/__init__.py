"""What a translation left behind, and what may be done to one: numpy and plain values. Imports no torch."""

from __future__ import annotations


def is_whole(value: object, least: float = float("-inf"), most: float = float("inf")) -> bool:
    """Whether it is a whole number from `least` to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: object) -> bool:
    """Whether it is a number, whole or not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: object) -> int:
    """The whole number itself. ValueError for anything else."""
    if not is_whole(value):
        raise ValueError(f"expected a whole number, found {value!r}")
    return value
