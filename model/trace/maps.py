"""Attention maps as numpy arrays, maps that are computed on access for long texts, and the divergence of two rows.

>>> maps = AttentionMaps(np.full((3, 8, 1, 2), 0.5, np.float32), query_tokens=("<s>",), key_tokens=("Ja", "</s>"))
>>> maps.weights[0, 7].tolist()
[[0.5, 0.5]]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, ClassVar

import numpy as np

from attention_atlas.model.trace.language import Refusal

__all__ = ["AttentionMaps", "ComputedWeights", "jensen_shannon_bits", "normalize_rows"]

ROW_SUM_TOLERANCE = 1e-4  # float32 softmax over at most a few hundred keys stays well inside
MIN_BITS = 1e-11  # smaller divergences are rounding: 1e-13 for float32 sums in another order
MAX_BYTES = 128_000_000  # of maps that one index may compute; 16 heads of 1,024 x 1,024 tokens have 67 MB

Edges = tuple[tuple[int, int, int | None], ...]  # (query, key, head or None for all heads)
# (queries [query, d_head], keys [key, d_head], mask [query, key] or None, position bias [query, key] or None, whether
# scores are divided by sqrt(d_head)) -> weights float32 [query, key]
Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None, bool], np.ndarray]


def softmax_kernel(
    queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray | None, bias: np.ndarray | None, scaled: bool
) -> np.ndarray:
    """Compute a head's attention weights without torch, within 1e-5 of those of the pass."""
    scores = queries @ keys.T / np.float32(math.sqrt(queries.shape[-1]) if scaled else 1.0)
    scores = scores if bias is None else scores + bias
    scores = scores if allowed is None else np.where(allowed, scores, np.float32(-np.inf))
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ComputedWeights:
    """Attention weights that are computed from queries and keys on access.

    AttentionMaps.weights is of this type if all maps of a text would exceed BatchLimits.trace_bytes. Indexing computes
    the selected heads one by one: weights[layer, head] costs one product and a softmax. Other operations of arrays work
    if all maps have at most 128 MB together, and raise a Refusal otherwise.

    queries  float32 [layers, heads, query, d_head]
    keys     float32 [layers, heads, key, d_head]
    bias     what relative positions add to the scores, by distance: float32 [1 or layers, heads, queries + keys - 1],
             from the key furthest before the query to the key furthest after it
    causal   whether a query sees no later key
    scaled   whether scores are divided by sqrt(d_head)
    cut      the masked edges of each layer; empty: none
    """

    queries: np.ndarray
    keys: np.ndarray
    bias: np.ndarray | None = None
    causal: bool = False
    scaled: bool = True
    cut: tuple[Edges, ...] = ()
    kernel: Kernel = softmax_kernel

    dtype: ClassVar[np.dtype[np.float32]] = np.dtype(np.float32)
    ndim: ClassVar[int] = 4

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of all maps: (layers, heads, query, key)."""
        layers, heads, queries, _ = self.queries.shape
        return layers, heads, queries, self.keys.shape[2]

    @property
    def size(self) -> int:
        """The number of weights in all maps."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the queries, keys and biases, not of the maps."""
        return sum(part.nbytes for part in (self.queries, self.keys, self.bias) if part is not None)

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, index: Any) -> np.ndarray:
        """Index like an array, layers and heads by integers or slices. A Refusal for more than 128 MB."""
        index = index if isinstance(index, tuple) else (index,)
        dots = next((at for at, part in enumerate(index) if part is Ellipsis), None)
        if dots is not None:
            index = (*index[:dots], *[slice(None)] * (5 - len(index)), *index[dots + 1 :])
        layer, head, *cells = (*index, *[slice(None)] * (2 - len(index)))
        layers, heads = np.arange(self.shape[0])[layer], np.arange(self.shape[1])[head]
        shape = np.broadcast_to(np.float32(0), self.shape[2:])[tuple(cells)].shape
        if (size := layers.size * heads.size * math.prod(shape) * self.dtype.itemsize) > MAX_BYTES:
            raise self._too_long(size)
        maps = np.empty((layers.size * heads.size, *shape), np.float32)
        for row, (i, j) in enumerate(product(layers.ravel(), heads.ravel())):
            maps[row] = self._head(int(i), int(j))[tuple(cells)]
        return maps.reshape(*layers.shape, *heads.shape, *shape)

    def _head(self, layer: int, head: int) -> np.ndarray:
        queries, keys = self.shape[2:]
        bias = None
        if self.bias is not None:
            windows = np.lib.stride_tricks.sliding_window_view(self.bias[min(layer, len(self.bias) - 1), head], keys)
            bias = np.ascontiguousarray(windows[::-1])  # the last window belongs to the first query
        cut = [edge for edge in self.cut[layer] if edge[2] in (None, head)] if self.cut else []
        allowed = np.tri(queries, keys, dtype=bool) if self.causal else np.ones((queries, keys), bool) if cut else None
        for query, key, _ in cut:
            if query < queries and key < keys:
                allowed[query, key] = False
        return self.kernel(self.queries[layer, head], self.keys[layer, head], allowed, bias, self.scaled)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("these maps are computed on access: an array of them is always a copy")
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        """Offer sum(), mean(), astype() and the like of all maps."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        if (size := self.size * self.dtype.itemsize) > MAX_BYTES:
            raise self._too_long(size)
        return getattr(self[:], name)

    def _too_long(self, size: int) -> Refusal:
        queries, keys = self.shape[2:]
        return Refusal(
            "This translation is too long for that: it needs maps of {queries} by {keys} tokens ({n} "
            "MB); {limit} MB are allowed. The map of a single head can still be shown.",
            queries=queries,
            keys=keys,
            n=size // 1_000_000,
            limit=MAX_BYTES // 1_000_000,
        )


def bias_by_distance(bias: np.ndarray) -> np.ndarray | None:
    """Convert a position bias [heads, query, key] to [heads, queries + keys - 1], by distance.

    Returns None if the bias depends on more than the distance.
    """
    distances = np.concatenate([bias[:, :0:-1, 0], bias[:, 0]], axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(distances, bias.shape[2], axis=-1)
    return distances if np.array_equal(windows[:, ::-1], bias) else None


@dataclass(frozen=True, eq=False)  # eq=False: hashed by identity, since arrays cannot be hashed
class AttentionMaps:
    """All attention maps of one kind.

    weights       float32 [layers, heads, query, key], the output of the softmax, before dropout; rows sum to 1. For
                  long texts a ComputedWeights, which indexes and converts like an array
    query_tokens  the tokens of the rows: for the decoder the tokens that it reads, `<s> y1 .. yT`
    key_tokens    the tokens attended to

    Raises ValueError if shapes disagree or a row does not sum to 1 within 1e-4.
    """

    weights: np.ndarray  # or ComputedWeights
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
        if isinstance(self.weights, ComputedWeights):
            return  # a softmax gives valid rows
        if not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise ValueError("weights must be finite and not negative")
        error = np.abs(self.weights.sum(-1, dtype=np.float64) - 1.0)
        if error.size and error.max() > ROW_SUM_TOLERANCE:
            layer, head, query = (int(i) for i in np.unravel_index(error.argmax(), error.shape))
            raise ValueError(f"row {query} of layer {layer}, head {head} sums to 1 only within {error.max():.2e}")

    @classmethod
    def deferred(
        cls, read: Callable[[], np.ndarray], query_tokens: tuple[str, ...], key_tokens: tuple[str, ...]
    ) -> AttentionMaps:
        """Return maps whose weights are read(), which is called, and checked, when they are first needed."""
        maps = cls.__new__(cls)
        vars(maps).update(_read=read, query_tokens=query_tokens, key_tokens=key_tokens)
        return maps

    def __getattr__(self, name: str) -> Any:
        """Read deferred weights: they are no attribute yet."""
        values = vars(self)
        if name != "weights" or "query_tokens" not in values:
            raise AttributeError(name)
        if (read := values.get("_read")) is not None:  # else another thread has read them meanwhile
            maps = AttentionMaps(read(), self.query_tokens, self.key_tokens)
            values["weights"] = maps.weights
            values["_read"] = None  # frees what it reads from
        return values["weights"]

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, with weights that have been read."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def is_computed(self) -> bool:
        """Whether the weights are computed on access."""
        return isinstance(self.weights, ComputedWeights)

    def map_heads(self, measure: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Apply measure(weights [.., query, key]) -> [.., more] to every head: [layers, heads, more].

        Computed maps are measured head by head, so that only one is in memory at a time.
        """
        if not self.is_computed:
            return measure(self.weights)
        shape = self.num_layers, self.num_heads
        heads = [measure(self.weights[place]) for place in np.ndindex(shape)]
        return np.stack(heads).reshape(*shape, *heads[0].shape)

    @property
    def num_layers(self) -> int:
        """The number of layers."""
        return self.weights.shape[0]

    @property
    def num_heads(self) -> int:
        """The number of heads in each layer."""
        return self.weights.shape[1]


def normalize_rows(values: np.ndarray) -> np.ndarray:
    """Divide rows of values at least 0 by their sums, along the last axis; rows of zeros stay."""
    return values / np.maximum(values.sum(-1, keepdims=True), np.finfo(np.float64).tiny)


def jensen_shannon_bits(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the Jensen-Shannon divergence of distributions along the last axis, in bits, from 0 (equal) to 1
    (disjoint). Values that float32 rounding explains are 0."""
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    middle = (p + q) / 2

    def relative(a: np.ndarray) -> np.ndarray:
        ratio = np.where(a > 0, a / np.where(middle > 0, middle, 1.0), 1.0)
        return (a * np.log2(ratio)).sum(-1)

    divergence = (relative(p) + relative(q)) / 2
    return np.where(divergence > MIN_BITS, divergence, 0.0)
