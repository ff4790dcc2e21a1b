"""What kind of number a number is. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Evidence(str, Enum):
    """Three kinds, and every number of the laboratory says which it is.

    MEASURED     something was changed and the model was run again
    EXACT_SPLIT  parts that sum to what they explain; the error of the sum stands beside them
    PROXY        computed from inside the pass (attention, norms, gradients); nothing was changed
    """

    MEASURED = "measured"
    EXACT_SPLIT = "exact split"
    PROXY = "proxy"


class Unit(str, Enum):
    """What a value counts. NATS: of log-odds where there is a contrast, of log-probability where there is none.
    SHARE: parts of 1. NORM: length of a vector."""

    NATS = "nats"
    SHARE = "share"
    NORM = "norm"


@dataclass(frozen=True)
class Sum:
    """What some values should add up to, and what they do add up to. tolerance: the largest error that counts as met,
    in the values' unit."""

    expected: float
    found: float
    tolerance: float

    def as_plain(self) -> dict[str, Any]:
        """For model.trace.why.plain."""
        return {"expected": self.expected, "found": self.found, "error": self.error, "holds": self.holds}

    @property
    def error(self) -> float:
        """found - expected"""
        return self.found - self.expected

    @property
    def holds(self) -> bool:
        """Whether the values add up."""
        return abs(self.error) <= self.tolerance
