"""The hidden units of a feed-forward."""

from __future__ import annotations

import numpy as np

from model.analysis import stations
from model.config import Activation
from viz.ui.desk.scene import Scene
from viz.ui.lab import formulas
from viz.ui.lab.panel import Panel
from viz.ui.lab.sides import LAYER, SIDE, record_of, tokens_of
from viz.wire import blocks
from viz.words import say


def feed_forward(scene: Scene, side: str, layer: int) -> list[dict]:
    record, index = record_of(scene, side, layer)
    found = stations.active_units(record, count=6)
    config, width = scene.translator.config, record.activations.shape[-1]
    largest = float(np.abs(found.values).max()) or 1.0
    rows = [
        [
            blocks.token(token),
            blocks.bar(float(found.share[i]), f"{found.share[i]:.0%}"),
            *(
                blocks.shade(float(v) / largest, f"{u}: {blocks.compact(float(v))}")
                for u, v in zip(found.units[i], found.values[i])
            ),
        ]
        for i, token in enumerate(tokens_of(scene, side))
    ]
    busy = np.bincount(found.units.ravel(), minlength=width)
    shared = [int(u) for u in busy.argsort()[::-1][:5] if busy[u] > 1]
    common = ", ".join(f"{u} (× {busy[u]})" for u in shared) or say("none")
    return [
        blocks.formula(formulas.feed_forward(config), say("equation {n}", n=2)),
        *(
            []
            if config.activation is Activation.RELU
            else [
                blocks.text(
                    say(
                        "{name} lets a little of what is below 0 through: no unit is ever quite silent. "
                        "Counted are those above 0.",
                        name=formulas.ACTIVATIONS[config.activation],
                    ),
                    tone="note",
                )
            ]
        ),
        blocks.table(
            (say("Token"), say("units above 0"), *(f"{i + 1}." for i in range(found.units.shape[1]))),
            rows,
            caption=say(
                "Layer {layer}: the most active of {n} hidden units at each position, as unit: value.",
                layer=index + 1,
                n=width,
            ),
        ),
        blocks.facts(
            (say("Units active at a position"), f"{found.share.mean():.0%}", say("mean of {n} positions", n=len(rows))),
            (say("Units in several lists"), str(len(shared)), common),
        ),
    ]


PANEL = Panel(
    "feed-forward",
    say("Feed-forward"),
    say("Wider inside, and mostly silent: only some units are above zero. Do similar words wake the same units?"),
    say("Paper, section {n}", n="3.3"),
    feed_forward,
    controls=(SIDE, LAYER),
)
