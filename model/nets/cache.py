"""The key/value cache of a decoder: the keys and values of the prefix, one row a token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class LayerCache:
    """The keys and values of one decoder layer's self-attention."""

    keys: Tensor | None = None  # [batch, heads, capacity, d_head]
    values: Tensor | None = None

    def extend(self, start: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store new rows [batch, heads, new, d_head] from position `start`, and return all rows up to their end."""
        end = start + keys.shape[2]
        if self.keys is None or self.keys.shape[2] < end:
            self.keys = _grow(self.keys, keys, start, end)
            self.values = _grow(self.values, values, start, end)
        self.keys.narrow(2, start, end - start).copy_(keys)
        self.values.narrow(2, start, end - start).copy_(values)
        return self.keys.narrow(2, 0, end), self.values.narrow(2, 0, end)


def _grow(old: Tensor | None, new: Tensor, start: int, end: int) -> Tensor:
    # The capacity doubles, so that a decode of n steps copies O(n) rows in all, not O(n^2).
    batch, heads, _, d_head = new.shape
    grown = new.new_zeros(batch, heads, max(16, 2 * end), d_head)
    if old is not None:
        grown[:, :, :start] = old[:, :, :start]
    return grown


def _select(old: Tensor, rows: Tensor, length: int) -> Tensor:
    _, heads, capacity, d_head = old.shape
    selected = old.new_empty(len(rows), heads, capacity, d_head)
    torch.index_select(old.narrow(2, 0, length), 0, rows, out=selected.narrow(2, 0, length))
    return selected


class KeyValueCache:
    """The self-attention keys and values of a decoder's prefix; the caller owns it, the model reads and extends it.

    `length` rows are valid. The keys and values of cross-attention do not depend on the prefix:
    model.nets.layer.SourceMemory stores them.
    """

    def __init__(self, num_layers: int) -> None:
        self.layers: list[LayerCache] = [LayerCache() for _ in range(num_layers)]
        self.length: int = 0

    def reorder(self, rows: Tensor) -> None:
        """Make the batch rows [new_batch] the new batch."""
        for layer in self.layers:
            if layer.keys is not None:
                layer.keys, layer.values = (_select(old, rows, self.length) for old in (layer.keys, layer.values))
