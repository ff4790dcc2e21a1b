"""The panel "By distance": the bias that relative positions add to the scores of each head."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.positions.relative import curves, spread
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.figures.curves import plot_curves
from attention_atlas.viz.figures.matrix import plot_matrix
from attention_atlas.viz.panels.menus import ENCODER, HEAD, LAYER_OF_SIDE, SIDE
from attention_atlas.viz.panels.panel import RELATIVE, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def by_distance(scene: Scene, side: str, layer: int, head: int) -> list[dict]:
    """Draw the bias of one head and of all heads by distance. Layer and head from 1; head 0 for the selection."""
    model = scene.translator.model
    is_encoder = side == ENCODER
    kind = AttentionKind.ENCODER_SELF if is_encoder else AttentionKind.DECODER_SELF
    stack = model.encoder if is_encoder else model.decoder
    at = min(layer, len(stack.layers)) - 1
    at_head = min(head - 1 if head else scene.selection.head, model.num_heads[kind] - 1)
    distances, biases = curves(stack, at)
    values = biases[at_head]
    picture = plot_curves(
        {say("head {n}", n=at_head + 1): values},
        x=distances,
        x_title=say("key − query, positions"),
        y_title=say("bias"),
    )
    all_heads = plot_matrix(
        biases,
        rows=[str(n + 1) for n in range(len(biases))],
        columns=[str(n) for n in distances.tolist()],
        row_title=say("head"),
        column_title=say("key − query, positions"),
        limit=float(np.abs(biases).max()) or 1.0,
    )
    facts = [
        (title, str(distances[place]), say("positions from the query: {value}", value=blocks.compact(values[place])))
        for title, place in ((say("Highest at"), values.argmax()), (say("Lowest at"), values.argmin()))
    ]
    if scene.output.attention(kind, at).bias is not None:  # positions may be switched off
        facts.append(
            blocks.fact(
                "Spread of content, bias and scores",
                " · ".join(map(blocks.compact, spread(scene.output, kind, at, at_head))),
                "standard deviations over this sentence's cells",
            )
        )
    return [
        blocks.formula("score = q · k + B[bucket(key − query), head]", "Raffel et al. 2020"),
        blocks.row(
            blocks.figure(picture, height=340, label=say("The bias of head {n} by distance", n=at_head + 1)),
            blocks.figure(all_heads, height=340, label=say("The bias of every head by distance")),
        ),
        blocks.facts(*facts),
    ]


PANEL = Panel(
    "position-bias",
    "By distance",
    "Where positions are encoded as biases, each head adds a number to a score by the distance to the key.",
    say("Section {n}", n="2.1"),
    by_distance,
    controls=(SIDE, LAYER_OF_SIDE, HEAD),
    needs=(RELATIVE,),
    paper="https://arxiv.org/abs/1910.10683",
    method=say("A peak shows where a head tends to look."),
)
