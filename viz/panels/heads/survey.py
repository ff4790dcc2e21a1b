"""The panel "All heads": a survey of every head over many sentences, and a card for one head.

A survey (model.analysis.survey) measures statistics of each head over this project's sentences, and names a head after
those that are large and not due to chance. The card shows one head's statistics, in the survey and in this sentence.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.sentences import has_sentences, source_sentences
from attention_atlas.model.analysis.survey import run as surveys
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.trace.survey.statistics import STATISTICS
from attention_atlas.model.trace.survey.survey import EXAMPLES, OWN, DirectionSurvey, KindSurvey
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.survey import describe_head
from attention_atlas.viz.wire.survey import survey as survey_block
from attention_atlas.viz.words import Words, join, say

CARD = "card"
EXAMPLE_LABELS = {"most": say("most"), "typical": say("typical"), "least": say("least")}
assert set(EXAMPLE_LABELS) == set(EXAMPLES)
NUM_EXAMPLES = 3  # sentences of each sort in a card
NUM_SIMILAR = 3  # heads in a card


def overview(scene: Scene) -> list[dict]:
    """Draw the maps of all heads, the rule that names them, and a slot for the card.

    Without a survey, offer to make it, or say that it cannot be made.
    """
    survey = scene.survey
    if survey is None and has_sentences(scene.trace.direction):
        return [
            blocks.work(
                surveys.survey_work(scene.translator, scene.trace.direction).key,
                say("Survey {n} sentences", n=surveys.PAGE_SENTENCES),
                "These heads have not been surveyed yet. A survey measures every head on this project's own sentences.",
            )
        ]
    if survey is None:
        return [
            blocks.paragraph(
                "These heads have not been surveyed, and this project has no sentences in their source language."
            )
        ]
    rule = say(
        "A head gets a name if the lower end of the 95% interval exceeds the threshold and the value "
        "differs from random rows at a false discovery rate of 5%."
    )
    count = (
        say("{n} of this project's own sentences.", n=survey.sentences)
        if survey.corpus == OWN
        else say("{n} sentences ({corpus}).", n=survey.sentences, corpus=survey.corpus)
    )
    return [
        survey_block(survey, scene.trace),
        blocks.text(join((count, rule), " "), tone="note"),
        blocks.slot(CARD, blocks.note("Select a head to see its card.")),
    ]


def card(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """Draw the card of the head that the page names in data: "kind", "layer" and "head".

    Raises ValueError if the head is not in the survey.
    """
    kind, layer, head = read_head(scene.survey, data)
    kind_survey = scene.survey.kinds[kind]
    names = kind_survey.head_names()[layer][head]
    description = describe_head(kind_survey, layer, head, names)
    title = say("{kind}, layer {layer}, head {head}: {does}.", **labels.place(kind, layer, head), does=description)
    definitions = [[STATISTICS[name].title, STATISTICS[name].exact] for name in kind_survey.statistics]
    return [
        blocks.text(title),
        blocks.action(say("Open this head in the explorer"), blocks.to_head(kind.value, layer, head)),
        blocks.row(
            _statistics_table(scene, kind_survey, (kind, layer, head), names),
            blocks.stack(
                _example_sentences(scene, kind_survey, layer, head, names), _similar_heads(kind_survey, layer, head)
            ),
        ),
        blocks.folded(
            say("What is counted"), blocks.table(blocks.headings("statistic", "what is counted"), definitions)
        ),
    ]


def read_head(survey: DirectionSurvey | None, data: Mapping[str, object]) -> tuple[AttentionKind, int, int]:
    """Read kind, layer and head (from 0) that the page sends. Raises ValueError if they are not in the survey."""
    kind, layer, head = AttentionKind(data.get("kind")), data.get("layer"), data.get("head")
    if survey is None or kind not in survey.kinds:
        raise ValueError(f"there is no survey of {kind.value}")
    layers, heads = survey.kinds[kind].shape
    if not (is_integer(layer, 0, layers - 1) and is_integer(head, 0, heads - 1)):
        raise ValueError(f"{kind.value} has no layer {layer!r}, head {head!r}")
    return kind, layer, head


def measure_in_sentence(scene: Scene, kind: AttentionKind, layer: int, head: int) -> dict[str, cells.Measurement]:
    """Return the statistics of a head in the scene's sentence, by name."""
    maps = scene.trace.maps(kind)
    return cells.measure(kind, maps.weights[layer, head], maps.query_tokens, maps.key_tokens)


def _statistics_table(
    scene: Scene, survey: KindSurvey, place: tuple[AttentionKind, int, int], names: tuple[str, ...]
) -> dict:
    """Return a table of a head's statistics over the survey and in this sentence; those of its names are marked."""
    kind, layer, head = place
    in_sentence, rows = measure_in_sentence(scene, kind, layer, head), []
    for name, estimate in survey.statistics.items():
        statistic = STATISTICS[name]
        value, low, high = (part[layer, head] for part in (estimate.value, estimate.low, estimate.high))
        can_name = statistic.threshold is not None  # other statistics give a head no name
        rows.append(
            [
                statistic.title,
                blocks.bar(min(1.0, max(0.0, value)), f"{value:.3f}"),
                blocks.with_minus_sign(f"{low:.3f} – {high:.3f}"),
                f"{estimate.chance:.3f}" if can_name else "–",
                f"{statistic.threshold:.2f}" if can_name else "–",
                f"{in_sentence[name].values:.3f}" if name in in_sentence else "–",
            ]
        )
    return blocks.table(
        blocks.headings("statistic", "mean", "95% interval", "random rows", "threshold", "in this sentence"),
        rows,
        marked=[index for index, name in enumerate(survey.statistics) if name in names],
    )


def _example_sentences(scene: Scene, survey: KindSurvey, layer: int, head: int, names: tuple[str, ...]) -> dict:
    """Return a table of sentences in which a statistic of the head is largest, typical and smallest.

    The statistic is the first of the head's names that has examples; without one, that furthest above chance. Induction
    has none, since it is measured on random sequences.
    """
    above_chance = {
        name: survey.statistics[name].value[layer, head] - survey.statistics[name].chance for name in survey.examples
    }
    furthest = max(above_chance, key=above_chance.get, default=None)
    name = next((name for name in names if name in above_chance), furthest)
    if name is None or not has_sentences(scene.trace.direction):
        return blocks.note("There are no example sentences in this language.")
    lines = source_sentences(scene.trace.direction)
    rows = [
        [label, lines[line]]
        for sort, label in EXAMPLE_LABELS.items()
        for line in survey.examples[name][sort][layer, head][:NUM_EXAMPLES]
        if 0 <= line < len(lines)  # -1: no example
    ]
    caption = say(
        "Sentences of this project where it is highest, typical and lowest: {title}", title=STATISTICS[name].title
    )
    return blocks.table(["", say("sentence")], rows, caption=caption)


def _similar_heads(survey: KindSurvey, layer: int, head: int) -> dict:
    """Return a table of the heads of this kind with the most similar rows."""
    _, heads = survey.shape
    similarity = survey.similarity[layer * heads + head].copy()
    similarity[layer * heads + head] = -np.inf  # leaves out the head itself
    best = [int(i) for i in np.argsort(-similarity)[:NUM_SIMILAR] if np.isfinite(similarity[i])]
    return blocks.table(
        blocks.headings("heads like it", "same rows"),
        [[label_head(*divmod(i, heads)), blocks.bar(similarity[i])] for i in best],
        caption=say("1 minus the mean Jensen–Shannon divergence of their rows, in bits"),
    )


def label_head(layer: int, head: int) -> Words:
    """Return the label of a head; layer and head count from 0, and from 1 in the label."""
    return say("layer {layer}, head {head}", layer=layer + 1, head=head + 1)


def draw_head_map(values: np.ndarray, title: Words, *, limit: float, signed: bool, note: Words | str = "") -> dict:
    """Return a small heatmap of one number per head, values [layers, heads]; limit: the value at full colour."""
    names = {letter: [f"{letter}{i + 1}" for i in range(size)] for letter, size in zip("LH", values.shape)}
    return blocks.heatmap(values, title, limit=limit, signed=signed, note=note, rows=names["L"], columns=names["H"])


PANEL = Panel(
    "heads-survey",
    "All heads",
    "What does each head do in general? One sentence shows a pattern; a claim needs many.",
    say("Voita et al. 2019"),
    overview,
    actions={CARD: card},
    paper="https://arxiv.org/abs/1905.09418",
)
