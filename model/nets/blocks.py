"""Numbers that not every device has room for: float64, and logits, which are taken some rows at a time. Those of a long
sentence over 256,000 tokens are 170 MB, those of a lens through twelve layers 2 GB."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

ROOM = 1 << 22  # logits that are held at once: 16 MB in float32


def blocks(rows: int, vocabulary: int, *, room: int = ROOM) -> list[slice]:
    """Slices of `rows` rows whose logits over `vocabulary` tokens fit into the room, at least one row each."""
    size = max(1, room // vocabulary)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def log_probabilities(
    project: Callable[[Tensor], Tensor],
    hidden: Tensor,
    ids: Tensor,
    vocabulary: int,
    *,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The natural log-probability [row], of this dtype, that each row of hidden [row, d_model] gives to one token, ids
    int64 [row]. project: rows [.., d_model] -> logits [.., vocabulary]. Differentiable once, by hidden: its slope is
    found with a block's logits, which nothing keeps."""
    parts = [_of_block(project, hidden[part], ids[part], dtype) for part in blocks(len(ids), vocabulary)]
    return torch.cat(parts) if parts else hidden.new_zeros(0, dtype=dtype)


def _of_block(project: Callable[[Tensor], Tensor], rows: Tensor, ids: Tensor, dtype: torch.dtype) -> Tensor:
    def found(rows: Tensor) -> Tensor:
        logits = project(rows)
        logits = exact(logits) if dtype == torch.float64 else logits.to(dtype)
        return logits.gather(-1, ids[:, None].to(logits.device))[:, 0] - logits.logsumexp(-1)

    if not (torch.is_grad_enabled() and rows.requires_grad):
        return found(rows)
    at = rows.detach().requires_grad_()
    value = found(at)
    (slope,) = torch.autograd.grad(value.sum(), at)  # of a row's value by that row alone
    nothing = ((rows - at.detach()) * slope).sum(-1)  # 0, with the slope
    return value.detach() + nothing.to(value.device)


def most_probable(project: Callable[[Tensor], Tensor], hidden: Tensor, vocabulary: int) -> Tensor:
    """The most probable token int64 [row] of each row of hidden [row, d_model]; project as above."""
    return torch.cat([project(hidden[part]).argmax(-1) for part in blocks(len(hidden), vocabulary)])


def exact(x: Tensor) -> Tensor:
    """x in float64; differentiable."""
    return with_float64(x).double()


def with_float64(x: Tensor) -> Tensor:
    """x where there is float64: Apple's mps has none, so on the CPU from there."""
    return x.cpu() if x.device.type == "mps" else x
