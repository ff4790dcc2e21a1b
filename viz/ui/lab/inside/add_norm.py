"""What one sub-layer adds, and what the norm makes of the sum."""

from __future__ import annotations

import numpy as np

from model.analysis import stations
from viz.ui.lab.controls import Slider
from viz.ui.lab.needs import RESIDUAL
from viz.ui.lab.panel import Panel, Scene
from viz.ui.lab.sides import ENCODER, LAYER, SIDE, record_of, tokens_of
from viz.ui.language import label
from viz.wire import blocks
from viz.words import say


def add_and_norm(scene: Scene, side: str, layer: int, sublayer: int) -> list[dict]:
    record, index = record_of(scene, side, layer)
    passed = record.sublayers[min(sublayer, len(record.sublayers)) - 1]
    config, name = scene.translator.config, stations.STATION_NAMES[passed.name]
    found = stations.add_and_norm(passed)
    limit, normed = float(np.abs(found.stream[:, :48]).max()), float(np.abs(found.normed[:, :48]).max())
    rows = [[blocks.token(token), blocks.strip(found.stream[i, :48], limit=limit, name=token),
             blocks.number(float(found.before[i])), blocks.number(float(found.scale[i])),
             blocks.strip(found.normed[i, :48], limit=normed, name=token), blocks.number(float(found.added[i])),
             blocks.number(float(found.cosine[i])), blocks.number(float(found.after[i]))]
            for i, token in enumerate(tokens_of(scene, side))]
    return [
        blocks.formula("x + f(norm(x))" if config.norm_first else "norm(x + f(x))",
                       say("encoder layer {layer}, f = {f}", layer=index + 1, f=name) if side == ENCODER
                       else say("decoder layer {layer}, f = {f}", layer=index + 1, f=name)),
        blocks.table((say("Token"), say("stream x"), say("length"), say("norm scales by"),
                      say("normed"), say("length of what f adds"), say("cosine to x"), say("length after")), rows,
                     caption=say("The first 48 dimensions, each column on one scale. A cosine near 0: f adds something "
                                 "new; below 0: it takes something back."))]


PANEL = Panel(
    "add-norm", label("Add & norm"), say(
        "One sub-layer adds its vector to each token's stream; a layer norm brings every stream to mean 0 and "
        "variance 1. Look at how much is added, and in which direction."),
    say("Paper, section {n}", n="3.1"), add_and_norm,
    controls=(SIDE, LAYER, Slider(label("Sub-layer"), 1, 3, 1)), needs=(RESIDUAL,))
