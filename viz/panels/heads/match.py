"""The panel "Two models": for each head of this model the head of another model that behaves most like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.model_comparison import can_compare_rows, row_similarity
from attention_atlas.model.analysis.sentences import has_sentences, source_sentences
from attention_atlas.model.analysis.survey import run as surveys
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.statistics import STATISTICS
from attention_atlas.model.trace.survey.survey import (
    DirectionSurvey,
    KindSurvey,
    Match,
    comparable_statistics,
    head_distances,
    match_heads,
)
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps.labels import KIND_TITLES
from attention_atlas.viz.panels.heads.survey import label_head
from attention_atlas.viz.panels.panel import Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks, fields
from attention_atlas.viz.words import Words, join, say, say_plural

MATCH = "match"
SHOWN, SENTENCES = 12, 12
KINDS = {
    AttentionKind.ENCODER_SELF: say("the encoder"),
    AttentionKind.DECODER_SELF: say("the decoder"),
    AttentionKind.CROSS: say("the decoder on the source"),
}


@dataclass(frozen=True, eq=False)
class SurveyedModel:
    """A model in one direction, with its survey."""

    translator: Translator
    direction: str
    survey: DirectionSurvey

    @property
    def name(self) -> Words:
        """The label in the menu."""
        return say("{direction} of {checkpoint}", direction=self.direction, checkpoint=self.translator.name)


def other_surveys(scene: Scene) -> list[SurveyedModel]:
    """Return every other surveyed model and direction of the page, other models first."""
    served = scene.served.all if scene.served else ()
    candidates = [
        SurveyedModel(translator, direction, survey)
        for translator in served
        for direction in translator.directions
        if (translator.digest, direction) != (scene.translator.digest, scene.trace.direction)
        and (survey := surveys.find_survey(translator, direction))
    ]
    return sorted(candidates, key=lambda model: model.translator.digest == scene.translator.digest)


def side_by_side(scene: Scene, kind: str) -> list[dict]:
    if scene.survey is None:
        return [
            blocks.paragraph(
                "These heads have not been surveyed yet. Survey {n} sentences in the All heads panel first.",
                n=surveys.PAGE_SENTENCES,
            )
        ]
    models = other_surveys(scene)
    if not models:
        return [
            blocks.paragraph(
                "No other model on this page has a survey yet. Open one and survey {n} sentences in the All "
                "heads panel.",
                n=surveys.PAGE_SENTENCES,
            )
        ]
    names, answer = [model.name for model in models], compare(scene, models[0], AttentionKind(kind))
    return blocks.pick(say("Compare with"), names, MATCH, answer)


def compare_with(scene: Scene, data: Mapping[str, object], kind: str) -> list[dict]:
    """Compare with the model that the visitor chose in the menu."""
    return compare(scene, fields.read_option(data, other_surveys(scene)), AttentionKind(kind))


def compare(scene: Scene, other: SurveyedModel, kind: AttentionKind) -> list[dict]:
    """Draw the heads of this model beside their nearest heads in another one."""
    survey = scene.survey
    if kind not in survey.kinds or kind not in other.survey.kinds:
        return [blocks.paragraph("One of the two models has no attention of this kind.")]
    here, there = survey.kinds[kind], other.survey.kinds[kind]
    names = comparable_statistics(here, there)
    if not names:
        return [blocks.paragraph("The two surveys have no statistic in common.")]
    rows, apart = compare_rows(scene, other, kind), head_distances(here, there)
    compares_rows = rows is not None

    def table(pairs: Sequence[Match]) -> dict:
        same_rows = [blocks.number(rows[pair.head, pair.other]) for pair in pairs] if compares_rows else []
        return blocks.columns(
            (say("here"), [label_head(*layer_and_head(here, pair.head)) for pair in pairs]),
            (say("closest match"), [label_head(*layer_and_head(there, pair.other)) for pair in pairs]),
            (say("distance"), [blocks.bar(pair.nearness, f"{pair.distance:.2f}") for pair in pairs]),
            (say("mutual match"), [say("yes") if pair.mutual else say("no") for pair in pairs]),
            *([(say("same rows"), same_rows)] if compares_rows else []),
            (say("habit here"), [_describe(here, pair.head) for pair in pairs]),
            (say("habit there"), [_describe(there, pair.other) for pair in pairs]),
        )

    pairs = match_heads(apart)
    rest = blocks.folded(
        say_plural("The other {n} head", "The other {n} heads", n=len(pairs) - SHOWN), table(pairs[SHOWN:])
    )
    values, title = (
        (rows, say("Same rows, every pair of heads, {n} of this project's own sentences", n=SENTENCES))
        if compares_rows
        else (apart, say("Distance between every pair of heads"))
    )
    return [
        blocks.row(
            blocks.stack(table(pairs[:SHOWN]), *([rest] if len(pairs) > SHOWN else [])),
            blocks.maps(
                blocks.heatmap(values, title, signed=False, rows=short_names(here), columns=short_names(there))
            ),
        ),
        blocks.note(
            "{kind}: heads of this model and of {other}, compared by {n} statistics of both surveys. "
            "Distance in standard deviations; the longer the bar, the more alike (full: identical; "
            "empty: no closer than any two heads).",
            kind=KIND_TITLES[kind],
            other=other.name,
            n=len(names),
        ),
    ]


def compare_rows(scene: Scene, other: SurveyedModel, kind: AttentionKind) -> np.ndarray | None:
    """Return the similarity of every two heads' rows on the same tokens, or None if the models cannot read these."""
    direction = scene.trace.direction
    if other.direction != direction or not has_sentences(direction):
        return None
    if not can_compare_rows(scene.translator, other.translator, direction):
        return None
    texts = source_sentences(direction)[:SENTENCES]
    return row_similarity(scene.translator, other.translator, direction, texts, kind)


def layer_and_head(survey: KindSurvey, head: int) -> tuple[int, int]:
    """Return layer and head of a head numbered over all layers."""
    return divmod(head, survey.shape[1])


def short_names(survey: KindSurvey) -> list[str]:
    """Return "layer.head" of every head."""
    return [f"{layer + 1}.{head + 1}" for layer, head in np.ndindex(survey.shape)]


def _describe(survey: KindSurvey, head: int) -> Words | str:
    layer, number = layer_and_head(survey, head)
    return join([STATISTICS[name].title for name in survey.head_names()[layer][number]], ", ") or "–"


OF = Choice(say("Attention of"), {kind.value: words for kind, words in KINDS.items()}, AttentionKind.CROSS.value)
PANEL = Panel(
    "heads-match",
    "Two models",
    "Do two models learn the same heads? Each head is shown with its closest match in another model.",
    say("Clark et al. 2019, section 6"),
    side_by_side,
    actions={MATCH: compare_with},
    paper="https://arxiv.org/abs/1906.04341",
    controls=(OF,),
)
