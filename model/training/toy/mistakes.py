"""Mistakes in Transformers written by hand, which a toy can be built with to see their effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from attention_atlas.model.trace.interventions import Positions
from attention_atlas.model.trace.kinds import NamedEnum

OUTSIDE_EPSILON = 1e-6


class ToyNorm(NamedEnum):
    """The norms of a toy: a layer norm, and three mistakes."""

    LAYER = "layer"
    NEW = "new"  # a layer norm created anew in every forward pass: its gain and bias are never learned
    BATCH = "batch"  # over the tokens of the batch, padding included, in place of the dimensions of a token
    OUTSIDE = "outside"  # epsilon added to the standard deviation, and that over n - 1


class NewNorm(nn.Module):
    """A layer norm that is created in each forward pass, so the optimiser never updates its gain and bias."""

    weight = bias = None

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return nn.LayerNorm(x.shape[-1], self.eps)(x)


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation (Ioffe and Szegedy 2015) of tokens [.., width]; in evaluation by the running statistics."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.reshape(-1, x.shape[-1])).view_as(x)


class OutsideNorm(nn.Module):
    """gain * (x - mean) / (std + epsilon) + bias, with the standard deviation over n - 1."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = OUTSIDE_EPSILON
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return self.weight * centred / (x.std(-1, keepdim=True) + self.eps) + self.bias


NORMS: Mapping[ToyNorm, Callable[[int, float], nn.Module]] = {
    ToyNorm.NEW: NewNorm,
    ToyNorm.BATCH: BatchNorm,
    ToyNorm.OUTSIDE: OutsideNorm,
}


class HiddenDiagonal(nn.Module):
    """The mask of `triu` with k = 0: a row of the decoder's self-attention sees earlier tokens, but not its own.

    It is a bias on the scores, in the place of a stack's table of relative positions, which it adds if there is one.
    Row 0, which would see nothing (a softmax of -inf is not a number), keeps itself.
    """

    def __init__(self, table: nn.Module | None = None) -> None:
        super().__init__()
        self.table = table

    def forward(self, first: int, queries: int, keys: int, positions: Positions = Positions()) -> Tensor:
        """Return the bias for queries from position `first` on, [1, heads or 1, query, key]."""
        rows = torch.arange(first, first + queries)
        hidden = (rows[:, None] == torch.arange(keys)) & (rows[:, None] > 0)
        bias = torch.zeros(1, 1, queries, keys).masked_fill(hidden, float("-inf"))
        table = None if self.table is None else self.table(first, queries, keys, positions)
        return bias if table is None else bias + table


def replace_norms(module: nn.Module, norm: ToyNorm) -> None:
    """Replace the layer norms of a network by another norm, in place."""
    for name, child in module.named_children():
        if isinstance(child, nn.LayerNorm):
            setattr(module, name, NORMS[norm](child.normalized_shape[0], child.eps))
        else:
            replace_norms(child, norm)


def hide_diagonal(decoder: nn.Module) -> None:
    """Hide from each row of a decoder's self-attention its own token, in place."""
    decoder.relative = nn.ModuleList(HiddenDiagonal(table) for table in decoder.relative or [None])
