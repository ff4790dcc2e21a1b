"""The panel "Additive attention": the stages of a recurrent network's attention for one decoder row."""

from __future__ import annotations

import numpy as np

from attention_atlas.model.analysis.formulas.scoring import additive_stages
from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.menus import QUERY
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.train.recurrent import not_served, recurrent_reading
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say


def additive(scene: Scene, query: int) -> list[dict]:
    """Draw the stages of one row. query: the row from 1; 0 for the selected one."""
    reading = recurrent_reading(scene)
    if reading is None or reading[0].model.attention is None:
        return not_served(scene)
    translator, trace = reading
    selected = scene.selection.query if scene.selection.query is not None else 1
    row = min(query - 1 if query else selected, len(trace.target_ids) - 1)
    row_stages = additive_stages(translator.model, record_pass(translator, trace), row, trace.decoder_ids)
    read = labels.display(trace.decoder_inputs[row])
    keys = [labels.display(token) for token in trace.source_tokens]
    key_names = [say("U h of {token}", token=key) for key in keys]
    sum_names = [say("W s + U h of {token}", token=key) for key in keys]
    active_names = [say("tanh of {token}", token=key) for key in keys]
    product_names = [say("v × tanh of {token}", token=key) for key in keys]
    query = blocks.strip(row_stages.query, limit=float(np.abs(row_stages.sums).max()), name="W s")
    products = row_stages.active * row_stages.score_vector
    return [
        blocks.paragraph(
            "{kind}, row {n}: {row}",
            kind=labels.KIND_TITLES[AttentionKind.ALIGNMENT],
            n=row + 1,
            row=labels.row_name(trace, AttentionKind.ALIGNMENT, row),
        ),
        blocks.formula("α = softmax(vᵀ tanh(W s + U h))"),
        blocks.columns(
            (say("Source word"), [say("state →"), *map(blocks.token, keys)]),
            ("U h", ["", *blocks.strips(row_stages.keys, key_names)]),
            ("W s + U h", [query, *blocks.strips(row_stages.sums, sum_names)]),
            ("tanh", ["", *blocks.strips(row_stages.active, active_names, limit=1.0)]),
            ("v × tanh", ["", *blocks.strips(products, product_names)]),
            (say("sum"), ["", *map(blocks.number, row_stages.scores)]),
            ("softmax", ["", *map(blocks.bar, row_stages.weights)]),
            foot=[say("sum"), *[""] * 5, blocks.bar(1.0, blocks.compact(row_stages.weights.sum()))],
            marked=(int(row_stages.weights.argmax()) + 1,),
            caption=say(
                "{n} dimensions per strip; blue is negative, orange positive, one scale per column.",
                n=len(row_stages.query),
            ),
        ),
        blocks.table(
            (say("Which is the query?"), say("numbers"), ""),
            [
                [
                    say("the decoder’s state s"),
                    blocks.strip(row_stages.state, limit=1.0),
                    say("the query of this network"),
                ],
                [
                    say("the decoder’s input, {token}", token=read),
                    blocks.strip(row_stages.token),
                    say("the query in some courses; here it enters the unit after the attention, with the context"),
                ],
            ],
            marked=(0,),
        ),
        blocks.action(say("The gates of the decoder at this step"), blocks.to_panel("train", "gates", set2=row + 1)),
        blocks.facts(
            blocks.fact(
                "Context passed to the decoder",
                say("{n} numbers", n=len(row_stages.context)),
                "the sum of weight × h, from both directions of reading",
            ),
            blocks.fact("Largest error", row_stages.error, "these stages against the model's own weights"),
        ),
    ]


PANEL = Panel(
    "additive",
    "Additive attention",
    "The first attention: the decoder's state and each source word are added, not multiplied.",
    say("Bahdanau et al. 2015"),
    additive,
    controls=(QUERY,),
    of_any_network=True,
    paper="https://arxiv.org/abs/1409.0473",
    method=say(
        "The sum goes through a tanh, and a vector v turns it into one number per word. No query is "
        "multiplied by a key, and nothing is divided by √d_k."
    ),
)
