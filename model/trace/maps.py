"""Attention maps as numpy arrays; for a long text, queries and keys, from which a head's map is computed when it is
looked at; and how far apart two rows are. Importable without torch.

>>> maps = AttentionMaps(np.full((3, 8, 1, 2), 0.5, np.float32), query_tokens=("<s>",), key_tokens=("Ja", "</s>"))
>>> maps.weights[0, 7].tolist()
[[0.5, 0.5]]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attention_atlas.model.trace.language import Refusal

__all__ = ["AttentionMaps", "ComputedWeights", "jensen_shannon_bits"]

ROW_SUM_TOLERANCE = 1e-4  # float32 softmax over at most a few hundred keys stays well inside
ROUNDED_BITS = 1e-11  # float32 sums in another order move a row's weights by some 1e-6 of each: 1e-13 bits
AT_ONCE = 128_000_000  # bytes of maps that an index may compute; a layer of 16 heads of 1,024 tokens a side has 67 MB

Edges = tuple[tuple[int, int, int | None], ...]  # (query, key, head or None for all), as LayerEdit.cut has them
# queries [query, d_head], keys [key, d_head], the cells that may be attended to [query, key] or None for all, what
# positions add [query, key] or None, whether scores are divided by sqrt(d_head) -> float32 [query, key]
Kernel = Callable[[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None, bool], np.ndarray]


def in_numpy(
    queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray | None, bias: np.ndarray | None, scaled: bool
) -> np.ndarray:
    """The kernel of a file that was read where nobody needs torch: within 1e-5 of what the pass had."""
    scores = queries @ keys.T / np.float32(math.sqrt(queries.shape[-1]) if scaled else 1.0)
    scores = scores if bias is None else scores + bias
    scores = scores if allowed is None else np.where(allowed, scores, np.float32(-np.inf))
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ComputedWeights:
    """What AttentionMaps.weights is where all maps of a text would be larger than a trace may be
    (BatchLimits.trace_bytes). An index computes what it asks for, head by head: weights[layer, head] is one product
    and a softmax, and gives what the pass had. Everything else that an array does works while the maps are at most
    128 MB together; beyond that it raises a Refusal.

    queries  float32 [layers, heads, query, d_head]; keys the same of the keys
    bias     what relative positions add to the scores, by distance: float32 [1 or layers, heads, queries + keys - 1],
             from the key furthest before the query to the one furthest after it
    causal   whether a row sees no later key
    cut      of each layer the edges that were masked; empty: none anywhere
    """

    queries: np.ndarray
    keys: np.ndarray
    bias: np.ndarray | None = None
    causal: bool = False
    scaled: bool = True
    cut: tuple[Edges, ...] = ()
    kernel: Kernel = in_numpy

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
        """The bytes of the queries, keys and biases that are kept, not of the maps."""
        return sum(part.nbytes for part in (self.queries, self.keys, self.bias) if part is not None)

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, index: Any) -> np.ndarray:
        """As of an array; layers and heads are named by numbers or slices. A Refusal for more than 128 MB."""
        index = index if isinstance(index, tuple) else (index,)
        dots = next((at for at, part in enumerate(index) if part is Ellipsis), None)
        if dots is not None:
            index = (*index[:dots], *[slice(None)] * (5 - len(index)), *index[dots + 1 :])
        layer, head, *cells = (*index, *[slice(None)] * (2 - len(index)))
        layers, heads = np.arange(self.shape[0])[layer], np.arange(self.shape[1])[head]
        found = None
        for at, (one, other) in enumerate((one, other) for one in layers.ravel() for other in heads.ravel()):
            cut = self._head(int(one), int(other))[tuple(cells)]
            if found is None:
                if (size := layers.size * heads.size * cut.nbytes) > AT_ONCE:
                    raise self._too_long(size)
                found = np.empty((layers.size * heads.size, *cut.shape), np.float32)
            found[at] = cut
        if found is None:  # no layer or no head
            cells_shape = np.broadcast_to(np.float32(0), self.shape[2:])[tuple(cells)].shape
            return np.empty((*layers.shape, *heads.shape, *cells_shape), np.float32)
        return found.reshape(*layers.shape, *heads.shape, *found.shape[1:])

    def _head(self, layer: int, head: int) -> np.ndarray:
        queries, keys = self.shape[2:]
        bias = None
        if self.bias is not None:
            windows = np.lib.stride_tricks.sliding_window_view(self.bias[min(layer, len(self.bias) - 1), head], keys)
            bias = np.ascontiguousarray(windows[::-1])  # the first query's distances begin at 0, and so end last
        cut = [edge for edge in self.cut[layer] if edge[2] in (None, head)] if self.cut else []
        allowed = np.tri(queries, keys, dtype=bool) if self.causal else np.ones((queries, keys), bool) if cut else None
        for query, key, _ in cut:
            if query < queries and key < keys:
                allowed[query, key] = False
        return self.kernel(self.queries[layer, head], self.keys[layer, head], allowed, bias, self.scaled)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("these maps are computed when they are looked at: an array of them is always new")
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        """sum(), mean(), astype() and the like, of all maps."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        if (size := self.size * self.dtype.itemsize) > AT_ONCE:
            raise self._too_long(size)
        return getattr(self[:], name)

    def _too_long(self, size: int) -> Refusal:
        queries, keys = self.shape[2:]
        return Refusal(
            "This translation is too long for that: the maps of {queries} by {keys} tokens that it needs together are "
            "{n} MB, and {limit} MB are allowed. The map of a single head can be looked at.",
            queries=queries,
            keys=keys,
            n=size // 1_000_000,
            limit=AT_ONCE // 1_000_000,
        )


def by_distance(bias: np.ndarray) -> np.ndarray | None:
    """What is added to scores [heads, query, key], by distance: [heads, queries + keys - 1]; None where it is not the
    same for all pairs that are equally far apart."""
    found = np.concatenate([bias[:, :0:-1, 0], bias[:, 0]], axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(found, bias.shape[2], axis=-1)
    return found if np.array_equal(windows[:, ::-1], bias) else None


@dataclass(frozen=True, eq=False)  # eq=False: hashed by identity, since arrays cannot be hashed
class AttentionMaps:
    """Every attention map of one kind.

    weights       float32 [layers, heads, query, key]: the softmax's output, before any dropout; rows sum to 1. Of a
                  text whose maps are larger than a trace may be, what computes them when they are looked at
                  (ComputedWeights)
    query_tokens  the tokens whose rows these are: for the decoder the tokens READ, `<s> y1 .. yT`
    key_tokens    the tokens attended to

    Raises ValueError if shapes disagree or a row does not sum to 1 within 1e-4.
    """

    weights: np.ndarray  # or ComputedWeights, which indexes and converts as an array does
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
            return  # a softmax's
        if not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise ValueError("weights must be finite and not negative")
        error = np.abs(self.weights.sum(-1, dtype=np.float64) - 1.0)
        if error.size and error.max() > ROW_SUM_TOLERANCE:
            layer, head, query = (int(i) for i in np.unravel_index(error.argmax(), error.shape))
            raise ValueError(f"row {query} of layer {layer}, head {head} sums to 1 only within {error.max():.2e}")

    @property
    def computed(self) -> bool:
        """Whether a map is computed when it is looked at, since all of them would not fit."""
        return isinstance(self.weights, ComputedWeights)

    def of_heads(self, measure: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What measure(weights [.., query, key]) -> [.., more] gives of every head: [layers, heads, more]. Of maps that
        are computed it is asked head by head, so that no two lie in memory at once."""
        if not self.computed:
            return measure(self.weights)
        return np.stack(
            [
                np.stack([measure(self.weights[layer, head]) for head in range(self.num_heads)])
                for layer in range(self.num_layers)
            ]
        )

    @property
    def num_layers(self) -> int:
        """The number of layers."""
        return self.weights.shape[0]

    @property
    def num_heads(self) -> int:
        """The number of heads in each layer."""
        return self.weights.shape[1]


def jensen_shannon_bits(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon divergence of distributions along the last axis, in bits: 0 (the same, but for what float32 leaves
    of one row computed in two ways) to 1 (disjoint)."""
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    middle = (p + q) / 2

    def relative(a: np.ndarray) -> np.ndarray:
        ratio = np.where(a > 0, a / np.where(middle > 0, middle, 1.0), 1.0)
        return (a * np.log2(ratio)).sum(-1)

    found = (relative(p) + relative(q)) / 2
    return np.where(found > ROUNDED_BITS, found, 0.0)
