"""The panel "One query": attention of one query stage by stage, and the same stages for all queries."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.dissection import dropped
from attention_atlas.model.analysis.formulas.projections import score_matrix
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.patterns import entropy_bits
from attention_atlas.viz.panels.menus import HEAD, KIND, LAYER, QUERY, dissect_query, resolve
from attention_atlas.viz.panels.panel import DIVIDED_OR_BIASED, MASKED, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say

DROPOUT = Slider(say("Dropout on the weights, %"), 0, 50, 0)


def attention(scene: Scene, kind: str, layer: int, head: int, query: int, dropout: int = DROPOUT.start) -> list[dict]:
    """Draw the stages of one row. layer, head and query: from 1; 0 for the selection. dropout: in percent."""
    stages, title, keys = dissect_query(scene, kind, layer, head, query)
    used = dropped(stages.weights, dropout / 100)  # the weights that multiply the values
    contributions = (used * stages.heard)[:, None] * stages.values
    width, biased = len(stages.query), stages.bias is not None
    key_limit, product_limit, value_limit = (
        float(np.abs(x).max()) for x in (stages.keys, stages.products, stages.values)
    )

    def bar(share: float) -> dict:
        return blocks.bar(min(1.0, float(share)), blocks.compact(float(share)))

    rows = [
        [
            blocks.token(key),
            blocks.strip(stages.keys[i], limit=key_limit, name=say("key {token}", token=key)),
            blocks.strip(stages.products[i], limit=product_limit, name=say("q·k of {token}", token=key)),
            blocks.number(float(stages.dots[i])),
            *([blocks.number(float(stages.bias[i]))] if biased else []),
            blocks.number(float(stages.scaled[i])),
            blocks.number(float(stages.masked[i])) if stages.allowed[i] else say("masked"),
            blocks.bar(float(stages.unscaled_weights[i])),
            blocks.bar(float(stages.weights[i])),
            *([bar(used[i])] if dropout else []),
            blocks.strip(contributions[i], limit=value_limit, name=say("weighted value of {token}", token=key)),
        ]
        for i, key in enumerate(keys)
    ]
    query_row = [say("query →"), blocks.strip(stages.query, name=say("query")), *[""] * (7 + biased + bool(dropout))]
    foot = [
        say("sum"),
        *[""] * (5 + biased),
        blocks.bar(1.0, blocks.compact(float(stages.unscaled_weights.sum()))),
        blocks.bar(1.0, blocks.compact(float(stages.weights.sum()))),
        *([bar(used.sum())] if dropout else []),
        blocks.strip(contributions.sum(0), limit=value_limit, name=say("output")),
    ]
    divided = f"÷ √{width}"
    if biased:
        score = say("+ bias"), f"{divided} + B" if stages.divided else say("score")
    else:
        score = (divided,)
    columns = (
        say("Key"),
        "k",
        say("q × k, element by element"),
        say("sum q·k"),
        *score,
        say("masked"),
        say("softmax without the bias") if biased else say("softmax without ÷"),
        "softmax",
        *((say("after dropout"),) if dropout else ()),
        say("weight × v"),
    )
    right, wrong = entropy_bits(stages.weights), entropy_bits(stages.unscaled_weights)
    facts = [
        (
            say("Entropy"),
            say("{bits} bits", bits=f"{right:.2f}"),
            say("as if {n} keys shared the attention", n=f"{2**right:.1f}"),
        ),
        (
            say("Entropy without the bias"),
            say("{bits} bits", bits=f"{wrong:.2f}"),
            say("by content alone: as if {n} keys shared it", n=f"{2**wrong:.1f}"),
        )
        if biased
        else (
            say("Entropy without ÷ √{width}", width=width),
            say("{bits} bits", bits=f"{wrong:.2f}"),
            say(
                "as if {n} did: scores {factor} times as far apart",
                n=f"{2**wrong:.1f}",
                factor=blocks.compact(width**0.5),
            ),
        ),
    ]
    if dropout:
        draw = say(
            "one draw, as in training only: what is left is {factor} times as large, and on average the row sums to 1 "
            "again. This model was trained with {rate}; its translation has none",
            factor=blocks.compact(100 / (100 - dropout)),
            rate=f"{scene.translator.config.attention_dropout:.0%}",
        )
        facts.append((say("Dropout"), f"{dropout}%", draw))
    return [
        blocks.text(title),
        blocks.formula(f"softmax(q·kᵀ{f' / √{width}' * stages.divided}{' + B' * biased}) · v"),
        blocks.table(
            columns,
            [query_row, *rows],
            foot=foot,
            marked=(int(stages.weights.argmax()) + 1,),
            caption=say("{n} dimensions per strip; blue is negative, orange positive, one scale per column.", n=width),
        ),
        blocks.facts(
            *facts,
            (say("Largest error"), blocks.compact(stages.error), say("these stages against the model's own weights")),
        ),
        *_all_queries(scene, resolve(scene, kind, layer, head, query), width),
    ]


def _all_queries(scene: Scene, place: tuple, width: int) -> list[dict]:
    """Draw scores, mask and weights of every query of the head. place: as from resolve(); its query is framed."""
    kind, layer, head, query = place
    scores, maps = score_matrix(scene.output, kind, layer, head), scene.trace.maps(kind)
    names = {
        "rows": labels.row_names(scene.trace, kind),
        "columns": [labels.display(token) for token in maps.key_tokens],
        "frame": (query, 0, 1, len(maps.key_tokens)),
    }
    divided = scene.translator.config.scale_scores
    formula = f"Q Kᵀ{f' / √{width}' * divided}{' + B' * (scores.bias is not None)}"
    limit, closed = float(np.abs(scores.scaled).max()), int(np.isinf(scores.masked).sum())
    note = say("{n} cells closed: later tokens", n=closed) if closed else say("nothing is closed")
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
    say("One query"),
    say(
        "One query looks at every key, from left to right: multiply, add up, divide by √d_k, mask, softmax, and "
        "take that share of each value. Follow the row with the largest weight."
    ),
    say("Paper, equation {n}", n="1"),
    attention,
    controls=(KIND, LAYER, HEAD, QUERY, DROPOUT),
    needs=(MASKED, DIVIDED_OR_BIASED),
)
