"""Attention without weights: tokens weigh one another by their own vectors, with nothing learned in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.dissection import attention


@dataclass(frozen=True, eq=False)
class Plain:
    """softmax(x x^T) x for x [token, d]; float64.

    scores   [token, token]  x x^T, symmetric
    weights  [token, token]  their softmax, row by row
    output   [token, d]      weights x
    """

    scores: np.ndarray
    weights: np.ndarray
    output: np.ndarray

    @property
    def own(self) -> float:
        """The mean weight of a token on itself."""
        return own_weight(self.weights)


def attend(x: np.ndarray, *, scaled: bool = False) -> Plain:
    """x [token, d] attends to itself. scaled: the scores are divided by sqrt(d)."""
    x = np.asarray(x, np.float64)
    scores, _, weights = attention(x, x, scaled=scaled)
    return Plain(scores, weights, weights @ x)


def own_weight(weights: np.ndarray) -> float:
    """The mean of the diagonal of weights [token, token]."""
    return float(np.diagonal(weights).mean())


def asymmetry(scores: np.ndarray) -> float:
    """The largest |s_ij - s_ji| of scores [token, token], in standard deviations of the scores: 0 where a asks of b
    what b asks of a."""
    spread = float(scores.std())
    return float(np.abs(scores - scores.T).max()) / spread if spread else 0.0
