"""The data types of a translation: traces, interventions, score maps and what analyses return. No module here needs
torch.

This module holds the checks of plain values that the others share.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any, TypeGuard, TypeVar

Values = TypeVar("Values", bound=Iterable)


def is_integer(value: object, low: float = float("-inf"), high: float = float("inf")) -> TypeGuard[int]:
    """Whether `value` is an int, no bool, in low..high."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether `value` is an int or a float, no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_integer(name: str, value: Any) -> int:
    """Return `value` as an int. NumPy integers are accepted; anything else raises ValueError with `name` in it."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise ValueError(f"{name} must be a whole number, found {value!r:.80}")


def check_count(name: str, value: Any) -> int:
    """Return `value` as an int of at least 1. ValueError otherwise."""
    count = check_integer(name, value)
    if count < 1:
        raise ValueError(f"{name} must be at least 1, found {count}")
    return count


def check_sequence(name: str, values: Values) -> Values:
    """Return `values` unchanged. ValueError for strings and for what is not iterable."""
    if isinstance(values, str | bytes):
        raise ValueError(f"{name} must be a list, found the text {values!r:.80}: put it into brackets")
    if not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list, found {values!r:.80}")
    return values
