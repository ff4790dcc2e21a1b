"""The panel "Heads": the context of each head at one query, and how W_O combines them into one vector."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.formulas.stages import JoinedHeads, join_heads
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.menus import KIND, LAYER, QUERY, resolve
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def combine_heads(scene: Scene, kind: str, layer: int, query: int) -> list[dict]:
    """Draw the contribution of each head to the output at a query."""
    attention, at_layer, at_head, at = resolve(scene, kind, layer, 0, query)
    maps, biased = scene.trace.maps(attention), scene.translator.config.biases
    joined = join_heads(scene.translator, scene.output, attention, at_layer, query=at)
    return [
        blocks.paragraph(
            "{kind}, layer {layer}: what its {heads} heads contribute to query {n}: {row}",
            kind=labels.KIND_TITLES[attention],
            layer=at_layer + 1,
            heads=maps.num_heads,
            n=at + 1,
            row=labels.row_name(scene.trace, attention, at),
        ),
        blocks.formula(
            "head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)   MultiHead = Concat(head_1 … head_h) W^O" + " + b" * biased
        ),
        blocks.formula(
            f"[{maps.num_heads}, {joined.contexts.shape[1]}] → [{joined.contexts.size}] → [{len(joined.output)}]",
            say("each head has rows of W^O of its own, so the product is a sum over the heads"),
        ),
        _parts(joined, at_head),
        blocks.facts(
            blocks.fact(
                "Largest error of the sum", joined.error, "against what the model added to the residual stream"
            ),
            blocks.fact("The shares add up to", joined.shares.sum(), "all heads and the bias"),
            blocks.fact("Strongest head", str(np.argmax(joined.shares[:-1]) + 1), "by its share of the output"),
        ),
    ]


def _parts(joined: JoinedHeads, selected: int) -> dict:
    """Return a table of the heads' contexts and parts of the output. selected: the marked head."""
    limit = float(np.abs((*joined.head_outputs, joined.output)).max())
    heads, parts = [say("head {n}", n=i + 1) for i in range(len(joined.contexts))], [*joined.head_outputs, joined.bias]
    output = blocks.strip(joined.output[:48], limit=limit)
    return blocks.columns(
        (say("Head"), [*heads, say("bias")]),
        (say("its context, softmax(…) V"), [*blocks.strips(joined.contexts), ""]),
        (say("length"), [*map(_length, joined.contexts), ""]),
        (say("its part of the output"), [blocks.strip(part[:48], limit=limit) for part in parts]),
        (say("length"), map(_length, parts)),
        (say("share"), map(_share, joined.shares)),
        foot=[say("sum"), "", "", output, _length(joined.output), "100%"],
        marked=(selected,),
        caption=say(
            "Share: how much of the output's squared length a part accounts for (exact); a part that "
            "points against the others has a negative share. The first 48 dimensions of the output are "
            "shown."
        ),
    )


def _length(vector: np.ndarray) -> dict:
    return blocks.number(np.linalg.norm(vector))


def _share(share: float) -> dict:
    return blocks.bar(min(1.0, max(0.0, share)), blocks.with_minus_sign(f"{share:.1%}"))


PANEL = Panel(
    "heads",
    "Heads",
    "How do the heads' outputs become one vector?",
    say("Paper, section {n}", n="3.2.2"),
    combine_heads,
    controls=(KIND, LAYER, QUERY),
    method=say(
        "The heads' contexts are concatenated, and W_O projects them to one vector that is added to the "
        "residual stream. Some heads contribute far more than others."
    ),
)
