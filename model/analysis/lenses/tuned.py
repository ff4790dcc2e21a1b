"""Affine translators from a stream on its way to the last one (Belrose et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Generator

import torch
from torch import Tensor

from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.serve.work import finish

Progress = tuple[int, int]  # how many parts are done, of how many
Project = Callable[[Tensor], Tensor]  # a last stream [row, d_model], before its norm -> logits [row, vocabulary]

STEPS = 250
ROWS = 192  # of a step
RATE = 1e-3
HELD_OUT = 8  # one row of so many chooses
RIDGES = (1.0, 10.0, 100.0, 1000.0)
LOOKS = 10  # how often the held-out rows are looked at


def fit(project: Project, streams: Tensor, *, steps: int = STEPS, seed: int = 0) -> tuple[Tensor, Tensor]:
    """W float32 [layers, d_model, d_model] and b [layers, d_model] of streams [layers + 1, row, d_model], whose last is
    the model's own: stream + W stream + b has the least KL divergence to what the model says.

    Begins with least squares, whose ridge pulls W to 0, the logit lens; then Adam on the divergence itself. Of all that
    was tried what did best on rows that nothing was fitted to is kept, the logit lens among it. steps: of Adam.
    """
    layers = [finish(fitting(project, stream, streams[-1], steps, seed)) for stream in streams[:-1]]
    weights, biases = zip(*layers)
    return torch.stack(weights), torch.stack(biases)


def fitting(
    project: Project,
    stream: Tensor,
    last: Tensor,
    steps: int = STEPS,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> Generator[Progress | None, None, tuple[Tensor, Tensor]]:
    """Fit W and b of one layer's stream [row, d_model], and yield `progress` before each step. Steps may be taken by
    different threads."""
    held = torch.arange(len(stream), device=stream.device) % HELD_OUT == 0
    with torch.no_grad():
        wanted = project(last[held]).log_softmax(-1)

    def missed(w: Tensor, b: Tensor) -> float:
        with torch.no_grad():
            return float(divergence(wanted, project(stream[held] + stream[held] @ w.T + b)).mean())

    width = stream.shape[-1]
    best = stream.new_zeros(width, width), stream.new_zeros(width)
    best_miss = missed(*best)
    for ridge in RIDGES:
        yield progress
        tried = _least_squares(stream[~held], last[~held], ridge)
        if (miss := missed(*tried)) < best_miss:
            best, best_miss = tried, miss
    with torch.inference_mode(False):
        w, b = (part.clone().requires_grad_() for part in best)
        optimiser, chance = torch.optim.Adam([w, b], lr=RATE), torch.Generator().manual_seed(seed)
    rows = (~held).nonzero()[:, 0]
    for step in range(steps):
        yield progress
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - step / steps)
        drawn = rows[torch.randint(len(rows), (ROWS,), generator=chance).to(rows.device)]
        with torch.inference_mode(False), torch.enable_grad():
            with torch.no_grad():
                end = project(last[drawn]).log_softmax(-1)
            loss = divergence(end, project(stream[drawn] + stream[drawn] @ w.T + b)).mean()
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        if (step + 1) % max(1, steps // LOOKS) == 0 and (miss := missed(w, b)) < best_miss:
            best, best_miss = (w.detach().clone(), b.detach().clone()), miss
    return best


def _least_squares(stream: Tensor, last: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    x, y = exact(stream), exact(last - stream)
    x_mean, y_mean = x.mean(0), y.mean(0)
    x, y = x - x_mean, y - y_mean
    w = torch.linalg.solve(x.T @ x + ridge * torch.eye(x.shape[1], device=x.device, dtype=x.dtype), x.T @ y).T
    return w.to(stream), (y_mean - w @ x_mean).to(stream)


def divergence(wanted: Tensor, logits: Tensor) -> Tensor:
    """KL divergence [row], in nats, of what logits [row, vocabulary] say from wanted log-probabilities."""
    found = logits.log_softmax(-1)
    return (wanted.exp() * (wanted - found)).sum(-1)
