"""The maps that can be shown in attention's place, by name. docs/contributing/extend.md says how to add one."""

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

MOST_EDGES = 2000  # of a map that are cut one by one: a few seconds on two cores for the longest of such sentences


@dataclass(frozen=True)
class Overlay:
    """title        in the menu and after the head's name
    about        what a number says, in a sentence: whether it is measured, exact or a proxy
    compute      (scene, the view's kind, layer and head) -> a map of the tokens as viz.maps.reduce.label_scores()
                 makes one: not yet hidden, not merged
    scope        what it is computed for: the page asks again only where that changes
    needs_model  whether compute asks for scene.translator; it then waits for its turn like all work on the model
    asks         whether it is about the pinned token: the page asks again where another one is pinned
    """

    title: Words
    about: Words
    compute: Callable[[Scene, View], ScoreMap]
    kinds: tuple[AttentionKind, ...] = tuple(AttentionKind)
    scope: Literal["head", "layer", "sentence"] = "head"
    needs_model: bool = False
    asks: bool = False


def layer_difference(scene: Scene, view: View) -> ScoreMap:
    """The head's weights minus the mean of its layer's heads: where it reads otherwise than they do. Its limits are
    those of all heads of the kind, so that heads can be compared."""
    trace = scene.trace
    weights = trace.maps(view.kind).weights.astype(np.float64)
    apart = weights - weights.mean(axis=1, keepdims=True)  # [layers, heads, query, key]
    limit = float(np.abs(apart).max())
    found = label_scores(apart[view.layer, view.head], trace, view, say("difference of attention weights"))
    return replace(found, signed=True, additive=True, limits=(-limit, limit))


def effect_if_cut(scene: Scene, view: View) -> ScoreMap:
    """What the pinned token would lose with each edge cut alone. Rows after it cannot matter to it: blank."""
    trace = scene.trace
    edges = trace.maps(view.kind).weights.shape[2:]
    if (count := edges[0] * edges[1]) > MOST_EDGES:
        raise Refusal("This map has {n} edges; up to {limit} can be cut one by one.", n=count, limit=MOST_EDGES)
    found = measure_edges(scene.case, view.kind, view.layer, view.head)
    values = np.full(edges, np.nan)
    values[: found.shape[0], : found.shape[1]] = found
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return replace(label_scores(values, trace, view, say("nats, if cut")), signed=True, limits=(-limit, limit))


OVERLAYS: dict[str, Overlay] = {
    "layer_difference": Overlay(
        say("minus the layer's mean"),
        say(
            "This head's weight minus the mean over its layer's heads: where it reads more (+) or less (−) than they "
            "do. Exact; each row sums to 0."
        ),
        layer_difference,
    ),
    "effect_if_cut": Overlay(
        say("effect if cut"),
        say(
            "What the token pinned in the tab Why would lose, in nats, with this one edge cut and the rest of its row "
            "renormalised. + spoke for it. Measured: one run for each cell."
        ),
        effect_if_cut,
        kinds=TRANSFORMER_KINDS,
        needs_model=True,
        asks=True,
    ),
}


def shown(name: object, scene: Scene, view: View) -> ScoreMap:
    """An overlay's map the way the view asks for it. ValueError if there is none of this name for its kind, or no such
    head; and where its model can no longer be asked."""
    overlay = OVERLAYS.get(name) if isinstance(name, str) else None
    if overlay is None or view.kind not in overlay.kinds:
        raise ValueError(f"There is no {name!r} to show of {view.kind.value}.")
    alone = replace(view, combine=Combine.SINGLE, heads=())
    alone.used_heads(scene.trace)
    found = arrange(overlay.compute(scene, alone), scene.trace, alone)
    return replace(found, values=found.values.astype(np.float32))


def options(*, model: bool) -> Mapping[str, object]:
    """What the page is told of them, once. model: whether there is one to ask; else those that need it are left out."""
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
