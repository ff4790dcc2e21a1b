"""Sinusoidal positional encoding (Vaswani et al. 2017, section 3.5)."""

from __future__ import annotations

import torch
from torch import Tensor


def sinusoidal_encoding(positions: Tensor, d_model: int, *, base: float = 10_000.0) -> Tensor:
    """The encoding of each position.

        PE(pos, 2i)   = sin(pos / base^(2i / d_model))
        PE(pos, 2i+1) = cos(pos / base^(2i / d_model))

    Sine and cosine of one pair share the exponent 2i/d_model, so a shift by k rotates every pair by a fixed
    angle. (Vaswani et al. 2017, section 3.5)

    positions: [length], any real numbers; d_model: even. Returns float32 [length, d_model].
    """
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2, found {d_model}")
    # In float64: at position 4000 a float32 angle is already off by 2e-4.
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device) / d_model  # [d_model / 2]
    angles = positions.double()[:, None] / base**exponents  # [length, d_model / 2]
    encoding = torch.stack((angles.sin(), angles.cos()), dim=-1)  # [length, d_model / 2, 2]
    return encoding.flatten(1).float()  # [length, d_model]
