"""Does it hold? Words taken away, and left alone, in the order of each row; and the same over many sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import plotly.graph_objects as go

from attention_atlas.model.analysis.why.faithful import LEAST_WORDS, Trial, trials
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.analysis.why.registry import METHODS
from attention_atlas.viz import theme
from attention_atlas.viz.panels import rankings
from attention_atlas.viz.panels.controls import Choice
from attention_atlas.viz.panels.panel import Blocks, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.matrix import EVIDENCE
from attention_atlas.viz.words import Words, say

MEAN, MASK = "mean", "mask"
RANDOM = say("random order")


def holds(scene: Scene, how: str) -> Iterator[Blocks]:
    """The curves as they come, those of slow methods last, above the table of many sentences, known at once."""
    by = occlusion.MASK if how == MASK else occlusion.MEAN
    done: list[Trial] = []
    offline = _offline(scene)

    def reached() -> Blocks:
        more = len(METHODS) - len(done)  # random order has the place of the occlusion that would judge itself
        note = [blocks.note("{n} more orders are still being tried.", n=more)] if more else []
        return [*_curves(done), *note, *offline]

    if (~scene.case.columns.special).sum() >= LEAST_WORDS:
        yield reached()  # the places of the curves, and what was measured over many sentences: there at once
    for some in trials(scene.case, by):
        done += some
        yield reached()
    if not done:
        yield [
            blocks.note("One or two words cannot be put into an informative order: there is nothing to test here."),
            *offline,
        ]


def _curves(done: list[Trial]) -> Blocks:
    rows = [_row(trial, done[0]) for trial in done]
    return [
        blocks.row(
            _figure(done, "left", say("The best words taken away first"), say("words taken away, best first")),
            _figure(done, "kept", say("The best words alone"), say("best words left, all others taken away")),
        ),
        blocks.table(
            blocks.headings("Order", "kind", "fall", "rise"),
            rows,
            caption=say(
                "Measured on this sentence, in nats: how much further than in random order the number falls "
                "when the row's best words go first, and how much further it rises when they alone are left; "
                "both are means over the curve. Larger is better."
            ),
        ),
    ]


def _row(trial: Trial, chance: Trial) -> list:
    if trial is chance:
        return [RANDOM, "", "–", "–"]
    method = METHODS[trial.method]
    fall, rise = np.mean(chance.left) - np.mean(trial.left), np.mean(trial.kept) - np.mean(chance.kept)
    return [method.title, EVIDENCE[method.evidence], blocks.number(float(fall)), blocks.number(float(rise))]


def _figure(done: list[Trial], which: str, title: Words, below: Words) -> dict:
    picture = go.Figure()
    for trial in done:
        chance = trial.method is None
        picture.add_scatter(
            x=list(trial.counts),
            y=[round(value, 4) for value in getattr(trial, which).tolist()],
            name=RANDOM if chance else METHODS[trial.method].title,
            mode="lines+markers",
            marker_size=4,
            line={"color": theme.FIGURE_TEXT, "width": 2, "dash": "dot"} if chance else rankings.drawn(trial.method),
        )
    return rankings.of_all_rows(picture, (below, say("nats")), title)


def _offline(scene: Scene) -> Blocks:
    """What was measured over many sentences, where these weights have such a table; else why not."""
    found, ranking = rankings.table(scene.translator), rankings.ranking_of(scene.translator)
    if found is None or found.digest != scene.trace.digest:
        return [blocks.text(ranking.reason, tone="note")]
    pictures = [rankings.agreements(found)]
    if found.stages:
        pictures = [
            blocks.row(*pictures, rankings.cascade(found)),
            blocks.note(
                "Weights are redrawn from the last decoder layer down to the embeddings. A dashed row does not look at "
                "the token that was written: it cannot pass."
            ),
        ]
    return [blocks.text(ranking.reason), *pictures, rankings.measured(found, ranking.order[0])]


PANEL = Panel(
    "why-holds",
    say("Does it hold?"),
    say(
        "Take the words away in the order of each row. If the row is right, the number falls sooner than in random "
        "order, and its best words alone bring it back."
    ),
    say("DeYoung et al. 2020"),
    holds,
    paper="https://arxiv.org/abs/1911.03429",
    controls=(Choice(say("Words are taken away by"), {MEAN: say("the mean embedding"), MASK: say("masking")}, MEAN),),
)
