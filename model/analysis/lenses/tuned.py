"""Fit the tuned lens: affine maps from each layer's stream to the last one (Belrose et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Generator

import torch
from torch import Tensor

from attention_atlas.model.nets.blocks import exact

Progress = tuple[int, int]  # parts done, parts in all
Project = Callable[[Tensor], Tensor]  # a last stream [row, d_model], before its norm -> logits [row, vocabulary]

STEPS = 250
ROWS = 192  # in one step
RATE = 1e-3
HELD_OUT = 8  # every eighth row is held out to choose the best map
RIDGES = (1.0, 10.0, 100.0, 1000.0)
EVALUATIONS = 10  # on the held-out rows


def fit_layer(
    project: Project,
    stream: Tensor,
    last: Tensor,
    steps: int = STEPS,
    *,
    progress: Progress | None = None,
) -> Generator[Progress | None, None, tuple[Tensor, Tensor]]:
    """Fit W float32 [d_model, d_model] and b [d_model] of one layer's stream [row, d_model] to the last stream.

    stream + W stream + b should predict what the last stream predicts, measured by the KL divergence. The fit starts
    from ridge regression, which shrinks W to 0 (the logit lens), and continues with Adam on the divergence for `steps`
    steps. The best map on held-out rows is returned, which may be the logit lens.

    Yields `progress` before each step; different threads may take the steps.
    """
    is_held_out = torch.arange(len(stream), device=stream.device) % HELD_OUT == 0
    with torch.no_grad():
        expected = project(last[is_held_out]).log_softmax(-1)

    def error(w: Tensor, b: Tensor) -> float:
        with torch.no_grad():
            return float(divergence(expected, project(stream[is_held_out] + stream[is_held_out] @ w.T + b)).mean())

    width = stream.shape[-1]
    best = stream.new_zeros(width, width), stream.new_zeros(width)
    best_error = error(*best)
    for ridge in RIDGES:
        yield progress
        candidate = _fit_ridge(stream[~is_held_out], last[~is_held_out], ridge)
        if (new_error := error(*candidate)) < best_error:
            best, best_error = candidate, new_error
    with torch.inference_mode(False):
        w, b = (part.clone().requires_grad_() for part in best)
        optimiser, generator = torch.optim.Adam([w, b], lr=RATE), torch.Generator().manual_seed(0)
    rows = (~is_held_out).nonzero()[:, 0]
    for step in range(steps):
        yield progress
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - step / steps)
        sample = rows[torch.randint(len(rows), (ROWS,), generator=generator).to(rows.device)]
        with torch.inference_mode(False), torch.enable_grad():
            with torch.no_grad():
                end = project(last[sample]).log_softmax(-1)
            loss = divergence(end, project(stream[sample] + stream[sample] @ w.T + b)).mean()
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        if (step + 1) % max(1, steps // EVALUATIONS) == 0 and (new_error := error(w, b)) < best_error:
            best, best_error = (w.detach().clone(), b.detach().clone()), new_error
    return best


def _fit_ridge(stream: Tensor, last: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    x, y = exact(stream), exact(last - stream)
    x_mean, y_mean = x.mean(0), y.mean(0)
    x, y = x - x_mean, y - y_mean
    w = torch.linalg.solve(x.T @ x + ridge * torch.eye(x.shape[1], device=x.device, dtype=x.dtype), x.T @ y).T
    return w.to(stream), (y_mean - w @ x_mean).to(stream)


def divergence(log_probabilities: Tensor, logits: Tensor) -> Tensor:
    """Return KL(exp(log_probabilities), softmax(logits)) of each row, in nats; both [.., row, vocabulary]."""
    return (log_probabilities.exp() * (log_probabilities - logits.log_softmax(-1))).sum(-1)
