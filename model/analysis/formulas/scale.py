"""Why the scores are divided by sqrt(d_k): what happens to random queries and keys as they get longer.

"We suspect that for large values of d_k, the dot products grow large in magnitude, pushing the softmax function into
regions where it has extremely small gradients" (Vaswani et al. 2017, section 3.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.dissection import softmax


@dataclass(frozen=True, eq=False)
class Sharpness:
    """What a softmax makes of scores [.., key]: mean over the rows of the largest weight, and of the size of its
    gradient, the Frobenius norm of d weights / d scores. 0: nothing that is learned gets through."""

    largest: float
    gradient: float


def sharpness(scores: np.ndarray) -> Sharpness:
    """scores [.., key], -inf where a mask closes."""
    weights = softmax(np.asarray(scores, np.float64))
    # The Jacobian is diag(w) - w w^T: its squared entries sum to |w|^2 - 2 sum w^3 + |w|^4.
    squares, cubes = (weights**2).sum(-1), (weights**3).sum(-1)
    norms = np.sqrt(np.maximum(0.0, squares - 2 * cubes + squares**2))
    return Sharpness(float(weights.max(-1).mean()), float(norms.mean()))


@dataclass(frozen=True, eq=False)
class Growth:
    """What the width d_k does to the scores of random vectors. Each [width]; `with_` divided by sqrt(d_k).

    widths; variance of q.k and of q.k / sqrt(d_k); largest: the mean largest weight; gradient: of Sharpness.
    """

    widths: np.ndarray
    variance: np.ndarray
    variance_with: np.ndarray
    largest: np.ndarray
    largest_with: np.ndarray
    gradient: np.ndarray
    gradient_with: np.ndarray


def random_scores(widths: tuple[int, ...], *, keys: int = 16, draws: int = 128, seed: int = 0) -> np.ndarray:
    """q.k for queries and keys whose components are independent, of mean 0 and variance 1 (the paper's footnote 4):
    float64 [width, draw, key]. A wider vector begins with the components of a narrower one."""
    random, longest = np.random.default_rng(seed), max(widths)
    queries = random.standard_normal((draws, 1, longest), dtype=np.float32)
    products = queries * random.standard_normal((draws, keys, longest), dtype=np.float32)
    sums = products.cumsum(-1, dtype=np.float64)  # [draw, key, width]
    return np.moveaxis(sums[..., np.asarray(widths) - 1], -1, 0)


def growth(widths: tuple[int, ...], *, keys: int = 16, draws: int = 128, seed: int = 0) -> Growth:
    """Of random vectors as in random_scores()."""
    dots = random_scores(widths, keys=keys, draws=draws, seed=seed)
    scaled = dots / np.sqrt(np.asarray(widths))[:, None, None]
    plain, divided = [sharpness(scores) for scores in dots], [sharpness(scores) for scores in scaled]
    return Growth(
        np.asarray(widths),
        dots.var((1, 2)),
        scaled.var((1, 2)),
        *(
            np.array([getattr(found, name) for found in side])
            for name in ("largest", "gradient")
            for side in (plain, divided)
        ),
    )
