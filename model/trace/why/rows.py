"""One method's answer over the columns of the tokens' matrix. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model.trace.language import Words
from model.trace.why.columns import Columns
from model.trace.why.evidence import Evidence, Sum, Unit
from model.trace.why.question import Question


@dataclass(frozen=True, eq=False)
class Row:
    """values float64 [column], positive: speaks for the token. NaN: the method says nothing of that column.

    method          its name in the registry
    class_agnostic  it never looks at which token was written: the same for any contrast
    sum             what the values should add up to, and do; None where nothing is claimed
    notes           in words, what a reader must know of this answer
    """

    method: str
    evidence: Evidence
    unit: Unit
    values: np.ndarray
    class_agnostic: bool = False
    sum: Sum | None = None
    notes: tuple[Words, ...] = ()


@dataclass(frozen=True, eq=False)
class Why:
    """The tokens' matrix for one question. metric: the measured value that the question asks about, in nats. agreement:
    method -> rank correlation with occlusion under the other replacement, over columns that are no symbols; None where
    fewer than three of them, or all equal, leave nothing to rank."""

    question: Question
    columns: Columns
    metric: float
    rows: tuple[Row, ...]
    agreement: dict[str, float | None]

    def row(self, method: str) -> Row:
        """The row of a method. ValueError if it was not asked for."""
        for row in self.rows:
            if row.method == method:
                return row
        raise ValueError(f"no row {method!r}: there are {', '.join(row.method for row in self.rows)}")
