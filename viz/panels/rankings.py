"""Which row of the tokens' matrix stands first: what was measured of this model over many sentences decides, and is
drawn."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import plotly.graph_objects as go

from attention_atlas.model.analysis.why import faithful
from attention_atlas.model.analysis.why.methods import attention, occlusion
from attention_atlas.model.analysis.why.registry import METHODS, OCCLUSIONS
from attention_atlas.model.trace.why.evidence import Evidence
from attention_atlas.model.trace.why.faithfulness import BAR, Faithfulness, Interval, first
from attention_atlas.model.translator import Translator
from attention_atlas.viz import theme
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.wire.matrix import EVIDENCE, two
from attention_atlas.viz.words import Words, say

DASHES = ("dash", "longdash", "dashdot", "longdashdot")
PASSED = 0.3  # of a row's order may stay when all weights are redrawn
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ranking:
    """order: the methods' names; folded: those of them that are shown only when asked for; reason: why so."""

    order: tuple[str, ...]
    folded: frozenset[str]
    reason: Words


def table(translator: Translator) -> Faithfulness | None:
    """What was measured of a checkpoint, of whatever weights, of the methods that there are; None if nothing was, or
    the file is damaged, which the log says."""
    try:
        found = translator.folder and faithful.read(translator.folder)
    except ValueError as error:
        log.warning("%s", error)
        return None
    return found and replace(found, methods=tuple(one for one in found.methods if one.method in METHODS))


def ranking_of(translator: Translator) -> Ranking:
    """With a table of these weights: rows as they agree with occlusion under the other replacement, if the best of them
    reaches the bar; else occlusion alone, the others folded in that order. Without one, all rows, occlusion first."""
    found, order = table(translator), tuple(METHODS)
    if found is None:
        reason = say(
            "Which row to trust has not been measured for this model. Until then {method} comes first: it is itself a "
            "measurement.",
            method=occlusion.MASK.title,
        )
        return Ranking(order, frozenset(), reason)
    if found.digest != translator.digest:
        reason = say(
            "Which row to trust was measured for other weights ({digest}), not for these. Until then {method} comes "
            "first: it is itself a measurement.",
            digest=found.digest,
            method=occlusion.MASK.title,
        )
        return Ranking(order, frozenset(), reason)
    ranked = [one.method for one in found.by_agreement()]
    order = (*ranked, *(name for name in order if name not in ranked))
    best = first(found, raw=attention.RAW.slug)
    if best is None:
        measured = tuple(method.slug for method in OCCLUSIONS)
        others = tuple(name for name in order if name not in measured)
        reason = say(
            "Occlusion is shown alone: over {n} sentences no method agreed with it well enough (a median rank "
            "correlation of 0.5, and 0.15 more than attention's).",
            n=found.sentences,
        )
        return Ranking((*measured, *others), frozenset(others), reason)
    reason = say(
        "{method} comes first: over {n} sentences it agreed best with occlusion by another replacement (median rank "
        "correlation {rho}).",
        method=METHODS[best.method].title,
        n=found.sentences,
        rho=f"{best.agreement.value:.2f}",
    )
    return Ranking(order, frozenset(), reason)


def measured(found: Faithfulness, lead: str) -> dict:
    """The table, in the rows' order; lead: the row that stands first."""
    ranked = found.by_agreement()
    rows = [
        [
            METHODS[one.method].title,
            EVIDENCE[METHODS[one.method].evidence],
            *map(_interval, (one.agreement, one.comprehensiveness, one.sufficiency)),
            two([*one.randomised.values()][-1]) if one.randomised else "–",
        ]
        for one in ranked
    ]
    return blocks.table(
        blocks.headings(
            "Method",
            "kind",
            "agreement with occlusion",
            "comprehensiveness, nats",
            "sufficiency, nats",
            "all weights redrawn",
        ),
        rows,
        marked=[i for i, one in enumerate(ranked) if one.method == lead],
        caption=say(
            "Measured over {n} sentences, with 95% intervals. Agreement: median rank correlation with "
            "occlusion by another replacement. Comprehensiveness (large is good) and sufficiency (small is "
            "good): what is lost without the best words, and with them alone, less a random order's. Redrawn: "
            "how much of the row stays when the model knows nothing; what stays was never about the model.",
            n=found.sentences,
        ),
    )


def agreements(found: Faithfulness) -> dict:
    """How well each row agrees with occlusion, the best at the top, with its interval and the bar."""
    known = [one for one in found.by_agreement() if one.agreement is not None]
    titles = [METHODS[one.method].title for one in known]
    picture = go.Figure()
    for colour, evidence in zip(theme.HEAD_COLOURS, Evidence):
        at = [i for i, one in enumerate(known) if METHODS[one.method].evidence is evidence]
        intervals = [known[i].agreement for i in at]
        picture.add_scatter(
            x=[one.value for one in intervals],
            y=at,
            name=EVIDENCE[evidence],
            mode="markers",
            marker={"color": colour, "size": 9},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [one.high - one.value for one in intervals],
                "arrayminus": [one.value - one.low for one in intervals],
                "thickness": 1.5,
            },
        )
    picture.add_vline(BAR, line={"color": theme.FIGURE_TEXT, "dash": "dot", "width": 1})
    picture.update_layout(
        template="none",
        **theme.figure_layout(
            xaxis={"title": {"text": say("agreement with occlusion")}, **theme.AXIS},
            yaxis={
                "tickvals": list(range(len(known))),
                "ticktext": titles,
                "automargin": True,
                "range": [len(known) - 0.5, -0.5],
                **theme.AXIS,
            },
            margin={"l": 8, "r": 8, "t": 8, "b": 44},
            legend={"orientation": "h", "y": -0.28, "x": 0},
        ),
    )
    return blocks.figure(
        picture,
        height=120 + 26 * len(known),
        width=620,
        rows=titles,
        label=say("How well each row agrees with occlusion"),
    )


def drawn(name: str) -> dict:
    """A method's line, the same in every picture. Rows that do not look at the token are dashed, each in its own way:
    where two of them are equal, both are seen."""
    dashed = [one.slug for one in METHODS.values() if one.class_agnostic]
    dash = DASHES[dashed.index(name) % len(DASHES)] if name in dashed else "solid"
    return {"color": theme.HEAD_COLOURS[list(METHODS).index(name) % len(theme.HEAD_COLOURS)], "width": 2, "dash": dash}


def cascade(found: Faithfulness) -> dict:
    """How much of each row's order stays when the weights are redrawn, from the top down."""
    picture = go.Figure()
    for one in found.methods:
        method = METHODS[one.method]
        picture.add_scatter(
            x=list(range(len(found.stages) + 1)),
            y=[1.0, *(one.randomised[stage] for stage in found.stages)],
            name=method.title,
            mode="lines+markers",
            marker_size=4,
            line=drawn(method.slug),
        )
    picture.add_hline(PASSED, line={"color": theme.FIGURE_TEXT, "dash": "dot", "width": 1})
    picture.update_xaxes(dtick=1)
    titles = say("parts redrawn"), say("rank correlation with itself")
    return of_all_rows(picture, titles, say("What stays of each row when weights are redrawn"))


def of_all_rows(picture: go.Figure, titles: tuple[Words, Words], label: Words) -> dict:
    """A picture with a line for each row. titles: of its axes."""
    picture.update_layout(
        template="none",
        **theme.figure_layout(
            xaxis={"title": {"text": titles[0]}, **theme.AXIS},
            yaxis={"title": {"text": titles[1]}, **theme.AXIS},
            margin={"l": 44, "r": 8, "t": 8, "b": 44},
            legend={"orientation": "h", "y": -0.22, "x": 0},
        ),
    )
    return blocks.figure(picture, height=430, width=620, label=label)


def _interval(found: Interval | None) -> str:
    return "–" if found is None else f"{two(found.value)} [{two(found.low)}, {two(found.high)}]"
