"""The panel "One query": attention of one query stage by stage, and the same stages for all queries."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.formulas.stages import dropped, score_matrix
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.patterns import entropy_bits
from attention_atlas.viz.panels.menus import HEAD, KIND, LAYER, QUERY, dissect_query, resolve
from attention_atlas.viz.panels.panel import DIVIDED_OR_BIASED, MASKED, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import Words, say

DROPOUT = Slider(say("Dropout on the weights, %"), 0, 50, 0)


def attention(scene: Scene, kind: str, layer: int, head: int, query: int, dropout: int = DROPOUT.start) -> list[dict]:
    """Draw the stages of one row. layer, head and query: from 1; 0 for the selection. dropout: in percent."""
    stages, title, keys = dissect_query(scene, kind, layer, head, query)
    used = dropped(stages.weights, dropout / 100)  # the weights that multiply the values
    contributions = (used * stages.heard)[:, None] * stages.values
    width, biased = len(stages.query), stages.bias is not None
    limit = float(np.abs(stages.values).max())
    masked = [blocks.number(n) if allowed else say("masked") for n, allowed in zip(stages.masked, stages.allowed)]
    if biased:
        scaled, content = f"÷ √{width} + B" if stages.divided else say("score"), say("softmax without the bias")
    else:
        scaled, content = f"÷ √{width}", say("softmax without ÷")
    key_names = [say("key {token}", token=key) for key in keys]
    product_names = [say("q·k of {token}", token=key) for key in keys]
    value_names = [say("weighted value of {token}", token=key) for key in keys]

    def bar(share: float) -> dict:
        return blocks.bar(min(1.0, share), blocks.compact(share))

    def total(weights: np.ndarray) -> dict:
        return blocks.bar(1.0, blocks.compact(weights.sum()))

    columns = [  # heading, the query's cell, the keys' cells, the cell of the sum
        (say("Key"), say("query →"), map(blocks.token, keys), say("sum")),
        ("k", blocks.strip(stages.query, name=say("query")), blocks.strips(stages.keys, key_names), ""),
        (say("q × k, element by element"), "", blocks.strips(stages.products, product_names), ""),
        (say("sum q·k"), "", map(blocks.number, stages.dots), ""),
        *([(say("+ bias"), "", map(blocks.number, stages.bias), "")] if biased else []),
        (scaled, "", map(blocks.number, stages.scaled), ""),
        (say("masked"), "", masked, ""),
        (content, "", map(blocks.bar, stages.unscaled_weights), total(stages.unscaled_weights)),
        ("softmax", "", map(blocks.bar, stages.weights), total(stages.weights)),
        *([(say("after dropout"), "", map(bar, used), bar(used.sum()))] if dropout else []),
        (
            say("weight × v"),
            "",
            blocks.strips(contributions, value_names, limit=limit),
            blocks.strip(contributions.sum(0), limit=limit, name=say("output")),
        ),
    ]
    headings, query_row, cells, foot = zip(*columns)
    right, wrong = entropy_bits(stages.weights), entropy_bits(stages.unscaled_weights)
    facts = [
        blocks.fact("Entropy", _bits(right), "as if {n} keys shared the attention", n=f"{2**right:.1f}"),
        blocks.fact(
            "Entropy without the bias", _bits(wrong), "by content alone: as if {n} keys shared it", n=f"{2**wrong:.1f}"
        )
        if biased
        else (
            say("Entropy without ÷ √{width}", width=width),
            _bits(wrong),
            say(
                "as if {n} keys did: scores {factor} times as far apart",
                n=f"{2**wrong:.1f}",
                factor=blocks.compact(width**0.5),
            ),
        ),
    ]
    if dropout:
        draw = say(
            "one random draw, as in training: survivors are scaled by {factor}, so that the row still "
            "sums to 1 on average. This model was trained with {rate}; none is used for its translations",
            factor=blocks.compact(100 / (100 - dropout)),
            rate=f"{scene.translator.config.attention_dropout:.0%}",
        )
        facts.append((say("Dropout"), f"{dropout}%", draw))
    return [
        blocks.formula(f"softmax(q·kᵀ{f' / √{width}' * stages.divided}{' + B' * biased}) · v"),
        blocks.stack(
            blocks.text(title),
            blocks.table(
                headings,
                [query_row, *zip(*cells, strict=True)],
                foot=foot,
                marked=(int(stages.weights.argmax()) + 1,),
                caption=say(
                    "{n} dimensions per strip; blue is negative, orange positive, one scale per column.", n=width
                ),
            ),
            *_all_queries(scene, resolve(scene, kind, layer, head, query), width),
        ),
        blocks.facts(
            *facts, blocks.fact("Largest error", stages.error, "these stages against the model's own weights")
        ),
    ]


def _bits(entropy: float) -> Words:
    return say("{bits} bits", bits=f"{entropy:.2f}")


def _all_queries(scene: Scene, place: tuple, width: int) -> list[dict]:
    """Draw scores, mask and weights of every query of the head. place: as from resolve(); its query is framed."""
    kind, layer, head, query = place
    scores, maps = score_matrix(scene.output, kind, layer, head), scene.trace.maps(kind)
    names = {
        "rows": labels.row_names(scene.trace, kind),
        "columns": list(map(labels.display, maps.key_tokens)),
        "frame": (query, 0, 1, len(maps.key_tokens)),
    }
    divided = scene.translator.config.scale_scores
    formula = f"Q Kᵀ{f' / √{width}' * divided}{' + B' * (scores.bias is not None)}"
    limit, closed = np.abs(scores.scaled).max(), int(np.isinf(scores.masked).sum())
    note = say("{n} cells masked: later tokens", n=closed) if closed else say("nothing is masked")
    return [
        blocks.paragraph(
            "All queries of this head at once, [query, key]; the row above is framed. Largest error of its weights: "
            "{error}.",
            error=blocks.compact(scores.error),
        ),
        blocks.maps(
            blocks.heatmap(scores.scaled, formula, limit=limit, **names),
            blocks.heatmap(scores.masked, say("masked"), limit=limit, note=note, **names),
            blocks.heatmap(scores.weights, "softmax", limit=1.0, signed=False, **names),
        ),
    ]


PANEL = Panel(
    "attention",
    "One query",
    "How one query attends: dot products, ÷ √d_k, mask, softmax, then a weighted sum of the values.",
    say("Paper, equation {n}", n="1"),
    attention,
    controls=(KIND, LAYER, HEAD, QUERY, DROPOUT),
    needs=(MASKED, DIVIDED_OR_BIASED),
    method=say("The row with the largest weight is marked."),
)
