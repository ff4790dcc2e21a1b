"""Maps that can be shown in place of attention, by name (docs/contributing/extend.md says how to add one)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from attention_atlas.model.analysis.why.experiments.cutting import measure_edges
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.scores import ScoreMap
from attention_atlas.viz import theme
from attention_atlas.viz.maps.reduce import Combine, View, arrange, label_scores
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.words import Words, say

MOST_EDGES = 2000  # largest map whose edges are cut one by one: a few seconds on two cores


@dataclass(frozen=True)
class Overlay:
    """A map that replaces attention in the explorer.

    title        in the menu, and after the head's name
    about        the meaning of a value, in a sentence, and whether it is measured, exact or a proxy
    compute      compute(scene, view) -> the map of the view's head over all tokens (viz.maps.reduce.label_scores)
    scope        what it is computed for; the page requests it again only if that changes
    needs_model  whether compute uses scene.translator
    asks         whether it is about the pinned token; the page then requests it again for another one
    """

    title: Words
    about: Words
    compute: Callable[[Scene, View], ScoreMap]
    kinds: tuple[AttentionKind, ...] = tuple(AttentionKind)
    scope: Literal["head", "layer", "sentence"] = "head"
    needs_model: bool = False
    asks: bool = False


def layer_difference(scene: Scene, view: View) -> ScoreMap:
    """Return the head's weights minus the mean over the heads of its layer.

    All heads of the kind share the limits, so that they can be compared.
    """
    trace = scene.trace
    weights = trace.maps(view.kind).weights.astype(np.float64)
    apart = weights - weights.mean(axis=1, keepdims=True)  # [layers, heads, query, key]
    limit = float(np.abs(apart).max())
    difference = label_scores(apart[view.layer, view.head], trace, view, say("difference of attention weights"))
    return replace(difference, signed=True, additive=True, limits=(-limit, limit))


def effect_if_cut(scene: Scene, view: View) -> ScoreMap:
    """Return what the pinned token loses with each edge cut alone, in nats. Later rows cannot affect it and are NaN."""
    trace = scene.trace
    edges = trace.maps(view.kind).weights.shape[2:]
    if (count := edges[0] * edges[1]) > MOST_EDGES:
        raise Refusal("This map has {n} edges; up to {limit} can be cut one by one.", n=count, limit=MOST_EDGES)
    effects = measure_edges(scene.case, view.kind, view.layer, view.head)
    values = np.full(edges, np.nan)
    values[: effects.shape[0], : effects.shape[1]] = effects
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return replace(label_scores(values, trace, view, say("nats, if cut")), signed=True, limits=(-limit, limit))


OVERLAYS: dict[str, Overlay] = {
    "layer_difference": Overlay(
        say("minus the layer's mean"),
        say(
            "This head's weight minus the mean of its layer's heads: where it looks more (+) or less (−) "
            "than they do. Exact; each row sums to 0."
        ),
        layer_difference,
    ),
    "effect_if_cut": Overlay(
        say("effect if cut"),
        say(
            "How many nats the token pinned on the Why tab loses when this one edge is cut and the rest "
            "of its row is renormalised. + supports it. Measured: one run per cell."
        ),
        effect_if_cut,
        kinds=TRANSFORMER_KINDS,
        needs_model=True,
        asks=True,
    ),
}


def overlay_map(name: object, scene: Scene, view: View) -> ScoreMap:
    """Return the map of an overlay for a view.

    ValueError for an unknown overlay or head, or if the model is not served any more.
    """
    overlay = OVERLAYS.get(name) if isinstance(name, str) else None
    if overlay is None or view.kind not in overlay.kinds:
        raise ValueError(f"There is no {name!r} to show of {view.kind.value}.")
    alone = replace(view, combine=Combine.SINGLE, heads=())
    alone.used_heads(scene.trace)
    score_map = arrange(overlay.compute(scene, alone), scene.trace, alone)
    return replace(score_map, values=score_map.values.astype(np.float32))


def options(*, model: bool) -> Mapping[str, object]:
    """Return the description of all overlays for the page. model: whether to include those that need a model."""
    return {
        "overlays": [
            {
                "id": name,
                "title": overlay.title,
                "about": overlay.about,
                "scope": overlay.scope,
                "kinds": [kind.value for kind in overlay.kinds],
                "model": overlay.needs_model,
                "asks": overlay.asks,
            }
            for name, overlay in OVERLAYS.items()
            if model or not overlay.needs_model
        ],
        "diverging": theme.DIVERGING,
    }
