"""The panel "Feed-forward": the hidden units of one layer's feed-forward network."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.config import Activation
from attention_atlas.viz.panels import formulas
from attention_atlas.viz.panels.menus import LAYER_OF_SIDE, SIDE, record_of, tokens_of
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

UNITS = 24  # number of units in the map
LISTED = 6  # most active units of each token


def feed_forward(scene: Scene, side: str, layer: int) -> list[dict]:
    """Draw the most active units of a layer (from 1) and the share of units above 0 at each token."""
    record, index = record_of(scene, side, layer)
    config, activations = scene.translator.config, record.activations[0].float().cpu().numpy()  # [token, d_ff]
    names, width, share = tokens_of(scene, side), activations.shape[1], (activations > 0).mean(-1)
    loudest = np.sort(np.abs(activations).max(0).argsort()[::-1][:UNITS])
    most_active = np.argsort(-activations, axis=-1, kind="stable")[:, :LISTED]
    busy = np.bincount(most_active.ravel(), minlength=width)
    shared = [int(u) for u in busy.argsort()[::-1][:5] if busy[u] > 1]
    common = ", ".join(f"{u} (× {busy[u]})" for u in shared) or say("none")
    smooth_note = blocks.note(
        "{name} lets a little of the negative values through, so no unit is ever exactly zero. Units "
        "above 0 are counted.",
        name=formulas.ACTIVATIONS[config.activation],
    )
    title = say("Layer {layer}: the {n} most active of {all} hidden units", layer=index + 1, n=len(loudest), all=width)
    times_d_model = say(
        "{factor} × d_model; the paper uses 4 × (2048 for 512), tutorials other factors",
        factor=blocks.compact(width / config.d_model).removesuffix(".00"),
    )
    return [
        blocks.formula(formulas.feed_forward(config), say("equation {n}", n=2)),
        *([] if config.activation is Activation.RELU else [smooth_note]),
        blocks.row(
            blocks.maps(blocks.heatmap(activations[:, loudest], title, rows=names, columns=loudest.astype(str))),
            blocks.bars(blocks.chart(say("share of units above 0"), [(n, [s]) for n, s in zip(names, share.tolist())])),
        ),
        blocks.facts(
            ("d_ff", blocks.compact(width), times_d_model),
            blocks.fact("Units active at a position", f"{share.mean():.0%}", "mean of {n} positions", n=len(names)),
            (say("Units in several lists"), str(len(shared)), common),
        ),
    ]


PANEL = Panel(
    "feed-forward",
    "Feed-forward",
    "Only some hidden units are above zero. Do similar words activate the same ones?",
    say("Paper, section {n}", n="3.3"),
    feed_forward,
    controls=(SIDE, LAYER_OF_SIDE),
)
