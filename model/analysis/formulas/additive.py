"""The recurrent network's additive attention taken apart, for one row (Bahdanau et al. 2015, appendix A.1.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.recurrent import Recurrent
from attention_atlas.model.trace.kinds import AttentionKind


@dataclass(frozen=True, eq=False)
class Stages:
    """float64 unless said otherwise; d: the width of the attention.

    query [d]          W s, of the decoder's state before the row
    keys [key, d]      U h + b, of each word of the source; sums = query + keys
    active [key, d]    tanh of the sums
    score_vector [d]   v
    scores [key]       v · tanh(..)
    weights [key]      their softmax
    context [memory]   the sum of weight * h: what the decoder is told
    recorded float32 [key]  the weights that the model itself computed
    """

    query: np.ndarray
    keys: np.ndarray
    sums: np.ndarray
    active: np.ndarray
    score_vector: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    context: np.ndarray
    recorded: np.ndarray

    @property
    def error(self) -> float:
        """The largest difference from the model's own weights."""
        return float(np.abs(self.weights - self.recorded).max())


def stages(model: Recurrent, output: ForwardOutput, row: int) -> Stages:
    """Of a recorded pass of one sentence, by a network that has attention."""
    record = output.attention(AttentionKind.ALIGNMENT, 0)
    assert model.attention is not None and 0 <= row < record.queries.shape[2]
    query, keys, memory, recorded = (
        tensor.detach().double().cpu().numpy()
        for tensor in (record.queries[0, 0, row], record.keys[0, 0], record.values[0, 0], record.weights[0, 0, row])
    )
    vector = model.attention.score.weight[0].detach().double().cpu().numpy()
    sums = query + keys
    active = np.tanh(sums)
    scores = active @ vector
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    return Stages(query, keys, sums, active, vector, scores, weights, weights @ memory, recorded.astype(np.float32))
