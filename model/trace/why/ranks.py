"""Rank correlation. Importable without torch."""

from __future__ import annotations

import numpy as np


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 of values [n]; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[inverse.reshape(-1)]


def spearman(first: np.ndarray, second: np.ndarray) -> float | None:
    """Spearman's rank correlation with average ranks over the places where both are numbers (Spearman 1904); None for
    fewer than three, or where one side is all equal."""
    both = ~(np.isnan(first) | np.isnan(second))
    if both.sum() < 3:
        return None
    a, b = (average_ranks(values[both]) for values in (first, second))
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / size) if size > 0 else None
