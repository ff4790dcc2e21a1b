"""Sparse codes of a stream: a top-k autoencoder (Gao et al. 2024), and directions that nobody trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

RATE, ROWS = 1e-3, 512
DEAD = 100  # updates without a row after which a unit counts as dead
REVIVED, REVIVED_BY = 128, 1 / 32  # dead units that learn what is left over, and how much that counts
RIDGE = 1e-4


@dataclass(frozen=True, eq=False)
class Dictionary:
    """x is nearly centre + scale · codes(x) directions, at most k codes of a row above 0. Float32:

    encoder, bias  [unit, d_model] and [unit]
    directions     [unit, d_model], of length 1
    centre         [d_model]
    """

    encoder: Tensor
    bias: Tensor
    directions: Tensor
    centre: Tensor
    scale: float
    k: int

    def codes(self, rows: Tensor) -> Tensor:
        """[row, unit] of rows [row, d_model], at least 0, in the stream's own measure."""
        return self.scale * _largest(self._before(rows), self.k)

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows as the dictionary has them."""
        return self.centre + self.codes(rows) @ self.directions

    def _before(self, rows: Tensor) -> Tensor:
        return ((rows - self.centre) / self.scale) @ self.encoder.T + self.bias


def _largest(before: Tensor, k: int) -> Tensor:
    values, units = before.topk(k)
    return torch.zeros_like(before).scatter(-1, units, values.relu())


def train(
    rows: Tensor,
    size: int,
    k: int,
    steps: int,
    *,
    seed: int = 0,
    watch: Callable[[int], object] = lambda done: None,
) -> Dictionary:
    """Of rows [row, d_model]: `size` units of which k speak for a row. Directions keep length 1; units that have long
    been silent learn what the others leave over. watch hears how many updates are done. Six parameters: a dictionary's
    shape and how long it learns. ValueError for fewer rows than an update takes."""
    if len(rows) < ROWS:
        raise ValueError(f"a dictionary takes {ROWS} rows at the least, found {len(rows)}: give more sentences")
    chance = torch.Generator().manual_seed(seed)
    centre = rows.mean(0)
    scale = float((rows - centre).norm(dim=-1).mean()) / rows.shape[1] ** 0.5
    start = torch.randn(size, rows.shape[1], generator=chance).to(rows)
    directions = (start / start.norm(dim=-1, keepdim=True)).requires_grad_()
    encoder, bias = directions.detach().clone().requires_grad_(), rows.new_zeros(size).requires_grad_()
    optimiser, silent = torch.optim.Adam([encoder, bias, directions], lr=RATE), torch.zeros(size)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, 5 * (1 - step / steps))
        drawn = rows[torch.randint(len(rows), (ROWS,), generator=chance).to(rows.device)]
        x = (drawn - centre) / scale
        before = x @ encoder.T + bias
        codes = _largest(before, k)
        left = x - codes @ directions
        loss = left.pow(2).mean()
        silent = torch.where((codes > 0).any(0).cpu(), 0, silent + 1)
        dead = silent > DEAD
        if dead.any():
            among = before.masked_fill(~dead.to(before.device), float("-inf"))
            others = _largest(among, min(REVIVED, int(dead.sum())))
            loss = loss + REVIVED_BY * (left.detach() - others @ directions).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            along = (directions.grad * directions).sum(-1, keepdim=True)
            directions.grad -= along * directions
        optimiser.step()
        optimiser.zero_grad()
        with torch.no_grad():
            directions /= directions.norm(dim=-1, keepdim=True)
        watch(step + 1)
    return Dictionary(encoder.detach(), bias.detach(), directions.detach(), centre, scale, k)


def projected(directions: Tensor, centre: Tensor, k: int, rows: Tensor) -> Tensor:
    """Rows [row, d_model] as the k of given directions [unit, d_model] have them that they point along most, with the
    factors of least squares: the best that directions can do which are chosen so."""
    unit = directions / directions.norm(dim=-1, keepdim=True).clamp_min(1e-8)
    x = rows - centre
    chosen = unit[(x @ unit.T).abs().topk(min(k, len(unit))).indices]  # [row, k, d_model]
    gram = chosen @ chosen.transpose(1, 2) + RIDGE * torch.eye(chosen.shape[1], device=rows.device)
    factors = torch.linalg.solve(gram, chosen @ x[..., None])
    return centre + (factors * chosen).sum(1)
