"""The kind and unit of every number that explains a token, and `to_jsonable`, which makes results JSON-ready."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from attention_atlas.model.trace.tokens import Token


class Evidence(str, Enum):
    """How a number was obtained; every result names it.

    MEASURED     something was changed and the model was run again
    EXACT_SPLIT  parts that sum to what they explain, with the error of the sum
    PROXY        computed from inside one pass (attention, norms, gradients); nothing was changed
    """

    MEASURED = "measured"
    EXACT_SPLIT = "exact split"
    PROXY = "proxy"


class Unit(str, Enum):
    """The unit of a value.

    NATS   of log-odds with a contrast, of log-probability without one
    SHARE  a part of 1
    """

    NATS = "nats"
    SHARE = "share"


@dataclass(frozen=True)
class Sum:
    """The sum that values should have, the sum that they have, and the largest error that counts as equal."""

    expected: float
    found: float
    tolerance: float

    def as_plain(self) -> dict[str, Any]:
        """Return the fields that to_jsonable() writes."""
        return {"expected": self.expected, "found": self.found, "error": self.error, "holds": self.holds}

    @property
    def error(self) -> float:
        """found - expected"""
        return self.found - self.expected

    @property
    def holds(self) -> bool:
        """Whether the values add up."""
        return abs(self.error) <= self.tolerance


def to_jsonable(value: Any, *, whole: bool = False) -> Any:
    """Return a value as JSON-ready data.

    A dataclass becomes an object of its fields, or of what its as_plain() returns; an enum its value, an array a list,
    a set a sorted list, and NaN becomes null. Translatable texts and what JSON has already stay as they are.

    whole: write all fields, and tokens with their kind and word, from which Result.load() makes the value again
    """
    convert = partial(to_jsonable, whole=whole)
    if not whole and hasattr(value, "as_plain"):
        return convert(value.as_plain())
    if is_dataclass(value):
        return {field.name: convert(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if whole and isinstance(value, Token):
        return [str(value), value.kind.value, value.word]
    if isinstance(value, np.ndarray | np.generic):
        return convert(value.tolist())
    if isinstance(value, Mapping):
        return {str(convert(key)): convert(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(map(convert, value))
    if isinstance(value, list | tuple):
        return [convert(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
