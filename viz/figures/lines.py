"""Queries and keys as two columns of tokens, joined by lines as strong as the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from model.trace import is_number
from model.trace.kinds import Kind
from model.trace.scores import ScoreMap
from model.trace.translation import TranslationTrace
from viz import theme
from viz.figures.still import Figure
from viz.maps import labels
from viz.maps.reduce import Combine, View, score_map

STRENGTHS = 10  # line widths and opacities told apart


def plot_lines(trace: TranslationTrace, view: View | Kind | None = None, *, coverage: float = 0.7) -> go.Figure:
    """The map that a view shows as lines; with SINGLE and `heads`, each of them in its own colour.

    coverage: for each row, only the fewest edges that hold this share (0 to 1] of its weight are drawn. ValueError
    for another coverage, or if the trace has no such layer or head.
    """
    view = View.meant(view)
    if not (is_number(coverage) and 0 < coverage <= 1):
        raise ValueError(f"coverage is a share above 0 and up to 1, found {coverage!r}")
    views = view.apart(trace)
    figure = Figure(
        layout=theme.figure_layout(
            xaxis={
                "range": [-0.35, 1.35],
                "tickmode": "array",
                "tickvals": [0, 1],
                "side": "top",
                "showgrid": False,
                "zeroline": False,
            },
            yaxis={"visible": False, "autorange": "reversed"},
            margin={"l": 8, "r": 8, "t": 40, "b": 8},
        )
    )
    for one, colour in zip(views, theme.HEAD_COLOURS):
        found = score_map(trace, one)
        name = f"layer {one.layer + 1}, head {one.head + 1}" if one.combine == Combine.SINGLE else found.unit
        for i, line in enumerate(_strands(edges(found, coverage), colour)):
            figure.add_trace(line.update(name=name, legendgroup=name, showlegend=i == 0))
    for side, names, anchor in ((0, found.rows, "right"), (1, found.columns, "left")):
        for i, name in enumerate(names):
            figure.add_annotation(
                x=side,
                y=i,
                text=labels.escape(labels.shorten(name)),
                showarrow=False,
                xanchor=anchor,
                xshift=-6 if side == 0 else 6,
            )
    figure.update_xaxes(ticktext=[found.row_title, found.column_title])
    return figure


def edges(score_map: ScoreMap, coverage: float) -> list[tuple[int, int, float]]:
    """(row, column, value) of the fewest cells of each row that hold `coverage` of its sum, strongest first; equal
    ones from left to right. A blank row has none."""
    found = []
    for row, values in enumerate(score_map.values.astype(np.float64)):
        if np.isnan(values).any():
            continue
        covered, total = 0.0, values.sum()
        for column in np.argsort(-values, kind="stable"):
            if covered >= coverage * total - 1e-9 or values[column] <= 0:
                break
            found.append((row, int(column), float(values[column])))
            covered += values[column]
    return found


def _strands(found: Sequence[tuple[int, int, float]], colour: str) -> list[go.Scatter]:
    """One trace for each of ten strengths: a few traces however many edges there are."""
    lines = []
    for strength in range(STRENGTHS):
        chosen = [
            (row, column) for row, column, value in found if min(STRENGTHS - 1, int(value * STRENGTHS)) == strength
        ]
        if chosen:
            share = (strength + 0.5) / STRENGTHS
            lines.append(
                go.Scatter(
                    x=[0, 1, None] * len(chosen),
                    y=[y for row, column in chosen for y in (row, column, None)],
                    mode="lines",
                    hoverinfo="skip",
                    opacity=0.12 + 0.8 * share,
                    line={"color": colour, "width": 0.6 + 4.4 * share},
                )
            )
    return lines
