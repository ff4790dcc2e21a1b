"""The mean slope of the decoder's last stream by every stream before it, over positions of many sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.lenses.streams import streams
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.decode.runs import Run
from attention_atlas.model.trace.kinds import Side

TOGETHER = 16  # numbers of the last stream whose slopes are found at once


class Jacobians:
    """Sums by place, float64 [d_model, d_model], and over how many positions of each side.

    One position's share is the slope of the last stream's sum over all rows of the target, by the stream at that
    position: what it does to everything that is written. A decoder's stream cannot reach back, so that for it the sum
    is over its own row and later ones.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.sides = {side: streams(config, side) for side in (Side.ENCODER, Side.DECODER)}
        size = (config.d_model, config.d_model)
        self.totals = {name: torch.zeros(size, dtype=torch.float64) for names in self.sides.values() for name in names}
        self.positions = {side: 0 for side in self.sides}

    @property
    def names(self) -> tuple[str, ...]:
        """What a run must keep."""
        return tuple(self.totals)

    def add(self, run: Run) -> None:
        """More sentences: a run with gradients that keeps all of `names`."""
        for _ in self.adding(run):
            pass

    def adding(self, run: Run) -> Iterator[None]:
        """The same, a few numbers of the last stream at a time."""
        places = [run[name] for name in self.names]
        final = places[-1]
        width = final.shape[-1]
        for start in range(0, width, TOGETHER):
            rows = torch.arange(start, min(start + TOGETHER, width), device=final.device)
            seeds = final.new_zeros(len(rows), *final.shape)
            seeds[torch.arange(len(rows)), :, :, rows] = run.mask.to(final)
            slopes = torch.autograd.grad(final, places, seeds, retain_graph=True, is_grads_batched=True)
            for name, slope in zip(self.names, slopes):  # [rows, batch, position, d_model]; 0 at padding
                self.totals[name][rows.cpu()] += slope.sum((1, 2)).cpu().double()
            yield
        self.positions[Side.ENCODER] += int(run.source_mask.sum())
        self.positions[Side.DECODER] += int(run.mask.sum())

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """What was added so far, for restore(): float64 [place, d_model, d_model], and how many positions a side."""
        return np.stack([one.numpy() for one in self.totals.values()]), np.array([*self.positions.values()])

    def restore(self, sums: np.ndarray, positions: np.ndarray) -> None:
        """Add what another one's sums() gave."""
        for name, one in zip(self.totals, sums):
            self.totals[name] += torch.from_numpy(one)
        for side, count in zip(self.positions, positions):
            self.positions[side] += int(count)

    def means(self, side: Side) -> Tensor:
        """float32 [layers + 1, d_model, d_model], each to be multiplied with a stream. The decoder's last is 1."""
        assert self.positions[side]
        return torch.stack([self.totals[name] / self.positions[side] for name in self.sides[side]]).float()
