"""Does it hold? Words taken away, and left alone, in the order of each row; and the same over many sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import plotly.graph_objects as go

from model.analysis.why.faithful import Trial, trials
from model.analysis.why.methods import occlusion
from model.analysis.why.registry import METHODS
from model.trace.why.faithfulness import Faithfulness, Interval
from viz import theme
from viz.ui.lab import belief
from viz.ui.lab.controls import Choice
from viz.ui.lab.panel import Blocks, Panel, Scene
from viz.ui.language import label
from viz.wire import blocks
from viz.wire.matrix import EVIDENCE, two
from viz.words import Words, say

MEAN, MASK = "mean", "mask"
RANDOM = say("random order")
HEIGHT = 340  # pixels
PATIENCE = 1.0  # seconds after which curves are shown that are not all of them


def holds(scene: Scene, how: str) -> Iterator[Blocks]:
    """The curves as they come, method by method, then the table of many sentences."""
    by = occlusion.MASK if how == MASK else occlusion.MEAN
    done: list[Trial] = []
    offline, shown = _offline(scene), time.monotonic()
    for trial in trials(scene.case, by):
        done.append(trial)
        more = len(METHODS) - len(done)  # random order has the place of the occlusion that would judge itself
        if not more:
            yield [*_curves(done), *offline]
        elif time.monotonic() - shown > PATIENCE:
            shown = time.monotonic()
            yield [*_curves(done), blocks.text(say("{n} more orders are still being tried.", n=more), tone="note"),
                   *offline]
    if not done:
        yield [blocks.text(say("One word or two cannot be put into a telling order: there is nothing to test here."),
                           tone="note"), *offline]


def _curves(done: list[Trial]) -> Blocks:
    chance = done[0]
    rows = [_row(trial, chance) for trial in done]
    return [
        blocks.row(_figure(done, "left", say("The best words taken away first"), say("words taken away, best first")),
                   _figure(done, "kept", say("The best words alone"), say("best words left, all others taken away"))),
        blocks.table(
            (say("Order"), say("kind"), say("fall"), say("rise")), rows,
            caption=say("Measured on this sentence, in nats: how much further than in random order the number falls "
                        "when the row's best words go first, and how much further it rises when they alone are left; "
                        "both are means over the curve. Larger is better."))]


def _row(trial: Trial, chance: Trial) -> list:
    name, kind = (RANDOM, "") if trial.method is None else (
        METHODS[trial.method].name, EVIDENCE[METHODS[trial.method].evidence])
    fall, rise = (float(np.mean(mine) - np.mean(base)) for mine, base in (
        (chance.left, trial.left), (trial.kept, chance.kept)))
    return [name, kind, blocks.number(fall), blocks.number(rise)] if trial is not chance else [name, kind, "–", "–"]


def _figure(done: list[Trial], which: str, title: Words, below: Words) -> dict:
    picture = go.Figure()
    for i, trial in enumerate(done):
        chance = trial.method is None
        picture.add_scatter(
            x=list(trial.counts), y=[round(value, 4) for value in getattr(trial, which).tolist()],
            name=RANDOM if chance else METHODS[trial.method].name, mode="lines+markers", marker_size=4,
            line={"color": theme.FIGURE_TEXT if chance else theme.HEAD_COLOURS[(i - 1) % len(theme.HEAD_COLOURS)],
                  "width": 2, "dash": "dot" if chance else "solid"})
    axis = {"gridcolor": "rgba(128,128,128,0.2)", "zerolinecolor": "rgba(128,128,128,0.6)"}
    picture.update_layout(template="none", **theme.figure_layout(
        xaxis={"title": {"text": below}, **axis}, yaxis={"title": {"text": say("nats")}, **axis},
        margin={"l": 44, "r": 8, "t": 8, "b": 44}, showlegend=which == "left",
        legend={"orientation": "h", "y": -0.22, "x": 0}))
    return blocks.figure(picture, height=HEIGHT + (90 if which == "left" else 0), width=620, label=title)


def _offline(scene: Scene) -> Blocks:
    """The table of many sentences, where these weights have one; else why not."""
    found = belief.table(scene.translator)
    if found is None or found.digest != scene.trace.digest:
        return [blocks.text(belief.unmeasured(found, scene.translator), tone="note")]
    lead = belief.leading(scene.translator)
    return [blocks.text(lead.reason), _table(found, lead.order[0])]


def _table(found: Faithfulness, lead: str) -> dict:
    rows = []
    for one in found.methods:
        method, last = METHODS[one.method], next(reversed(one.randomised.values()), None)
        rows.append([method.name, EVIDENCE[method.evidence], _interval(one.agreement), _interval(one.comprehensiveness),
                     _interval(one.sufficiency), "–" if last is None else two(last)])
    return blocks.table(
        (say("Method"), say("kind"), say("agreement with occlusion"), say("comprehensiveness, nats"),
         say("sufficiency, nats"), say("all weights redrawn")), rows,
        marked=[i for i, one in enumerate(found.methods) if one.method == lead],
        caption=say("Measured over {n} sentences, with 95 % intervals. Agreement: median rank correlation with "
                    "occlusion by another replacement. Comprehensiveness (large is good) and sufficiency (small is "
                    "good): what is lost without the best words, and with them alone, less a random order's. Redrawn: "
                    "how much of the row stays when the model knows nothing; what stays was never about the model.",
                    n=found.sentences))


def _interval(found: Interval | None) -> str:
    return "–" if found is None else f"{two(found.value)} [{two(found.low)}, {two(found.high)}]"


PANEL = Panel(
    "why-holds", label("Does it hold?"), say(
        "Take the words away in the order of each row. If the row is right, the number falls sooner than in random "
        "order, and its best words alone bring it back."),
    say("DeYoung et al. 2020"), holds, paper="https://arxiv.org/abs/1911.03429",
    controls=(Choice(label("Words are taken away by"), {MEAN: label("the mean embedding"), MASK: label("masking")},
                     MEAN),))
