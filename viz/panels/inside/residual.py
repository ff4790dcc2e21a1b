"""The panel "Residual stream": the norm of the stream at every station, for each token."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis import stations
from attention_atlas.viz.figures.matrix import plot_matrix
from attention_atlas.viz.panels.menus import SIDE, records, tokens_of
from attention_atlas.viz.panels.panel import RESIDUAL, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def residual(scene: Scene, side: str) -> list[dict]:
    """Draw the norms of a side's stream."""
    names, norms = stations.residual_norms(records(scene, side))
    tokens = tokens_of(scene, side)
    picture = plot_matrix(norms, rows=names, columns=tokens, signed=False, unit=say("norm"), column_title=say("token"))
    mean = norms.mean(1)
    return [
        blocks.formula("x + f(norm(x))" if scene.translator.config.norm_first else "norm(x + f(x))"),
        blocks.row(
            blocks.figure(
                picture,
                height=100 + 24 * len(names),
                rows=names,
                label=say("Norm of the residual stream at every station, for each token"),
            ),
            blocks.columns(
                (say("Station"), names),
                (say("mean norm"), map(blocks.number, mean)),
                (say("grows by the factor"), map(blocks.number, mean / np.append(mean[0], mean[:-1]))),
            ),
        ),
    ]


PANEL = Panel(
    "residual",
    "Residual stream",
    "How does the residual stream grow? Every sub-layer adds to it, and none overwrites it.",
    say("Paper, section {n}", n="3.1"),
    residual,
    controls=(SIDE,),
    needs=(RESIDUAL,),
    method=say(
        "With norms before the sub-layers, the stream grows, and late layers must add larger vectors to "
        "matter. With norms after them, each norm resets its length."
    ),
)
