"""Measures that change something and run the model again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from model.analysis.why.case import masked
from model.analysis.why.experiments import cutting, heads, removal
from model.trace.interventions import Edge
from viz.ui.tours.measures.measured import NOTHING, Measured, Unit, share
from viz.ui.tours.place import Place


def hidden(place: Place) -> Measured:
    """What the pair's translation keeps of its probability when no head may read its source word."""
    if not (place.source and place.target):
        return NOTHING
    case = place.case
    column = next(i for i, mask in enumerate(case.columns.masks()[0]) if mask[place.source[0]])
    found = removal.without(case, column, masked)
    before, after = (float(p) for p in found.probabilities[:, found.ids.index(case.question.token_id)])
    return Measured(after / before, also={"before": share(before), "after": share(after)})


def matters_most(place: Place) -> Measured:
    """What hiding the pair's source word costs its translation, as a share of what hiding any one source word costs at
    most: 1 where no other word matters more."""
    if not (place.source and place.target):
        return NOTHING
    case = place.case
    source, prefix = case.columns.masks()
    words = np.flatnonzero(source.any(-1))
    effects = case.effects(masked(source[words], prefix[words]))
    own = next(i for i, column in enumerate(words) if source[column][place.source[0]])
    return Measured(float(effects[own] / max(effects.max(), 1e-9)), also={"nats": f"{effects[own]:.1f}"})


def without_head(place: Place) -> Measured:
    """What the pair's translation keeps of its probability when the head is silent."""
    if not place.target:
        return NOTHING
    effects, _ = heads.ablate(place.case, heads.silence(), [[place.head]])
    return _kept(place, float(effects[0]))


def rank_of_head(place: Place) -> Measured:
    """The head's rank among all heads by what the pair's translation loses when each is silent; 1: most."""
    if not place.target:
        return NOTHING
    every = heads.all_heads(place.case)
    effects, _ = heads.ablate(place.case, heads.silence(), [[head] for head in every])
    own = effects[every.index(place.head)]
    return Measured(float((effects > own).sum() + 1), Unit.COUNT, {"of": len(every)})


def without_edge(place: Place) -> Measured:
    """What the pair's translation keeps of its probability when the head may not read its source word there."""
    if not (place.source and place.target):
        return NOTHING
    kind, layer, head = place.head
    edges = [Edge(kind, place.target[0], key, layer, head) for key in place.source]
    case = place.case
    return _kept(place, case.metric() - cutting.metric_without(case, edges, cutting.Cut.RENORMALISE))


def _kept(place: Place, nats: float) -> Measured:
    before = float(np.exp(place.case.metric()))
    kept = float(np.exp(-nats))
    return Measured(kept, also={"before": share(before), "after": share(before * kept)})


MEASURES: Mapping[str, Callable[..., Measured]] = {measure.__name__: measure for measure in (
    hidden, matters_most, without_head, rank_of_head, without_edge)}
