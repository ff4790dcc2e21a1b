"""What a token loses without each word: against its contrast, and by itself. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.why.evidence import Evidence, Unit


@dataclass(frozen=True, eq=False)
class Losses:
    """The two differ where a word speaks for token and contrast alike: without it neither is written, and the metric
    hardly moves.

    metric, log_p        of the plain run: the question's metric, and log p(token), in nats
    of_metric, of_log_p  float64 [column]: what either loses without the column's word
    ids, probabilities   int64 and float64 [1 + column, k]: the k most probable tokens of each run, the plain one first
    """

    metric: float
    log_p: float
    of_metric: np.ndarray
    of_log_p: np.ndarray
    ids: np.ndarray
    probabilities: np.ndarray
    evidence: Evidence = Evidence.MEASURED
    unit: Unit = Unit.NATS
