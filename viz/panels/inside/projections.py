"""The panel "Q, K, V": how x becomes queries, keys and values, and how these are split into heads."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.formulas.stages import Projection, projections
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.menus import HEAD, KIND, LAYER, resolve
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

TOKENS, COLUMNS = 64, 256  # largest numbers of tokens and of columns drawn

STREAMS = {
    AttentionKind.ENCODER_SELF: say("Q, K and V are all made from the encoder's stream."),
    AttentionKind.DECODER_SELF: say("Q, K and V are all made from the decoder's stream."),
    AttentionKind.CROSS: say("Q is made from the decoder's stream, K and V from the memory, the encoder's output."),
}


def window(columns: int, width: int, head: int) -> tuple[int, int]:
    """Return the first and last column to draw: all, or in a wide model whole heads around the given one."""
    if columns <= COLUMNS:
        return 0, columns
    heads = max(1, COLUMNS // width)
    first = min(max(0, head - heads // 2), columns // width - heads) * width
    return first, first + heads * width


def project(scene: Scene, kind: str, layer: int, head: int) -> list[dict]:
    """Draw the three projections of a layer with the columns of one head marked."""
    attention, at_layer, at_head, _ = resolve(scene, kind, layer, head)
    maps, output = scene.trace.maps(attention), scene.output
    parts = projections(scene.translator, output, attention, at_layer)
    config, heads = scene.translator.config.of(attention.side), maps.num_heads
    d_model, width, biased = config.d_model, config.d_head, config.biases
    queries = labels.row_names(scene.trace, attention)[:TOKENS]
    keys = [labels.display(token) for token in maps.key_tokens[:TOKENS]]
    joined = heads * width
    rows = list(zip("QKV", parts, (queries, keys, keys)))
    pictures = [
        blocks.heatmap(
            part.heads[at_head, :TOKENS],
            say("{name} of head {n}", name=name, n=at_head + 1),
            rows=tokens,
            limit=_limit(part),
        )
        for name, part, tokens in rows
    ]
    return [
        blocks.paragraph(
            "{kind}, layer {layer}, head {head}. {streams}",
            **labels.place(attention, at_layer, at_head),
            streams=STREAMS[attention],
        ),
        blocks.formula(",   ".join(f"{x} = x W_{x}{f' + b_{x}' * biased}" for x in "QKV")),
        blocks.formula(
            f"[L, {d_model}] → [L, {heads}, {width}] → [{heads}, L, {width}]",
            say("one matrix product for all heads, then only views of it"),
        ),
        *(_projection_maps(name, part, tokens, at_head) for name, part, tokens in rows),
        blocks.maps(*pictures),
        blocks.facts(
            blocks.fact(
                "Largest error",
                max(part.error for part in parts),
                "x W + b, computed again, against the model's own Q, K and V",
            ),
            (say("Numbers in the three matrices"), blocks.compact(3 * d_model * joined), f"3 · {d_model} · {joined}"),
            (say("Numbers in one head"), blocks.compact(3 * d_model * width), f"3 · {d_model} · {width}"),
        ),
    ]


def _projection_maps(name: str, part: Projection, tokens: list[str], head: int) -> dict:
    """Draw x, the head's columns of W, and x W + b with those columns framed. name: Q, K or V."""
    width, num_rows = part.heads.shape[-1], len(tokens)
    first, last = window(len(part.bias), width, head)
    mine = slice(head * width, (head + 1) * width)
    stream, cut = part.read[:TOKENS, :COLUMNS], part.projected[:TOKENS]
    return blocks.maps(
        blocks.heatmap(stream, say("x, read by {name}", name=name), rows=tokens),
        blocks.heatmap(part.weight[:COLUMNS, mine], say("columns of W_{name} for head {n}", name=name, n=head + 1)),
        blocks.heatmap(
            cut[:, first:last],
            f"{name} = x W_{name}{' + b' * bool(part.bias.any())}",
            rows=tokens,
            limit=_limit(part),
            note=say("dimensions {first} to {last}; framed: this head's", first=first, last=last - 1),
            frame=(0, head * width - first, num_rows, width),
        ),
    )


def _limit(part: Projection) -> float:
    return float(np.abs(part.projected[:TOKENS]).max())


PANEL = Panel(
    "projections",
    "Q, K, V",
    "Three matrices turn the residual stream into queries, keys and values; each head gets its own columns.",
    say("Paper, section {n}", n="3.2.2"),
    project,
    controls=(KIND, LAYER, HEAD),
    method=say(
        "Like a search engine: the query is what one types, a key is what a page is filed under, and a value is "
        "what the page says. A search gives the pages whose keys fit best; attention gives the sum of all values, "
        "each weighted by how well its key fits. Point at a cell, or move there with the arrow keys, to read its "
        "number."
    ),
)
