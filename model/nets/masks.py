"""Padding, and the masks of attention: boolean, True = may attend."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return which keys are tokens: boolean [batch, 1, 1, key] for ids [batch, key], padded on the right.

    Position 0 holds the language or begin symbol and is always True, so that no row of a map is empty.
    """
    mask = ids != pad_id
    mask[:, 0] = True
    return mask[:, None, None, :]


def causal_mask(length: int, *, first_query: int = 0, device: torch.device | None = None) -> Tensor:
    """Return the look-ahead mask, boolean [1, 1, query, key]: query t attends to keys 0 .. t.

    The queries are first_query .. length - 1, the keys 0 .. length - 1.
    """
    mask = torch.ones(length - first_query, length, dtype=torch.bool, device=device)
    return mask.tril(diagonal=first_query)[None, None]


def pad(sequences: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Return ids int64 [batch, longest], padded on the right; [0, 0] for no sequences."""
    padded = torch.full((len(sequences), max(map(len, sequences), default=0)), pad_id, dtype=torch.long)
    for row, sequence in zip(padded, sequences):
        row[: len(sequence)] = torch.tensor(sequence, dtype=torch.long)
    return padded
