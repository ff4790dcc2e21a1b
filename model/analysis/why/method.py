"""What every method of the tokens' matrix declares about itself. One file a method, in methods/."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from model.analysis.why.case import Case
from model.trace.why.evidence import Evidence, Sum, Unit
from model.trace.why.rows import Row


@dataclass(frozen=True, eq=False)
class Answer:
    """values float64 [column], NaN where the method says nothing; the rest as in Row."""

    values: np.ndarray
    sum: Sum | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """A row of the matrix: what it is, and how it is computed.

    done      what was done to get it, in a line;   misleads   where it misleads, in a line
    class_agnostic   it does not look at which token was written, so that it is the same for any contrast
    """

    name: str
    evidence: Evidence
    unit: Unit
    done: str
    misleads: str
    compute: Callable[[Case], Answer]
    class_agnostic: bool = False

    def __call__(self, case: Case) -> Row:
        found = self.compute(case)
        assert found.values.shape == (len(case.columns),)
        return Row(self.name, self.evidence, self.unit, found.values, self.class_agnostic, found.sum, found.notes)
