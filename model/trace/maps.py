"""Attention maps as numpy arrays, and how far apart two rows are. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROW_SUM_TOLERANCE = 1e-4  # float32 softmax over at most a few hundred keys stays well inside


@dataclass(frozen=True, eq=False)  # eq=False: hashed by identity, since arrays cannot be hashed
class AttentionMaps:
    """Every attention map of one kind.

    weights       float32 [layers, heads, query, key]: the softmax's output, before any dropout; rows sum to 1
    query_tokens  the tokens whose rows these are: for the decoder the tokens READ, `<s> y1 .. yT`
    key_tokens    the tokens attended to

    Raises ValueError if shapes disagree or a row does not sum to 1 within 1e-4.
    """

    weights: np.ndarray
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.weights.dtype != np.float32 or self.weights.ndim != 4:
            raise ValueError(
                f"weights must be float32 [layers, heads, query, key], found {self.weights.dtype} "
                f"{list(self.weights.shape)}"
            )
        expected = (len(self.query_tokens), len(self.key_tokens))
        if self.weights.shape[2:] != expected:
            raise ValueError(f"weights are {self.weights.shape[2:]} (query, key), tokens {expected}")
        if not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise ValueError("weights must be finite and not negative")
        error = np.abs(self.weights.sum(-1, dtype=np.float64) - 1.0)
        if error.size and error.max() > ROW_SUM_TOLERANCE:
            layer, head, query = (int(i) for i in np.unravel_index(error.argmax(), error.shape))
            raise ValueError(f"row {query} of layer {layer}, head {head} sums to 1 only within {error.max():.2e}")

    @property
    def num_layers(self) -> int:
        return self.weights.shape[0]

    @property
    def num_heads(self) -> int:
        return self.weights.shape[1]


def jensen_shannon_bits(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence of distributions along the last axis, in bits: 0 (the same) to 1 (disjoint)."""
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    middle = (p + q) / 2

    def relative(a: np.ndarray) -> np.ndarray:
        ratio = np.where(a > 0, a / np.where(middle > 0, middle, 1.0), 1.0)
        return (a * np.log2(ratio)).sum(-1)

    return np.maximum(0.0, (relative(p) + relative(q)) / 2)
