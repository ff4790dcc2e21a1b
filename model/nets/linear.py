"""x W^T + b, by the faster of torch's two libraries."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import processor

WORTH_IT = 1 << 19  # multiplications: of fewer, what oneDNN does before it begins takes longer


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, relu: bool = False) -> Tensor:
    """x [.., in], weight [out, in], bias [out] or None -> [.., out], as torch.nn.functional.linear; relu: and then
    torch.relu.

    torch multiplies float32 by MKL, which on processors that are not Intel's leaves AVX-512 alone. oneDNN, which comes
    with torch too, does not: on two cores of an AMD EPYC 490 GFLOP/s in place of 215, of many rows. torch has that
    product without gradients alone.
    """
    if (
        x.numel() * weight.shape[0] >= WORTH_IT
        and x.dtype is torch.float32
        and weight.dtype is torch.float32
        and x.device.type == "cpu"
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and gains_by_onednn()
    ):
        weight = weight if _is_in_one_piece(weight) else weight.t().contiguous().t()
        return torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "relu" if relu else "none", [], "")
    found = F.linear(x, weight, bias)
    return torch.relu(found) if relu else found


class Linear(nn.Linear):
    """torch.nn.Linear by linear()."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def is_for_onednn(weight: Tensor) -> bool:
    """Whether linear() takes oneDNN for many rows and reads this matrix [out, in] as it lies in memory."""
    on_cpu = weight.dtype is torch.float32 and weight.device.type == "cpu"
    return on_cpu and _is_in_one_piece(weight) and gains_by_onednn()


def _is_in_one_piece(weight: Tensor) -> bool:
    """Or oneDNN takes a thousand times as long: some rows of a parameter that lies by columns are not."""
    return weight.is_contiguous() or weight.t().is_contiguous()


@cache
def gains_by_onednn() -> bool:
    """Whether this processor multiplies faster by it, and this torch has the product."""
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and not processor.is_intels()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
