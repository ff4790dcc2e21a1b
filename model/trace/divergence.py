"""How far apart two distributions are. Importable without torch."""

from __future__ import annotations

import numpy as np


def jensen_shannon_bits(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence of distributions along the last axis, in bits: 0 (the same) to 1 (disjoint)."""
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    middle = (p + q) / 2

    def relative(a: np.ndarray) -> np.ndarray:
        ratio = np.where(a > 0, a / np.where(middle > 0, middle, 1.0), 1.0)
        return (a * np.log2(ratio)).sum(-1)

    return np.maximum(0.0, (relative(p) + relative(q)) / 2)
