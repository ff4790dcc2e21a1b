"""What is added to embeddings so that a model knows their order (Vaswani et al. 2017, section 3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from model.config import ModelConfig, PositionCode
from model.trace.interventions import Positions
from model.trace.language import Refusal


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


def fairseq_encoding(positions: Tensor, d_model: int, *, base: float = 10_000.0) -> Tensor:
    """The encoding of tensor2tensor and fairseq, which M2M100 and NLLB were trained with.

        PE(pos, i)               = sin(pos * exp(-i log(base) / (d_model / 2 - 1)))    for i < d_model / 2
        PE(pos, d_model / 2 + i) = cos of the same angle

    All in float32, as there: at position 512 that is 3.6e-5 away from what float64 gives, and is what was trained.
    positions: [length], whole numbers; d_model: even, at least 4. Returns float32 [length, d_model].
    """
    if d_model < 4 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 4, found {d_model}")
    half = d_model // 2
    rates = torch.exp(torch.arange(half, device=positions.device).float() * -(math.log(base) / (half - 1)))
    angles = positions.float()[:, None] * rates[None]  # [length, d_model / 2]
    return torch.cat((angles.sin(), angles.cos()), dim=1)  # [length, d_model]


def encoding(config: ModelConfig, positions: Tensor) -> Tensor:
    """The code that a model of this config computes for positions [length]: float32 [length, d_model]."""
    assert config.position_code not in (PositionCode.LEARNED, PositionCode.NONE)
    where = positions + config.position_offset
    if config.position_code is PositionCode.FAIRSEQ:
        return fairseq_encoding(where, config.d_model, base=config.position_base)
    rows = sinusoidal_encoding(where, config.d_model, base=config.position_base)
    return rows if config.position_code is PositionCode.INTERLEAVED else torch.cat((rows[:, 0::2], rows[:, 1::2]), 1)


class ComputedPositions(nn.Module):
    """The sinusoids of a config: a table that is computed, never saved, for any position at all."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        # On the CPU even while the rest is built on torch's memoryless "meta" device.
        table = encoding(config, torch.arange(config.max_length, device="cpu"))
        self.register_buffer("table", table, persistent=False)

    def forward(self, first: int, length: int, positions: Positions = Positions()) -> Tensor | None:
        """What is added to embeddings at positions first .. first + length - 1: [length, d_model], or None."""
        if not positions.enabled:
            return None
        start = first + positions.shift
        if start >= 0 and start + length <= len(self.table):
            return self.table[start : start + length]
        rows = encoding(self.config, torch.arange(start, start + length, device=self.table.device))
        return rows.to(self.table.dtype)


class NoPositions(nn.Module):
    """A model that is told no positions: nothing is added."""

    def forward(self, first: int, length: int, positions: Positions = Positions()) -> None:
        """As ComputedPositions: there is no code to switch off or to shift."""


class LearnedPositions(nn.Module):
    """A row of parameters a position (Gehring et al. 2017, section 3.1), for as many as the model was trained with."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.offset = config.position_offset  # the rows before it belong to no position
        weight = torch.empty(config.max_length + config.position_offset, config.d_model)
        if not weight.is_meta:
            nn.init.normal_(weight, std=config.d_model**-0.5)
        self.weight = nn.Parameter(weight)

    @property
    def table(self) -> Tensor:
        """The rows of positions 0 .. max_length - 1: [max_length, d_model]."""
        return self.weight[self.offset :]

    def forward(self, first: int, length: int, positions: Positions = Positions()) -> Tensor | None:
        """As ComputedPositions. ValueError for positions that have no row."""
        if not positions.enabled:
            return None
        start, rows = first + positions.shift, len(self.weight) - self.offset
        if start < 0 or start + length > rows:
            raise Refusal(
                "This model learned a vector for each of the positions 0 to {last} and has none for {found}.",
                last=rows - 1,
                found=start if start < 0 else start + length - 1,
            )
        return self.table[start : start + length]


def position_modules(config: ModelConfig) -> tuple[nn.Module, nn.Module]:
    """The codes of source and target positions: one module, but for learned ones."""
    if config.position_code is PositionCode.LEARNED:
        return LearnedPositions(config), LearnedPositions(config)
    code = NoPositions() if config.position_code is PositionCode.NONE else ComputedPositions(config)
    return code, code
