"""Something taken away, and what the model would write then. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.why.evidence import Evidence, Unit


@dataclass(frozen=True, eq=False)
class Removal:
    """The question's step as it is, and without a word, heads or whatever was taken away.

    before, after   the metric, in nats
    ids             the most probable tokens of either run, and those of the question
    probabilities   float64 [2, candidate]: of each before and after
    """

    before: float
    after: float
    ids: tuple[int, ...]
    probabilities: np.ndarray
    evidence: Evidence = Evidence.MEASURED
    unit: Unit = Unit.NATS

    @property
    def effect(self) -> float:
        """What the metric loses, in nats."""
        return self.before - self.after
