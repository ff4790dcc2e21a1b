"""One sentence, two models: the same target forced on both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from attention_atlas.model.analysis.model_comparison import compare_models
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps.labels import KIND_TITLES
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.fields import option
from attention_atlas.viz.wire.question import with_minus
from attention_atlas.viz.wire.survey import pick
from attention_atlas.viz.words import Words, say

OTHER, SHOWN = "other", 12
SIDES = {Side.ENCODER: say("Encoder layers"), Side.DECODER: say("Decoder layers")}


def others(scene: Scene) -> list[Translator]:
    """Every other model of the page that translates this direction."""
    return [
        one
        for one in (scene.served.all if scene.served else ())
        if one.digest != scene.translator.digest
        and (scene.trace.direction in one.directions or (one.languages and scene.trace.direction in one.languages))
    ]


def two_models(scene: Scene) -> list[dict]:
    found = others(scene)
    if not found:
        return [blocks.paragraph("No other model on this page translates this direction.")]
    menu = [pick(say("beside"), [one.name for one in found], act=OTHER, slot=OTHER)] if len(found) > 1 else []
    return [*menu, blocks.slot(OTHER, *beside(scene, found[0]))]


def chosen(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    return beside(scene, option(data, others(scene)))


def beside(scene: Scene, other: Translator) -> list[dict]:
    trace = scene.trace
    theirs = other.trace(trace.source_text, trace.direction, target=trace.translation)
    mine = scene.translator.trace(
        trace.source_text, trace.direction, source_ids=trace.source_ids, target=trace.target_ids
    )
    found = compare_models((scene.translator, mine), (other, theirs))
    caption = say(
        "Log-probability of each word in nats, the same translation forced on both models; without its end, </s>."
    )
    columns = say("Word"), scene.translator.name, other.name
    return [
        probable(columns, found.words, found.log_probability.T, caption),
        *([layers(found.layer_similarity)] if found.layer_similarity else []),
        *(
            partners(kind, found.head_similarity[kind], pairs, [one.maps(kind).num_heads for one in (mine, theirs)])
            for kind, pairs in found.head_pairs.items()
        ),
    ]


def probable(columns: Sequence[Words | str], rows: Sequence[str], pairs: np.ndarray, caption: Words) -> dict:
    """Log-probabilities [row, 2] of the same words or sentences, under what all three columns are."""

    def written(value: float, sign: str = "") -> str:
        return with_minus(f"{value:{sign}.2f}")

    cells = [
        [
            blocks.token(row),
            *(blocks.shade(float(np.exp(p)), written(p)) for p in pair),
            written(pair[0] - pair[1], "+"),
        ]
        for row, pair in zip(rows, pairs)
    ]
    total = pairs.sum(0)
    foot = ["Σ", *map(written, total), written(total[0] - total[1], "+")]
    return blocks.table((*columns, say("difference")), cells, foot=foot, caption=caption)


def layers(found: Mapping[Side, np.ndarray]) -> dict:
    """CKA [layers, the other's layers] of each side."""
    note = say("CKA of every two layers, over words")
    return blocks.maps(*(blocks.heatmap(values, SIDES[side], limit=1.0, note=note) for side, values in found.items()))


def partners(kind: AttentionKind, alike: np.ndarray, pairs: list[tuple[int, int]], widths: Sequence[int]) -> dict:
    """The likest pairs. widths: how many heads a layer has, here and there."""

    def named(head: int, width: int) -> str:
        layer, number = divmod(head, width)
        return f"{layer + 1}.{number + 1}"

    rows = [[*map(named, pair, widths), blocks.bar(float(alike[pair]))] for pair in pairs[:SHOWN]]
    caption = say(
        "Each head is paired with one of the other's so that all pairs together are most alike; the best come first."
    )
    table = blocks.table(blocks.headings("here", "its partner there", "same rows"), rows, caption=caption)
    return blocks.folded(KIND_TITLES[kind], table)


PANEL = Panel(
    "heads-twins",
    say("One sentence"),
    say(
        "Two models write the same sentence: at which words do they differ? And where both are Transformers: in which "
        "layers, and which heads correspond?"
    ),
    say("Kornblith et al. 2019"),
    two_models,
    actions={OTHER: chosen},
    paper="https://arxiv.org/abs/1905.00414",
    of_any_network=True,
)
