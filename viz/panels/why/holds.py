"""The panel "Does it hold?": faithfulness of the attribution methods on this sentence and over many.

Words are removed, or kept alone, in the order of each method (DeYoung et al. 2020).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import plotly.graph_objects as go

from attention_atlas.model.analysis.why.faithfulness import MIN_WORDS, Trial, run_trials
from attention_atlas.model.analysis.why.methods import METHODS, methods_of, occlusion
from attention_atlas.model.trace.why.evidence import Evidence
from attention_atlas.model.trace.why.faithfulness import BAR, Faithfulness, Interval
from attention_atlas.viz import theme
from attention_atlas.viz.panels import rankings
from attention_atlas.viz.panels.panel import Blocks, Choice, Panel
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.matrix import EVIDENCE
from attention_atlas.viz.words import Words, say

MEAN, MASK = "mean", "mask"
RANDOM = say("random order")
DASHES = ("dash", "longdash", "dashdot", "longdashdot")
# A method passes the randomisation test if its order, once all weights are redrawn, has at most this rank correlation
# with its order in the trained model.
PASSED = 0.3


def holds(scene: Scene, how: str) -> Iterator[Blocks]:
    """Draw the curves as they are computed, slow methods last, above the stored measurements over many sentences."""
    by = occlusion.MASK if how == MASK else occlusion.MEAN
    done: list[Trial] = []
    offline = _offline(scene)

    def progress() -> Blocks:
        # As many orders as methods: the occlusion that removes words as this test does is left out, and the random
        # order is added.
        more = len(methods_of(scene.translator.model)) - len(done)
        note = [blocks.note("{n} more orders are still being tried.", n=more)] if more else []
        return [*_curves(done), *note, *offline]

    if (~scene.words_case.columns.special).sum() >= MIN_WORDS:
        yield progress()  # shows the stored measurements at once
    for batch in run_trials(scene.words_case, by):
        done += batch
        yield progress()
    if not done:
        yield [
            blocks.note("With one or two words no order is informative, so there is nothing to test."),
            *offline,
        ]


def _curves(done: list[Trial]) -> Blocks:
    """Draw the curves of both tests and a table of their means. The first trial is the random order."""
    rows = [_row(trial, done[0]) for trial in done]
    return [
        blocks.row(
            _figure(done, "without", say("Best words removed first"), say("words removed, best first")),
            _figure(done, "alone", say("Only the best words"), say("best words kept, all others removed")),
        ),
        blocks.table(
            blocks.headings("Order", "kind", "fall", "rise"),
            rows,
            caption=say(
                "Measured on this sentence, in nats: how much further than in random order the number falls "
                "when the row's best words are removed first, and how much further it rises when only they "
                "are kept; both are means over the curve. Larger is better."
            ),
        ),
    ]


def _row(trial: Trial, chance: Trial) -> list:
    """Return the row of a trial, compared with the random order."""
    if trial is chance:
        return [RANDOM, "", "–", "–"]
    method = METHODS[trial.method]
    fall, rise = np.mean(chance.without) - np.mean(trial.without), np.mean(trial.alone) - np.mean(chance.alone)
    return [method.title, EVIDENCE[method.evidence], blocks.number(float(fall)), blocks.number(float(rise))]


def _figure(done: list[Trial], which: str, title: Words, x_title: Words) -> dict:
    """Return a figure of one test. which: the field of Trial with its curve, "without" or "alone"."""
    picture = go.Figure()
    for trial in done:
        _add_line(picture, trial.method, list(trial.counts), [round(n, 4) for n in getattr(trial, which).tolist()])
    return _methods_figure(picture, (x_title, say("nats")), title)


def _offline(scene: Scene) -> Blocks:
    """Draw the stored measurements of these weights, with the reason for the order of methods; without any, only say
    which order is used and why."""
    table, ranking = rankings.read_table(scene.translator), rankings.ranking_of(scene.translator)
    if table is None or table.digest != scene.trace.digest:
        return [blocks.text(ranking.reason, tone="note")]
    pictures = [_agreement_figure(table)]
    if table.stages:
        pictures = [
            blocks.row(*pictures, _randomisation_figure(table)),
            blocks.note(
                "Weights are randomised from the last decoder layer down to the embeddings. A dashed row "
                "ignores the token that was written, so it cannot pass."
            ),
        ]
    return [blocks.text(ranking.reason), *pictures, _faithfulness_block(table, ranking.order[0])]


def _faithfulness_block(table: Faithfulness, lead: str) -> dict:
    """Return the table of measurements, best method first. lead: the method whose row is marked."""
    ranked = table.by_agreement()
    methods = [METHODS[scores.method] for scores in ranked]
    redrawn = [
        blocks.two_decimals([*scores.randomised.values()][-1]) if scores.randomised else "–" for scores in ranked
    ]
    return blocks.columns(
        (say("Method"), [method.title for method in methods]),
        (say("kind"), [EVIDENCE[method.evidence] for method in methods]),
        (say("agreement with occlusion"), [_interval(scores.agreement) for scores in ranked]),
        (say("comprehensiveness, nats"), [_interval(scores.comprehensiveness) for scores in ranked]),
        (say("sufficiency, nats"), [_interval(scores.sufficiency) for scores in ranked]),
        (say("all weights randomised"), redrawn),
        marked=[i for i, scores in enumerate(ranked) if scores.method == lead],
        caption=say(
            "Measured over {n} sentences, with 95% intervals. Agreement: median rank correlation with "
            "occlusion by another replacement. Comprehensiveness (large is good) and sufficiency (small "
            "is good): what is lost without the best words, and with only them, minus the same for a "
            "random order. Randomised: how much of the row remains when the model knows nothing; that "
            "part was never about the model.",
            n=table.sentences,
        ),
    )


def _agreement_figure(table: Faithfulness) -> dict:
    """Return a figure of each method's agreement with occlusion, best at the top, with intervals and the bar."""
    known = [scores for scores in table.by_agreement() if scores.agreement is not None]
    titles = [METHODS[scores.method].title for scores in known]
    picture = go.Figure()
    for colour, mark, evidence in zip(theme.HEAD_COLOURS, theme.MARKS, Evidence):
        at = [i for i, scores in enumerate(known) if METHODS[scores.method].evidence is evidence]
        intervals = [known[i].agreement for i in at]
        picture.add_scatter(
            x=[interval.value for interval in intervals],
            y=at,
            name=EVIDENCE[evidence],
            mode="markers",
            marker={"color": colour, "size": 9, "symbol": mark},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [interval.high - interval.value for interval in intervals],
                "arrayminus": [interval.value - interval.low for interval in intervals],
                "thickness": 1.5,
            },
        )
    picture.add_vline(BAR, line={"color": theme.FIGURE_TEXT, "dash": "dot", "width": 1})
    axes = (
        {"title": {"text": say("agreement with occlusion")}},
        {
            "tickvals": list(range(len(known))),
            "ticktext": titles,
            "automargin": True,
            "range": [len(known) - 0.5, -0.5],
        },
    )
    _lay_out(picture, *axes, left=8, legend=-0.28)
    label = say("How well each row agrees with occlusion")
    return blocks.figure(picture, height=120 + 26 * len(known), width=620, rows=titles, label=label)


def _lay_out(picture: go.Figure, xaxis: dict, yaxis: dict, *, left: int, legend: float) -> None:
    """Set the axes of a figure. left: its margin; legend: its height, as a fraction of the plot's,
    above (or if negative below) the x axis."""
    picture.update_layout(
        template="none",
        **theme.figure_layout(
            xaxis={**xaxis, **theme.AXIS},
            yaxis={**yaxis, **theme.AXIS},
            margin={"l": left, "r": 8, "t": 8, "b": 44},
            legend={"orientation": "h", "y": legend, "x": 0},
        ),
    )


def _add_line(picture: go.Figure, method: str | None, x: list[int], y: list[float]) -> None:
    """Add the line of a method, in the same style in every figure; None: the random order.

    Methods that ignore the written token are dashed, each differently, so that two equal lines are both visible.
    """
    if method is None:
        name, colour, dash, mark = RANDOM, theme.FIGURE_TEXT, "dot", "circle-open"
    else:
        dashed = [known.slug for known in METHODS.values() if known.class_agnostic]
        index = list(METHODS).index(method)
        name, mark = METHODS[method].title, theme.MARKS[index]
        colour = theme.HEAD_COLOURS[index % len(theme.HEAD_COLOURS)]
        dash = DASHES[dashed.index(method) % len(DASHES)] if method in dashed else "solid"
    line = {"color": colour, "width": 2, "dash": dash}
    marker = {"size": 6, "symbol": mark}
    picture.add_scatter(x=x, y=y, name=name, mode="lines+markers", marker=marker, line=line)


def _randomisation_figure(table: Faithfulness) -> dict:
    """Return a figure of how much of each method's order remains as more weights are redrawn (Adebayo et al. 2018)."""
    picture = go.Figure()
    for scores in table.methods:
        remaining = [1.0, *(scores.randomised[stage] for stage in table.stages)]
        _add_line(picture, scores.method, list(range(len(remaining))), remaining)
    picture.add_hline(PASSED, line={"color": theme.FIGURE_TEXT, "dash": "dot", "width": 1})
    picture.update_xaxes(dtick=1)
    titles = say("parts randomised"), say("rank correlation with itself")
    return _methods_figure(picture, titles, say("What remains of each row when weights are randomised"))


def _methods_figure(picture: go.Figure, titles: tuple[Words, Words], label: Words) -> dict:
    """Return the block of a figure with a line for each method. titles: of the x and y axes."""
    _lay_out(picture, *({"title": {"text": title}} for title in titles), left=44, legend=-0.22)
    return blocks.figure(picture, height=430, width=620, label=label)


def _interval(interval: Interval | None) -> str:
    return "–" if interval is None else blocks.with_interval(interval.value, interval.low, interval.high)


PANEL = Panel(
    "why-holds",
    "Does it hold?",
    "Does a method find the right words? Remove words in its order and watch the number fall.",
    say("DeYoung et al. 2020"),
    holds,
    of_any_network=True,
    paper="https://arxiv.org/abs/1911.03429",
    controls=(Choice(say("Remove words by"), {MEAN: say("the mean embedding"), MASK: say("masking")}, MEAN),),
    method=say("If a row is right, the number falls sooner than in random order, and its best words alone restore it."),
)
