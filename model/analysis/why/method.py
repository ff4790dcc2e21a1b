"""What every method of the tokens' matrix declares about itself. One file a method, in methods/."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.trace.language import Words
from attention_atlas.model.trace.why.attribution import Row
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit


@dataclass(frozen=True, eq=False)
class Answer:
    """values float64 [column], NaN where the method says nothing; the rest as in Row."""

    values: np.ndarray
    sum: Sum | None = None
    notes: tuple[Words, ...] = ()


@dataclass(frozen=True)
class Method:
    """A row of the matrix: what it is, and how it is computed. slug: what files and answers call it; title: what people
    read.

    done      what was done to get it, in a line;   misleads   where it misleads, in a line
    class_agnostic   it does not look at which token was written, so that it is the same for any contrast
    by_layer   it is about one layer of cross-attention, or the mean over them
    slow   it takes many passes: the page shows the other rows first
    """

    slug: str
    title: Words
    evidence: Evidence
    unit: Unit
    done: Words
    misleads: Words
    compute: Callable[[Case], Answer]
    class_agnostic: bool = False
    slow: bool = False
    by_layer: bool = False

    def __call__(self, case: Case) -> Row:
        found = self.compute(case)
        assert found.values.shape == (len(case.columns),)
        return Row(
            self.slug,
            self.evidence,
            self.unit,
            found.values,
            self.class_agnostic,
            found.sum,
            found.notes,
            self.title,
        )
