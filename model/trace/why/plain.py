"""Values as plain JSON-ready data: dataclasses field by field, enums by value, arrays as lists. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A dataclass is an object of its fields, or of what its as_plain() gives where a file says it otherwise; NaN is
    null; a set is a sorted list. Texts, with their words, and whatever JSON has already stay as they are."""
    if hasattr(value, "as_plain"):
        return plain(value.as_plain())
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if isinstance(value, frozenset | set):
        return plain(sorted(value))
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value
