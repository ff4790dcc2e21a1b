"""x W^T + b, of many rows by the faster of what torch has."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model import processor
from attention_atlas.model.nets.lean.halves import half

MANY = 64  # rows: a packed copy of a matrix takes as long to make as some ten sentences to read
PACKED = 1 << 22  # numbers of a matrix; copies of more would take too much memory
ALL = slice(None)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, rows: slice = ALL) -> Tensor:
    """x [.., in] times these rows of a parameter, weight [out, in], and of its bias, [out] or None: [.., rows], as
    torch.nn.functional.linear.

    torch multiplies float32 by MKL, which on processors that are not Intel's leaves AVX-512 alone. FBGEMM does not,
    where float16 holds the weights (model.nets.lean.halves): on two cores of an AMD EPYC 470 GFLOP/s in place of 215.
    oneDNN does as much for any weights, but compiles anew for every number of rows: 0.4 ms and 0.6 MB each.
    """
    if (
        x.shape[:-1].numel() >= MANY
        and torch.is_inference_mode_enabled()
        and x.dtype is torch.float32
        and weight.numel() <= PACKED
        and not torch.is_autocast_enabled("cpu")
        and not processor.is_intels()
    ):
        packed = half(weight, rows, bias)
        if packed is not None:
            return packed(x)
    if rows != ALL:
        weight, bias = weight[rows], None if bias is None else bias[rows]
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """torch.nn.Linear by linear()."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)
