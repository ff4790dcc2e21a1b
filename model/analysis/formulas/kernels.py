"""Attention's oldest ancestor: kernel regression (Nadaraya 1964; Watson 1964), where a prediction is the mean of what
was observed, each weighted by how near it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.dissection import softmax
from attention_atlas.model.trace.language import say

WIDTH = 32  # d_k of the vectors that stand for a number


@dataclass(frozen=True)
class Kernel:
    """A way to weigh keys by a query: scores [query, key] of numbers queries [query] and keys [key], at a bandwidth.
    The weights are the softmax of the scores: a kernel's scores are the logarithms of its values."""

    name: str
    formula: str
    source: str
    scores: Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def _apart(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    return (queries[:, None] - keys) / bandwidth


def gaussian(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    """log exp(-u^2 / 2), u the distance in bandwidths."""
    return -(_apart(queries, keys, bandwidth) ** 2) / 2


def boxcar(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    """log of 1 within a bandwidth, else 0."""
    return np.where(np.abs(_apart(queries, keys, bandwidth)) <= 1, 0.0, -np.inf)


def triangular(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    """log max(0, 1 - |u|)."""
    nearness = np.maximum(0.0, 1 - np.abs(_apart(queries, keys, bandwidth)))
    return np.log(nearness, out=np.full_like(nearness, -np.inf), where=nearness > 0)


def dot_product(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    """q.k / sqrt(d_k), the attention's own: q and k are the codes of the numbers (section 3.5), measured in
    bandwidths. Their dot product depends on the distance alone, so this is a kernel, too."""
    q, k = (vectors(numbers, bandwidth) for numbers in (queries, keys))
    return q @ k.T / np.sqrt(q.shape[-1])


def vectors(numbers: np.ndarray, bandwidth: float) -> np.ndarray:
    """The code of each number / bandwidth: float64 [n, WIDTH]."""
    rates = 10_000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    angles = np.asarray(numbers, np.float64)[:, None] / bandwidth * rates
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(len(angles), WIDTH)


KERNELS = {
    "gaussian": Kernel(say("Gaussian kernel"), "exp(−u²/2)", "Nadaraya 1964; Watson 1964", gaussian),
    "boxcar": Kernel(say("boxcar"), "[|u| ≤ 1]", "Watson 1964", boxcar),
    "triangular": Kernel(say("triangular kernel"), "max(0, 1 − |u|)", "Watson 1964", triangular),
    "attention": Kernel(
        say("scaled dot product"), "exp(q·k / √d_k)", say("Vaswani et al. 2017, equation 1"), dot_product
    ),
}


def truth(x: np.ndarray) -> np.ndarray:
    """2 sin(x) + x^0.8: what the points scatter around (Zhang et al., Dive into Deep Learning, first edition, 10.2)."""
    return 2 * np.sin(x) + np.asarray(x) ** 0.8


@dataclass(frozen=True, eq=False)
class Regression:
    """keys x_i and values y_i [point], queries x [query], weights [query, key] that sum to 1 in each row, fitted
    [query] = weights values, true [query]. Where no key is in reach, weights are 0 and fitted is NaN."""

    keys: np.ndarray
    values: np.ndarray
    queries: np.ndarray
    weights: np.ndarray
    fitted: np.ndarray
    true: np.ndarray

    @property
    def error(self) -> float:
        """Root mean square difference from the truth, over the queries that have an answer."""
        return float(np.sqrt(np.nanmean((self.fitted - self.true) ** 2)))


def regression(kernel: Kernel, bandwidth: float, *, points: int = 40, queries: int = 50, seed: int = 0) -> Regression:
    """Fit `points` noisy ones between 0 and 5 (noise of standard deviation 0.5)."""
    random = np.random.default_rng(seed)
    keys = np.sort(random.uniform(0, 5, points))
    values = truth(keys) + random.normal(0, 0.5, points)
    where = np.linspace(0, 5, queries)
    scores = kernel.scores(where, keys, bandwidth)
    reached = np.isfinite(scores).any(-1)
    weights = np.zeros_like(scores)
    weights[reached] = softmax(scores[reached])
    return Regression(keys, values, where, weights, np.where(reached, weights @ values, np.nan), truth(where))
