"""Computations over logits in blocks of rows, and in float64 where a device has it.

The logits of a long sentence over 256,000 tokens take 170 MB, those of a lens through twelve layers 2 GB.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

MAX_LOGITS = 1 << 22  # numbers of one block: 16 MB in float32


def blocks(rows: int, vocabulary: int, *, max_logits: int = MAX_LOGITS) -> list[slice]:
    """Return slices of `rows` rows with at most `max_logits` logits over `vocabulary` tokens, at least one row each.

    >>> blocks(5, 100, max_logits=250)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, max_logits // vocabulary)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def log_probabilities(
    project: Callable[[Tensor], Tensor],
    hidden: Tensor,
    ids: Tensor,
    vocabulary: int,
    *,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the natural log-probability [row] of ids int64 [row], each by its row of hidden [row, d_model].

    project: rows [.., d_model] -> logits [.., vocabulary]. The result has this dtype and is differentiable once with
    respect to hidden; no block's logits are stored for that.
    """
    parts = [_block_log_probabilities(project, hidden[part], ids[part], dtype) for part in blocks(len(ids), vocabulary)]
    return torch.cat(parts) if parts else hidden.new_zeros(0, dtype=dtype)


def _block_log_probabilities(
    project: Callable[[Tensor], Tensor], rows: Tensor, ids: Tensor, dtype: torch.dtype
) -> Tensor:
    def compute(rows: Tensor) -> Tensor:
        logits = project(rows)
        logits = exact(logits) if dtype == torch.float64 else logits.to(dtype)
        return logits.gather(-1, ids[:, None].to(logits.device))[:, 0] - logits.logsumexp(-1)

    if not (torch.is_grad_enabled() and rows.requires_grad):
        return compute(rows)
    at = rows.detach().requires_grad_()
    value = compute(at)
    (slope,) = torch.autograd.grad(value.sum(), at)  # each row's value depends on that row alone
    zero = ((rows - at.detach()) * slope).sum(-1)  # carries the gradient
    return value.detach() + zero.to(value.device)


def most_probable(project: Callable[[Tensor], Tensor], hidden: Tensor, vocabulary: int) -> Tensor:
    """Return the most probable token int64 [row] of each row of hidden [row, d_model]; project as above."""
    return torch.cat([argmax(project(hidden[part])) for part in blocks(len(hidden), vocabulary)])


def argmax(logits: Tensor) -> Tensor:
    """Return the id of the largest logit in each row, int64 [..]. On the CPU NumPy is ten times as fast as torch."""
    if logits.device.type == "cpu" and logits.dtype == torch.float32 and not logits.requires_grad:
        return torch.from_numpy(logits.numpy().argmax(-1))
    return logits.argmax(-1)


def exact(x: Tensor) -> Tensor:
    """Return x in float64; differentiable."""
    return with_float64(x).double()


def with_float64(x: Tensor) -> Tensor:
    """Return x on a device that has float64: on the CPU instead of Apple's mps."""
    return x.cpu() if x.device.type == "mps" else x
