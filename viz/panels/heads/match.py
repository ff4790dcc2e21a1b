"""Two models side by side: which head of one does what which head of the other does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.model_comparison import can_compare_rows, row_similarity
from attention_atlas.model.analysis.sentences import sentences
from attention_atlas.model.analysis.survey import own as surveys
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.statistics import STATISTICS
from attention_atlas.model.trace.survey.survey import DirectionSurvey, KindSurvey, compared, distances, match
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps.labels import KIND_TITLES
from attention_atlas.viz.panels.heads.survey import named_head
from attention_atlas.viz.panels.panel import Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.fields import option
from attention_atlas.viz.wire.survey import pick
from attention_atlas.viz.words import Words, join, say

MATCH = "match"
SHOWN, SENTENCES = 12, 12
KINDS = {
    AttentionKind.ENCODER_SELF: say("the encoder"),
    AttentionKind.DECODER_SELF: say("the decoder"),
    AttentionKind.CROSS: say("the decoder on the source"),
}


@dataclass(frozen=True, eq=False)
class Other:
    """A direction of a model, with its survey."""

    translator: Translator
    direction: str
    survey: DirectionSurvey

    @property
    def name(self) -> Words:
        return say("{direction} of {checkpoint}", direction=self.direction, checkpoint=self.translator.name)


def others(scene: Scene) -> list[Other]:
    """Every other direction and model of the page that was surveyed, those of other models first."""
    served = scene.served.all if scene.served else ()
    found = [
        Other(translator, direction, survey)
        for translator in served
        for direction in translator.directions
        if (translator.digest, direction) != (scene.translator.digest, scene.trace.direction)
        and (survey := surveys.surveyed(translator, direction))
    ]
    return sorted(found, key=lambda one: one.translator.digest == scene.translator.digest)


def side_by_side(scene: Scene, kind: str) -> list[dict]:
    if scene.survey is None:
        return [
            blocks.paragraph(
                "These heads have not been surveyed yet: first survey {n} sentences in the panel All heads.",
                n=surveys.SENTENCES,
            )
        ]
    found = others(scene)
    if not found:
        return [
            blocks.paragraph(
                "No other model on this page has a survey yet: open one, and survey {n} sentences in the panel "
                "All heads.",
                n=surveys.SENTENCES,
            )
        ]
    return [
        *([pick(say("beside"), [one.name for one in found], act=MATCH, slot=MATCH)] if len(found) > 1 else []),
        blocks.slot(MATCH, *beside(scene, found[0], AttentionKind(kind))),
    ]


def chosen(scene: Scene, data: Mapping[str, object], kind: str) -> list[dict]:
    return beside(scene, option(data, others(scene)), AttentionKind(kind))


def beside(scene: Scene, other: Other, kind: AttentionKind) -> list[dict]:
    survey = scene.survey
    if kind not in survey.kinds or kind not in other.survey.kinds:
        return [blocks.paragraph("One of the two has no such attention.")]
    one, two = survey.kinds[kind], other.survey.kinds[kind]
    names = compared(one, two)
    if not names:
        return [blocks.paragraph("The two surveys have no statistic in common.")]
    rows, apart = rows_of(scene, other, kind), distances(one, two)
    compares_rows = rows is not None
    found = [
        [
            named_head(*layer_and_head(one, pair.head)),
            named_head(*layer_and_head(two, pair.other)),
            blocks.bar(pair.nearness, f"{pair.distance:.2f}"),
            say("yes") if pair.mutual else say("no"),
            *([blocks.number(float(rows[pair.head, pair.other]))] if compares_rows else []),
            _does(one, pair.head),
            _does(two, pair.other),
        ]
        for pair in match(apart)
    ]
    columns = [
        say("here"),
        say("its nearest there"),
        say("distance"),
        say("nearest both ways"),
        *([say("same rows")] if compares_rows else []),
        say("does here"),
        say("does there"),
    ]
    others = blocks.folded(say("The other {n} heads", n=len(found) - SHOWN), blocks.table(columns, found[SHOWN:]))
    values, title = (
        (rows, say("Same rows, every pair of heads, {n} of this project's own sentences", n=SENTENCES))
        if compares_rows
        else (apart, say("Distance between every two heads"))
    )
    return [
        blocks.note(
            "{kind}: heads of this model beside those of {other}, by {n} statistics of both surveys. The distance is "
            "in standard deviations; its bar is full for the same head, and empty for any two.",
            kind=KIND_TITLES[kind],
            other=other.name,
            n=len(names),
        ),
        blocks.row(
            blocks.stack(blocks.table(columns, found[:SHOWN]), *([others] if len(found) > SHOWN else [])),
            blocks.maps(blocks.heatmap(values, title, signed=False, rows=short(one), columns=short(two))),
        ),
    ]


def rows_of(scene: Scene, other: Other, kind: AttentionKind) -> np.ndarray | None:
    """How alike their rows are, where both can be given the same pieces; else None."""
    direction = scene.trace.direction
    if other.direction != direction or not surveys.can(direction):
        return None
    if not can_compare_rows(scene.translator, other.translator, direction):
        return None
    texts = sentences(parse_direction(direction)[0])[:SENTENCES]
    return row_similarity(scene.translator, other.translator, direction, texts)[kind]


def layer_and_head(found: KindSurvey, head: int) -> tuple[int, int]:
    """Layer and head, of a head's number in all layers."""
    return divmod(head, found.shape[1])


def short(found: KindSurvey) -> list[str]:
    """Every head's place, as briefly as it can be told."""
    return [f"{layer + 1}.{head + 1}" for layer, head in np.ndindex(found.shape)]


def _does(found: KindSurvey, head: int) -> Words | str:
    layer, number = layer_and_head(found, head)
    return join([STATISTICS[name].title for name in found.named()[layer][number]], ", ") or "–"


OF = Choice(say("Attention of"), {kind.value: words for kind, words in KINDS.items()}, AttentionKind.CROSS.value)
PANEL = Panel(
    "heads-match",
    say("Two models"),
    say(
        "Do two models learn the same heads? For each head of this one, the head of another that behaves most like it."
    ),
    say("Clark et al. 2019, section 6"),
    side_by_side,
    actions={MATCH: chosen},
    paper="https://arxiv.org/abs/1906.04341",
    controls=(OF,),
)
