"""Attention edges cut one by one: the effect of each cell of a map (Geva et al. 2023; Mohebbi et al. 2023).

A head without key j at row t outputs the mean of the other values, weighted by the rest of its row. That output is
patched in, so that one batch measures many cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

import numpy as np
import torch
import torch.nn.functional as F

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.sweep import PatchValue
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace.interventions import Edge, HeadOutput, Interventions, Patch
from attention_atlas.model.trace.kinds import AttentionKind


class CutMode(str, Enum):
    """How the weight of a cut edge is handled.

    RENORMALISE  the edge is masked, and the rest of the row takes its weight
    ZERO         its weight is lost
    """

    RENORMALISE = "renormalise"
    ZERO = "zero"


def cut_edges(interventions: Interventions, edges: Iterable[Edge], mode: CutMode) -> Interventions:
    """Return the interventions with these edges cut as well."""
    edges = frozenset(edges)
    return interventions | (
        Interventions(cut_edges=edges) if mode is CutMode.RENORMALISE else Interventions(zeroed_edges=edges)
    )


def metric_without_edges(case: Case, edges: Iterable[Edge], mode: CutMode) -> float:
    """Return the metric with all these edges cut together, in nats, after the same prefix.

    Raises ValueError if a row would have nothing left to read.
    """
    return replace(case, interventions=cut_edges(case.interventions, edges, mode)).metric()


@torch.inference_mode()
def measure_edges(case: Case, kind: AttentionKind, layer: int, head: int) -> np.ndarray:
    """Measure m(x) - m(x with one edge cut) for every edge of one map: float64 [query, key], in nats.

    The rest of the row takes the edge's weight (CutMode.RENORMALISE). NaN for edges of the decoder's future and for
    edges whose row would have nothing left. Rows after the question's step are not returned, since they have no effect.
    Raises ValueError if the layer or head does not exist.
    """
    record = case.output.attention(kind, layer)
    _, heads, queries, keys = record.weights.shape
    if not 0 <= head < heads:
        raise ValueError(f"heads are 0 to {heads - 1}, found {head}")
    weights, values = exact(record.weights[0, head]), exact(record.values[0, head])
    exists = np.ones((queries, keys), bool)
    if kind is AttentionKind.DECODER_SELF:
        exists = np.tril(exists)
    cells = np.argwhere(exists & (exists.sum(-1, keepdims=True) > 1))
    effects, place = np.full((queries, keys), np.nan), Patch(HeadOutput(kind, layer, head))

    def measure_batch(batch: slice) -> np.ndarray:
        query, key = torch.from_numpy(cells[batch]).to(weights.device).unbind(1)
        rest = weights[query].scatter(1, key[:, None], 0.0)
        output = rest / rest.sum(-1, keepdim=True).clamp_min(1e-300) @ values  # [batch, d_head]
        rows = output.to(case.source_rows)[:, None].expand(-1, queries, -1)
        value = PatchValue(rows, F.one_hot(query, queries).to(rows))  # a batch row patches the cell's query alone
        hidden = case.run_patched({place: value}, in_encoder=kind is AttentionKind.ENCODER_SELF)
        return case.metric() - case.measure(hidden).cpu().numpy()

    batches = case.batches(len(cells))
    for batch, of_batch in zip(batches, map_on_spare_core(measure_batch, batches)):
        effects[tuple(cells[batch].T)] = of_batch
    return effects
