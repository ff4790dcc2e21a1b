"""Dropout that draws a byte an element: torch's own took a tenth of a training step on the CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Dropout whose mask on the CPU takes one random byte an element, where torch draws 64 bits.

    The rate is rounded to a multiple of 1/256 there, and the kept values are scaled by exactly that rate.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        threshold = min(max(1, round(self.rate * 256)), 255)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        keep = words.view(torch.uint8)[: x.numel()].view(x.shape) >= threshold
        return x * (keep.to(x.dtype) * (256.0 / (256 - threshold)))
