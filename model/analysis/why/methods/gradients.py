"""Gradient x input, and integrated gradients, on scaled token embeddings with positions held.

Source and prefix have rows of their own, also where one embedding table serves both. Gradients are taken of these rows
alone.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from model.analysis.why.case import Case
from model.analysis.why.method import Answer, Method
from model.trace.language import say
from model.trace.why.evidence import Evidence, Sum, Unit

STEPS = (25, 50, 100, 200)  # of the integral: doubled until it is complete
COMPLETE = 0.02  # of the gap between the sentence and the baseline
LEAST = 1e-3  # nats: what a gap's 2 % must not fall below


def gradients(case: Case, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The metric float64 [batch] from rows source [batch, source, d_model] and target [batch, step + 1, d_model] in
    place of token embeddings, and its gradients by them, of their shapes."""
    with torch.inference_mode(False), torch.enable_grad():
        source, target = source.detach().clone().requires_grad_(), target.detach().clone().requires_grad_()
        metric = case.measure(case.decode(target, case.encode(source)))
        by_source, by_target = torch.autograd.grad(metric.sum(), (source, target))
    return metric.detach(), by_source, by_target


def gradient_x_input(case: Case) -> Answer:
    """grad . embedding, summed over each column (Shrikumar et al. 2017; Li et al. 2016)."""
    _, *found = gradients(case, case.source_rows, case.target_rows)
    return Answer(case.columns.gather(*(
        (gradient.double() * rows.double()).sum(-1)[0].cpu().numpy()
        for gradient, rows in zip(found, (case.source_rows, case.target_rows)))))


def integrated_gradients(case: Case) -> Answer:
    """(e - e') . integral of the gradient on the line from e' to e (Sundararajan et al. 2017, section 3), e' the mean
    embedding at every position, by Gauss-Legendre nodes. A sum that is off by more than 2 % of m(e) - m(e') after 200
    steps says so."""
    mean_source, mean_target, of_what = case.mean_rows
    ends = (case.source_rows, case.target_rows)
    baselines = (mean_source.expand_as(ends[0]), mean_target.expand_as(ends[1]))
    gap = case.metric() - _at(case, baselines)
    tolerance = max(COMPLETE * abs(gap), LEAST)
    for steps in STEPS:
        values = case.columns.gather(*_integral(case, baselines, ends, steps))
        found = Sum(gap, float(values.sum()), tolerance)
        if found.holds:
            break
    notes = [say("From the {mean} at every position, {steps} steps.", mean=of_what, steps=steps)]
    if not found.holds:
        notes.append(say("Incomplete: the sum misses its target by more than 2 %."))
    return Answer(values, found, tuple(notes))


def _at(case: Case, rows: tuple[Tensor, Tensor]) -> float:
    with torch.inference_mode():
        return float(case.measure(case.decode(rows[1], case.encode(rows[0])))[0])


def _integral(case: Case, baselines: tuple[Tensor, Tensor], ends: tuple[Tensor, Tensor], steps: int
              ) -> list[np.ndarray]:
    """Per side float64 [positions]: the attribution of each position with so many nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    nodes, weights = (nodes + 1) / 2, weights / 2  # from [-1, 1] to [0, 1]
    changes = [end - start for end, start in zip(ends, baselines)]
    totals = [torch.zeros_like(change[0], dtype=torch.float64) for change in changes]
    for part in case.chunks(steps):
        alpha = torch.from_numpy(nodes[part]).to(ends[0])[:, None, None]
        _, *found = gradients(case, *(start + alpha * change for start, change in zip(baselines, changes)))
        share = torch.from_numpy(weights[part]).to(ends[0].device)
        for total, gradient in zip(totals, found):
            total += torch.einsum("n,nld->ld", share, gradient.double())
    return [(total * change[0].double()).sum(-1).cpu().numpy() for total, change in zip(totals, changes)]


GRADIENT_X_INPUT = Method(
    say("gradient x input"), Evidence.PROXY, Unit.NATS,
    say("How the metric would move if the word's embedding grew a little."),
    say("The slope here says little about what happens without the word."), gradient_x_input)
INTEGRATED_GRADIENTS = Method(
    say("integrated gradients"), Evidence.EXACT_SPLIT, Unit.NATS,
    say("The slope summed along the way from average words to these."),
    say("It splits the difference to a sentence of average words, which is no sentence."), integrated_gradients,
    slow=True)
