"""The panel "Parts": direct logit attribution, an exact split of the logit over the decoder's parts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.why import split
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.why.attribution import Parts
from attention_atlas.model.trace.why.evidence import Evidence, Unit
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.downloads import EXPORT, exports, matrix_file
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.matrix import EVIDENCE, Axis, Line, cells, margin, matrix
from attention_atlas.viz.wire.question import token_names, token_text
from attention_atlas.viz.words import Words, join, say

KEYS = "keys"
SHORT = {AttentionKind.DECODER_SELF: say("self-attention"), AttentionKind.CROSS: say("cross-attention")}
LARGEST = 3  # parts named in the lead


def parts(scene: Scene) -> list[dict]:
    """Draw the grid of parts, and their sum with its error."""
    split_parts = split.split_case(scene.case)
    sums = split_parts.sum
    return [
        blocks.text(join((_title(scene, split_parts), _most(split_parts)), " ")),
        _grid(split_parts),
        exports(),
        blocks.facts(
            blocks.fact("Token embedding", blocks.two_decimals(split_parts.token), "of the token just read"),
            blocks.fact("Position", blocks.two_decimals(split_parts.position), "of the step"),
            blocks.fact(
                "Biases of the norms", blocks.two_decimals(split_parts.norm_biases.sum()), "the same for any sentence"
            ),
            blocks.fact("Bias of the output", blocks.two_decimals(split_parts.constant), "the same for any sentence"),
            blocks.fact(
                "Encoder heads",
                say("n/a"),
                "no direct path to a logit: they act only through cross-attention",
            ),
            blocks.fact(
                "Sum of all parts",
                blocks.two_decimals(sums.found),
                "of {expected}, error {n}: {kind}",
                expected=blocks.two_decimals(sums.expected),
                n=blocks.compact(sums.error, 2),
                kind=EVIDENCE[split_parts.evidence],
            ),
        ),
        blocks.slot(
            KEYS,
            blocks.note(
                "Click a head to split its part by the tokens it attended to. A part is what reached the "
                "logit directly, with the norms' scales fixed; it is not what would be lost without it."
            ),
        ),
    ]


def keys(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """Split one head's part by the tokens that it read."""
    parts = split.split_case(scene.case)
    kind, layer, head = _head(parts, data)
    values = parts.keys[kind][layer, head]
    title = say(
        "{kind}, layer {layer}, head {head}: its part, split by the tokens it attended to",
        **labels.place(kind, layer, head),
    )
    crosses = kind is AttentionKind.CROSS
    tokens = scene.case.columns.source_tokens if crosses else scene.case.columns.prefix_tokens
    read = say("encoder output at") if crosses else say("already written")
    line = Line(
        "keys",
        say("part"),
        cells(values, Unit.NATS, limit=_limit(parts)),
        margins=[margin(blocks.two_decimals(float(values.sum())))],
        evidence=Evidence.EXACT_SPLIT,
    )
    axis = Axis(((read, len(tokens)),), [token_text(token) for token in tokens])
    whole = blocks.note("The encoder's output at a word depends on the whole sentence, not on that word alone.")
    return [
        blocks.text(title),
        matrix(title, axis, [line], margins=[(say("sum"), say("The head's own part."))]),
        *([whole] if crosses else []),
    ]


def _head(parts: Parts, data: Mapping[str, object]) -> tuple[AttentionKind, int, int]:
    """Return the head of the cell {row, column}. ValueError for a cell without a head."""
    row, column = data.get("row"), data.get("column")
    heads = [(kind, head) for kind in parts.keys for head in range(parts.keys[kind].shape[1])]
    layers = len(parts.feed_forward)
    if not is_integer(column, 0, len(heads) - 1) or row not in map(str, range(layers)):
        raise ValueError(f"no head stands in row {row!r}, column {column!r}")
    kind, head = heads[column]
    return kind, int(row), head


def _grid(parts: Parts) -> dict:
    """Return the grid of layers by heads, feed-forward and biases."""
    kinds, layers = tuple(parts.keys), range(len(parts.feed_forward))
    heads = {kind: parts.heads(kind) for kind in kinds}
    biases = sum(parts.output_biases[kind] for kind in kinds)
    rows = [[*(heads[kind][i] for kind in kinds), [parts.feed_forward[i]], [biases[i]]] for i in layers]
    count = heads[kinds[0]].shape[1]
    axis = Axis(
        [*((SHORT[kind], count) for kind in kinds), (say("other parts"), 2)],
        [*(str(head + 1) for _ in kinds for head in range(count)), "FFN", "b"],
        names=[
            *(say("{kind}, head {n}", kind=SHORT[kind], n=head + 1) for kind in kinds for head in range(count)),
            say("feed-forward"),
            say("attention biases"),
        ],
    )
    lines = [
        Line(
            str(layer),
            say("layer {n}", n=layer + 1),
            cells(row, Unit.NATS, limit=_limit(parts)),
            margins=[margin(blocks.two_decimals(float(row.sum())))],
        )
        for layer, row in enumerate(map(np.concatenate, rows))
    ]
    margins = [(say("sum"), say("Of the layer's parts."))]
    return matrix(say("Parts of the decoder: layers by heads"), axis, lines, act=KEYS, margins=margins)


def _limit(parts: Parts) -> float:
    """Return the largest absolute part, which sets the colour scale."""
    arrays = (parts.feed_forward, *(parts.heads(kind) for kind in parts.keys))
    return max(float(np.abs(array).max(initial=0.0)) for array in arrays)


def _title(scene: Scene, parts: Parts) -> Words:
    """Return the number that is split."""
    token, contrast = token_names(scene.trace, scene.question)
    values = {"token": token, "n": blocks.two_decimals(parts.expected)}
    if contrast is None:
        return say(
            "The logit of {token} minus the mean logit of the vocabulary is {n}. This number is split, not log p.",
            **values,
        )
    return say(
        "log p({token}) − log p({contrast}) = {n} nats, split over the parts that wrote it.",
        contrast=contrast,
        **values,
    )


def _most(parts: Parts) -> Words:
    """Return the names of the largest parts."""
    named = [
        (say("{kind} {layer}.{head}", kind=SHORT[kind], layer=layer + 1, head=head + 1), float(value))
        for kind in parts.keys
        for (layer, head), value in np.ndenumerate(parts.heads(kind))
    ]
    named += [
        (say("feed-forward {layer}", layer=layer + 1), float(value)) for layer, value in enumerate(parts.feed_forward)
    ]
    largest = sorted(named, key=lambda pair: -abs(pair[1]))[:LARGEST]
    numbered = [
        say("{what}: {n}", what=name, n=f"{'+' if value > 0 else ''}{blocks.format_nats(value)}")
        for name, value in largest
    ]
    return say("The largest parts: {parts}.", parts=join(numbered, ", "))


PANEL = Panel(
    "why-parts",
    "Parts",
    "Which part of the decoder wrote this token?",
    say("Elhage et al. 2021"),
    parts,
    actions={KEYS: keys, EXPORT: matrix_file},
    paper="https://transformer-circuits.pub/2021/framework/",
    method=say(
        "The last row's sum is split exactly over embeddings, heads and feed-forward layers: the parts "
        "add up to the number explained above."
    ),
)
