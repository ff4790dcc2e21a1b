"""Attention edges cut one by one: what each cell of a map is worth (Geva et al. 2023; Mohebbi et al. 2023).

A head without key j at row t says (o - A_tj v_j) / (1 - A_tj) if the row renormalises, o - A_tj v_j if it does not:
what it says is put in place, so that one batch holds many cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.sweep import PatchValue, Sweep
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace.interventions import Edge, HeadOutput, Interventions, Patch
from attention_atlas.model.trace.kinds import AttentionKind


class Cut(str, Enum):
    """RENORMALISE: the edge is masked, and the rest of the row takes its weight. ZERO: its weight is lost."""

    RENORMALISE = "renormalise"
    ZERO = "zero"


def cut(interventions: Interventions, edges: Iterable[Edge], how: Cut) -> Interventions:
    """The same interventions with these edges cut as well."""
    edges = frozenset(edges)
    return interventions | (
        Interventions(cut_edges=edges) if how is Cut.RENORMALISE else Interventions(zeroed_edges=edges)
    )


def metric_without(case: Case, edges: Iterable[Edge], how: Cut) -> float:
    """The metric with all these edges cut together, in nats, after the same prefix. ValueError, in words, where a row
    would be left nothing to read."""
    return replace(case, interventions=cut(case.interventions, edges, how)).metric()


@torch.inference_mode()
def effects_if_cut(case: Case, kind: AttentionKind, layer: int, head: int, how: Cut = Cut.RENORMALISE) -> np.ndarray:
    """m(x) - m(x with one edge cut) for every edge of one map: float64 [query, key], in nats, measured. NaN for edges
    that do not exist (the decoder's future) or whose row would have nothing left. Rows after the question's step are
    not in it: they cannot matter. ValueError if the layer or head does not exist."""
    record = case.output.attention(kind, layer)
    _, heads, queries, keys = record.weights.shape
    if not 0 <= head < heads:
        raise ValueError(f"heads are 0 to {heads - 1}, found {head}")
    weights, values = exact(record.weights[0, head]), exact(record.values[0, head])
    exists = np.ones((queries, keys), bool)
    if kind is AttentionKind.DECODER_SELF:
        exists = np.tril(exists)
    if how is Cut.RENORMALISE:
        exists &= exists.sum(-1, keepdims=True) > 1
    cells = np.argwhere(exists)
    found = np.full((queries, keys), np.nan)

    def without(part: slice) -> np.ndarray:
        query, key = torch.from_numpy(cells[part]).to(weights.device).unbind(1)
        said = weights[query] @ values - weights[query, key, None] * values[key]  # [batch, d_head]
        if how is Cut.RENORMALISE:
            said = _renormalised(weights, values, query, key, said)
        hidden = _run(case, HeadOutput(kind, layer, head), said.to(case.source_rows), query)
        return case.metric() - case.measure(hidden).cpu().numpy()

    parts = case.chunks(len(cells))
    for part, effects in zip(parts, map_on_spare_core(without, parts)):
        found[tuple(cells[part].T)] = effects
    return found


def _renormalised(weights: Tensor, values: Tensor, query: Tensor, key: Tensor, said: Tensor) -> Tensor:
    left = 1.0 - weights[query, key]
    # Where almost all weight lay on the edge, the difference has no digits left: sum what is left itself.
    rest = weights[query].scatter(1, key[:, None], 0.0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(left[:, None] > 1e-3, said / left[:, None], (rest / total.clamp_min(1e-300)) @ values)


def _run(case: Case, place: HeadOutput, said: Tensor, query: Tensor) -> Tensor:
    """The decoder's output [batch, d_model] with what a head says at row query[i] replaced by said[i]."""
    batch, at_source = len(query), place.kind is AttentionKind.ENCODER_SELF
    length = (case.source_ids if at_source else case.decoder_ids).shape[1]
    weight = said.new_zeros(batch, length)
    weight[torch.arange(batch), query] = 1.0
    value = PatchValue(said[:, None].expand(-1, length, -1), weight)
    patch = Patch(place)
    sweep = Sweep(replace(case.interventions, patches=frozenset({patch})), values={patch: value})
    memory = (
        case.encode(case.source_rows.expand(batch, -1, -1), changes=sweep) if at_source else case.shared_memory(batch)
    )
    return case.decode(case.target_rows.expand(batch, -1, -1), memory, changes=sweep)
