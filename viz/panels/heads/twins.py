"""The panel "One sentence": two models read the same sentence and the same forced translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from attention_atlas.model.analysis.model_comparison import assign, compare_models
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps.labels import KIND_TITLES
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.words import Words, say

OTHER, SHOWN = "other", 12
SIDES = {Side.ENCODER: say("Encoder layers"), Side.DECODER: say("Decoder layers")}


def other_models(scene: Scene) -> list[Translator]:
    """Return every other model of the page that translates in this direction."""
    direction = scene.trace.direction
    return [
        model
        for model in (scene.served.all if scene.served else ())
        if model.digest != scene.translator.digest
        and (direction in model.directions or (model.languages and direction in model.languages))
    ]


def two_models(scene: Scene) -> list[dict]:
    models = other_models(scene)
    if not models:
        return [blocks.paragraph("No other model on this page translates in this direction.")]
    return blocks.pick(say("Compare with"), [model.name for model in models], OTHER, compare(scene, models[0]))


def compare_with(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """Compare with the model that the visitor chose in the menu."""
    return compare(scene, fields.read_option(data, other_models(scene)))


def compare(scene: Scene, other: Translator) -> list[dict]:
    """Draw word probabilities, similarity of layers and matching heads of this model and another one."""
    trace = scene.trace
    theirs = other.trace(trace.source_text, trace.direction, target=trace.translation)
    mine = scene.translator.trace(
        trace.source_text, trace.direction, source_ids=trace.source_ids, target=trace.target_ids
    )
    comparison = compare_models((scene.translator, mine), (other, theirs))
    caption = say(
        "Log-probability of each word, in nats. Both models are forced to write the same "
        "translation; the end symbol </s> is left out."
    )
    columns = say("Word"), scene.translator.name, other.name
    return [
        probability_table(columns, comparison.words, comparison.log_probability.T, caption),
        *([layer_maps(comparison.layer_similarity)] if comparison.layer_similarity else []),
        *(
            head_pairs(kind, alike, [trace.maps(kind).num_heads for trace in (mine, theirs)])
            for kind, alike in comparison.head_similarity.items()
        ),
    ]


def probability_table(columns: Sequence[Words | str], rows: Sequence[str], pairs: np.ndarray, caption: Words) -> dict:
    """Return a table of two models' log-probabilities [row, 2]. columns: the titles of the rows and of both models."""

    def written(value: float, sign: str = "") -> str:
        return blocks.with_minus_sign(f"{value:{sign}.2f}")

    cells = [
        [blocks.token(row), *(blocks.shade(np.exp(p), written(p)) for p in pair), written(pair[0] - pair[1], "+")]
        for row, pair in zip(rows, pairs)
    ]
    total = pairs.sum(0)
    foot = ["Σ", *map(written, total), written(total[0] - total[1], "+")]
    return blocks.table((*columns, say("difference")), cells, foot=foot, caption=caption)


def layer_maps(similarity: Mapping[Side, np.ndarray]) -> dict:
    """Return maps of the CKA of every two layers, [layer, layer of the other model] for each side."""
    note = say("CKA of every pair of layers, over words")
    return blocks.maps(
        *(blocks.heatmap(values, SIDES[side], limit=1.0, note=note) for side, values in similarity.items())
    )


def head_pairs(kind: AttentionKind, alike: np.ndarray, widths: Sequence[int]) -> dict:
    """Return a table of the most similar pairs of heads. widths: heads per layer of either model."""

    def named(head: int, width: int) -> str:
        layer, number = divmod(head, width)
        return f"{layer + 1}.{number + 1}"

    rows = [[*map(named, pair, widths), blocks.bar(alike[pair])] for pair in assign(alike)[:SHOWN]]
    caption = say("Heads are paired one to one so that the total similarity is largest; the best pairs come first.")
    table = blocks.table(blocks.headings("here", "partner in the other model", "same rows"), rows, caption=caption)
    return blocks.folded(KIND_TITLES[kind], table)


PANEL = Panel(
    "heads-twins",
    "Two models, one sentence",
    "Two models, the same translation: at which words do they differ, and which layers and heads correspond?",
    say("Kornblith et al. 2019"),
    two_models,
    actions={OTHER: compare_with},
    paper="https://arxiv.org/abs/1905.00414",
    of_any_network=True,
)
