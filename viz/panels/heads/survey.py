"""The panel "All heads": a survey of every head over many sentences, and a card for one head."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.sentences import sentences
from attention_atlas.model.analysis.survey import run as surveys
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.trace.survey.statistics import STATISTICS
from attention_atlas.model.trace.survey.survey import EXAMPLES, OWN, DirectionSurvey, KindSurvey
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.question import with_minus_sign
from attention_atlas.viz.wire.survey import describe_head, open_head, work_block
from attention_atlas.viz.wire.survey import survey as survey_block
from attention_atlas.viz.words import Words, join, say

CARD = "card"
WHICH = {"most": say("most"), "typical": say("typical"), "least": say("least")}
assert set(WHICH) == set(EXAMPLES)
SHOWN = 3


def overview(scene: Scene) -> list[dict]:
    if surveys.can_survey(scene.trace.direction) and scene.survey is None:
        return [
            work_block(
                surveys.survey_work(scene.translator, scene.trace.direction).key,
                say("Survey {n} sentences", n=surveys.PAGE_SENTENCES),
                say(
                    "These heads have not been surveyed yet. A survey reads this project's own sentences and measures "
                    "every head on each."
                ),
            )
        ]
    if scene.survey is not None:
        return _overview(scene, scene.survey)
    return [
        blocks.paragraph(
            "These heads have not been surveyed, and this project has no sentences of its own in their source language."
        )
    ]


def _overview(scene: Scene, survey: DirectionSurvey) -> list[dict]:
    rule = say(
        "A name is given where the lower end of the 95% interval is above the threshold, and the value differs "
        "from that of random rows with at most 5% false discoveries."
    )
    count = (
        say("{n} of this project's own sentences.", n=survey.sentences)
        if survey.corpus == OWN
        else say("{n} sentences ({corpus}).", n=survey.sentences, corpus=survey.corpus)
    )
    return [
        survey_block(survey, scene.trace),
        blocks.text(join((count, rule), " "), tone="note"),
        blocks.slot(CARD, blocks.note("Choose a head to see its card.")),
    ]


def card(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """Return the card of the head that the page names. ValueError if it is not in the survey."""
    kind, layer, head = read_head(scene.survey, data)
    kind_survey = scene.survey.kinds[kind]
    names = kind_survey.head_names()[layer][head]
    does = describe_head(kind_survey, layer, head, names)
    title = say("{kind}, layer {layer}, head {head}: {does}.", **labels.place(kind, layer, head), does=does)
    counted = [[STATISTICS[name].title, STATISTICS[name].exact] for name in kind_survey.statistics]
    return [
        blocks.text(title),
        open_head(kind.value, layer, head),
        blocks.row(
            _statistics(scene, kind_survey, (kind, layer, head), names),
            blocks.stack(_sentences(scene, kind_survey, (layer, head), names), _alike(kind_survey, layer, head)),
        ),
        blocks.folded(say("What is counted"), blocks.table(blocks.headings("statistic", "what is counted"), counted)),
    ]


def read_head(survey: DirectionSurvey | None, data: Mapping[str, object]) -> tuple[AttentionKind, int, int]:
    """Read kind, layer and head from the page. ValueError if the survey does not have the head."""
    kind, layer, head = AttentionKind(data.get("kind")), data.get("layer"), data.get("head")
    if survey is None or kind not in survey.kinds:
        raise ValueError(f"there is no survey of {kind.value}")
    layers, heads = survey.kinds[kind].shape
    if not (is_integer(layer, 0, layers - 1) and is_integer(head, 0, heads - 1)):
        raise ValueError(f"{kind.value} has no layer {layer!r}, head {head!r}")
    return kind, layer, head


def here(scene: Scene, kind: AttentionKind, layer: int, head: int) -> dict[str, cells.Measurement]:
    """Return the statistics of a head in this sentence."""
    maps = scene.trace.maps(kind)
    return cells.measure(kind, maps.weights[layer, head], maps.query_tokens, maps.key_tokens)


def _statistics(scene: Scene, survey: KindSurvey, at: tuple[AttentionKind, int, int], names: tuple[str, ...]) -> dict:
    """Return a table of the head's statistics over the survey and in this sentence."""
    kind, layer, head = at
    now, rows = here(scene, kind, layer, head), []
    for name, estimate in survey.statistics.items():
        statistic = STATISTICS[name]
        value, low, high = (float(part[layer, head]) for part in (estimate.value, estimate.low, estimate.high))
        tested = statistic.threshold is not None
        rows.append(
            [
                statistic.title,
                blocks.bar(min(1.0, max(0.0, value)), f"{value:.3f}"),
                with_minus_sign(f"{low:.3f} – {high:.3f}"),
                f"{estimate.chance:.3f}" if tested else "–",
                f"{statistic.threshold:.2f}" if tested else "–",
                f"{float(now[name].values):.3f}" if name in now else "–",
            ]
        )
    return blocks.table(
        blocks.headings("statistic", "mean", "95% interval", "random rows", "threshold", "here, now"),
        rows,
        marked=[index for index, name in enumerate(survey.statistics) if name in names],
    )


def _sentences(scene: Scene, survey: KindSurvey, at: tuple[int, int], names: tuple[str, ...]) -> dict:
    """Return example sentences for the head's first name, else for what it does most beyond chance."""
    above = {name: survey.statistics[name].value[at] - survey.statistics[name].chance for name in survey.examples}
    name = names[0] if names else max(above, key=above.get, default=None)
    if name is None or not surveys.can_survey(scene.trace.direction):
        return blocks.note("There are no example sentences in this language.")
    lines = sentences(parse_direction(scene.trace.direction)[0])
    rows = [
        [words, lines[line]]
        for which, words in WHICH.items()
        for line in survey.examples[name][which][at][:SHOWN]
        if 0 <= line < len(lines)
    ]
    caption = say(
        "This project's own sentences in which it is highest, typical and lowest: {title}", title=STATISTICS[name].title
    )
    return blocks.table(["", say("sentence")], rows, caption=caption)


def _alike(survey: KindSurvey, layer: int, head: int) -> dict:
    """Return a table of the heads with the most similar rows."""
    _, heads = survey.shape
    row = survey.similarity[layer * heads + head].copy()
    row[layer * heads + head] = -np.inf
    best = np.argsort(-row)[:SHOWN]
    return blocks.table(
        blocks.headings("heads like it", "same rows"),
        [[named_head(int(i) // heads, int(i) % heads), blocks.bar(float(row[i]))] for i in best if np.isfinite(row[i])],
        caption=say("1 minus the mean Jensen–Shannon divergence of their rows, in bits"),
    )


def named_head(layer: int, head: int) -> Words:
    """Return the label of a head."""
    return say("layer {layer}, head {head}", layer=layer + 1, head=head + 1)


def map_of_heads(values: np.ndarray, title: Words, *, limit: float, signed: bool, note: Words | str = "") -> dict:
    """Return a small map of one number per head [layers, heads]."""
    names = {letter: [f"{letter}{i + 1}" for i in range(size)] for letter, size in zip("LH", values.shape)}
    return blocks.heatmap(values, title, limit=limit, signed=signed, note=note, rows=names["L"], columns=names["H"])


PANEL = Panel(
    "heads-survey",
    say("All heads"),
    say("What does each head do in general? One sentence shows a pattern; a claim needs many."),
    say("Voita et al. 2019"),
    overview,
    actions={CARD: card},
    paper="https://arxiv.org/abs/1905.09418",
)
