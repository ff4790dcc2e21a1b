"""What the heads say at one query, and how W_O makes one vector of it."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.formulas.projections import JoinedHeads, join_heads
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.menus import KIND, LAYER, QUERY, resolve
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.question import with_minus
from attention_atlas.viz.words import say


def joined(scene: Scene, kind: str, layer: int, query: int) -> list[dict]:
    chosen, at_layer, at_head, at = resolve(scene, kind, layer, 0, query)
    maps, biased = scene.trace.maps(chosen), scene.translator.config.biases
    found = join_heads(scene.translator, scene.output, chosen, at_layer, query=at)
    return [
        blocks.paragraph(
            "{kind}, layer {layer}: what its {heads} heads contribute to query {n}: {row}",
            kind=labels.KIND_TITLES[chosen],
            layer=at_layer + 1,
            heads=maps.num_heads,
            n=at + 1,
            row=labels.row_name(scene.trace, chosen, at),
        ),
        blocks.formula(
            "head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)   MultiHead = Concat(head_1 … head_h) W^O" + " + b" * biased
        ),
        blocks.formula(
            f"[{maps.num_heads}, {found.contexts.shape[1]}] → [{len(found.joined)}] → [{len(found.output)}]",
            say("each head has rows of W^O of its own, so the product is a sum over the heads"),
        ),
        _parts(found, at_head),
        blocks.facts(
            (
                say("Largest error of the sum"),
                blocks.compact(found.error),
                say("against what the model added to the residual stream"),
            ),
            (say("The shares add up to"), blocks.compact(float(found.shares.sum())), say("all heads and the bias")),
            (say("Strongest head"), str(int(np.argmax(found.shares[:-1])) + 1), say("by its share of the output")),
        ),
    ]


def _parts(found: JoinedHeads, selected: int) -> dict:
    context, said = float(np.abs(found.contexts).max()), float(np.abs((*found.head_outputs, found.output)).max())

    def part(vector: np.ndarray) -> list[dict]:
        """Its part of the output, and how long that is."""
        return [blocks.strip(vector[:48], limit=said), _length(vector)]

    rows = [
        [say("head {n}", n=i + 1), blocks.strip(own, limit=context), _length(own), *part(wrote), _share(float(share))]
        for i, (own, wrote, share) in enumerate(zip(found.contexts, found.head_outputs, found.shares))
    ]
    return blocks.table(
        blocks.headings("Head", "its context, softmax(…) V", "length", "its part of the output", "length", "share"),
        [*rows, [say("bias"), "", "", *part(found.bias), _share(float(found.shares[-1]))]],
        foot=[say("sum"), "", "", *part(found.output), "100%"],
        marked=(selected,),
        caption=say(
            "Share: how much of the output's squared length lies in a part's direction, measured exactly; a part "
            "that points against the others has a negative one. The first 48 dimensions of the output are shown."
        ),
    )


def _length(vector: np.ndarray) -> dict:
    return blocks.number(float(np.linalg.norm(vector)))


def _share(share: float) -> dict:
    return blocks.bar(min(1.0, max(0.0, share)), with_minus(f"{share:.1%}"))


PANEL = Panel(
    "heads",
    say("Heads"),
    say(
        "Attention ends here: the heads' contexts are placed side by side, and W_O turns them into one vector that "
        "is added to the residual stream. Some heads speak much louder than others."
    ),
    say("Paper, section {n}", n="3.2.2"),
    joined,
    controls=(KIND, LAYER, QUERY),
)
