"""The panel "Heads": the context of each head at one query, and how W_O combines them into one vector."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.formulas.projections import JoinedHeads, join_heads
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.menus import KIND, LAYER, QUERY, resolve
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.question import with_minus_sign
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
            f"[{maps.num_heads}, {joined.contexts.shape[1]}] → [{len(joined.joined)}] → [{len(joined.output)}]",
            say("each head has rows of W^O of its own, so the product is a sum over the heads"),
        ),
        _parts(joined, at_head),
        blocks.facts(
            (
                say("Largest error of the sum"),
                blocks.compact(joined.error),
                say("against what the model added to the residual stream"),
            ),
            (say("The shares add up to"), blocks.compact(float(joined.shares.sum())), say("all heads and the bias")),
            (say("Strongest head"), str(int(np.argmax(joined.shares[:-1])) + 1), say("by its share of the output")),
        ),
    ]


def _parts(joined: JoinedHeads, selected: int) -> dict:
    """Return a table of the heads' contexts and parts of the output. selected: the marked head."""
    context_limit, output_limit = (
        float(np.abs(joined.contexts).max()),
        float(np.abs((*joined.head_outputs, joined.output)).max()),
    )

    def part(vector: np.ndarray) -> list[dict]:
        """Return the cells of a part of the output and its length."""
        return [blocks.strip(vector[:48], limit=output_limit), _length(vector)]

    rows = [
        [
            say("head {n}", n=i + 1),
            blocks.strip(context, limit=context_limit),
            _length(context),
            *part(output),
            _share(float(share)),
        ]
        for i, (context, output, share) in enumerate(zip(joined.contexts, joined.head_outputs, joined.shares))
    ]
    return blocks.table(
        blocks.headings("Head", "its context, softmax(…) V", "length", "its part of the output", "length", "share"),
        [*rows, [say("bias"), "", "", *part(joined.bias), _share(float(joined.shares[-1]))]],
        foot=[say("sum"), "", "", *part(joined.output), "100%"],
        marked=(selected,),
        caption=say(
            "Share: how much of the output's squared length lies in a part's direction, measured exactly; a part "
            "that points against the others has a negative one. The first 48 dimensions of the output are shown."
        ),
    )


def _length(vector: np.ndarray) -> dict:
    return blocks.number(float(np.linalg.norm(vector)))


def _share(share: float) -> dict:
    return blocks.bar(min(1.0, max(0.0, share)), with_minus_sign(f"{share:.1%}"))


PANEL = Panel(
    "heads",
    say("Heads"),
    say(
        "Attention ends here: the heads' contexts are placed side by side, and W_O turns them into one vector that "
        "is added to the residual stream. Some heads speak much louder than others."
    ),
    say("Paper, section {n}", n="3.2.2"),
    combine_heads,
    controls=(KIND, LAYER, QUERY),
)
