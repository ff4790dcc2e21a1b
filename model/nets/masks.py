"""Padding, and which cells of an attention map may carry weight: True = may attend."""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Which keys are real tokens: boolean [batch, 1, 1, key] from ids [batch, key], padded on the right.

    Position 0 is always open (it holds the language or begin symbol), so no row is ever left with nothing.
    """
    mask = ids != pad_id
    mask[:, 0] = True
    return mask[:, None, None, :]


def causal_mask(length: int, *, first_query: int = 0, device: torch.device | None = None) -> Tensor:
    """Query t sees keys 0 .. t: boolean [1, 1, query, key] for queries first_query .. length - 1 over `length` keys."""
    mask = torch.ones(length - first_query, length, dtype=torch.bool, device=device)
    return mask.tril(diagonal=first_query)[None, None]


def pad(sequences: list[list[int]], pad_id: int) -> Tensor:
    """int64 [batch, longest], padded on the right. No sequences: [0, 0]."""
    padded = torch.full((len(sequences), max(map(len, sequences), default=0)), pad_id, dtype=torch.long)
    for row, sequence in zip(padded, sequences):
        row[: len(sequence)] = torch.tensor(sequence, dtype=torch.long)
    return padded
