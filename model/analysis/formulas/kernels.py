"""Kernel regression (Nadaraya 1964; Watson 1964), the oldest ancestor of attention.

A prediction is the mean of the observed values, weighted by a kernel of the distance. KERNELS lists the kernels, one of
them the attention's own score; fit_regression() applies one to random points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.formulas.stages import softmax
from attention_atlas.model.trace.language import say

WIDTH = 32  # d_k of the vector that encodes a number


@dataclass(frozen=True)
class Kernel:
    """A kernel with its name, formula and source.

    scores: maps numbers queries [query] and keys [key] and a bandwidth to scores [query, key], the logarithms of the
    kernel's values, so that their softmax gives the weights.
    """

    name: str
    formula: str
    source: str
    scores: Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def _scaled_distance(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    return (queries[:, None] - keys) / bandwidth


def gaussian(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return log exp(-u^2 / 2), where u is the distance in bandwidths."""
    return -(_scaled_distance(queries, keys, bandwidth) ** 2) / 2


def boxcar(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return the log of 1 within a bandwidth and 0 beyond."""
    return np.where(np.abs(_scaled_distance(queries, keys, bandwidth)) <= 1, 0.0, -np.inf)


def triangular(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return log max(0, 1 - |u|)."""
    nearness = np.maximum(0.0, 1 - np.abs(_scaled_distance(queries, keys, bandwidth)))
    return np.log(nearness, out=np.full_like(nearness, -np.inf), where=nearness > 0)


def dot_product(queries: np.ndarray, keys: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return q.k / sqrt(d_k), the score of attention, where q and k are sinusoidal codes of the numbers (Vaswani et al.
    2017, section 3.5). Their dot product depends on the distance alone, so this is also a kernel."""
    q, k = (encode_numbers(numbers, bandwidth) for numbers in (queries, keys))
    return q @ k.T / np.sqrt(q.shape[-1])


def encode_numbers(numbers: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return the sinusoidal code of each number / bandwidth: float64 [n, WIDTH]."""
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
    """Return 2 sin(x) + x^0.8, the true curve (Zhang et al., Dive into Deep Learning, first edition, section 10.2)."""
    return 2 * np.sin(x) + np.asarray(x) ** 0.8


@dataclass(frozen=True, eq=False)
class Regression:
    """A kernel regression. Where no key is in reach of a query, its weights are 0 and its fitted value is NaN.

    keys, values  [point]       x_i and y_i
    queries       [query]       x
    weights       [query, key]  rows sum to 1
    fitted        [query]       weights values
    true          [query]       the true curve
    """

    keys: np.ndarray
    values: np.ndarray
    queries: np.ndarray
    weights: np.ndarray
    fitted: np.ndarray
    true: np.ndarray

    @property
    def error(self) -> float:
        """Root mean square difference from the true curve, over the queries with a fitted value."""
        return float(np.sqrt(np.nanmean((self.fitted - self.true) ** 2)))


def fit_regression(
    kernel: Kernel, bandwidth: float, *, points: int = 40, queries: int = 50, seed: int = 0
) -> Regression:
    """Fit random points between 0 and 5 on the true curve, with noise of standard deviation 0.5."""
    random = np.random.default_rng(seed)
    keys = np.sort(random.uniform(0, 5, points))
    values = truth(keys) + random.normal(0, 0.5, points)
    x = np.linspace(0, 5, queries)
    scores = kernel.scores(x, keys, bandwidth)
    in_reach = np.isfinite(scores).any(-1)
    weights = np.zeros_like(scores)
    weights[in_reach] = softmax(scores[in_reach])
    return Regression(keys, values, x, weights, np.where(in_reach, weights @ values, np.nan), truth(x))
