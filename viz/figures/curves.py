"""Plotly figures of curves, of a curve fitted to points, and of rotating pairs of dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from attention_atlas.viz import theme
from attention_atlas.viz.words import join, say

__all__ = ["plot_curves", "plot_regression", "plot_rotation"]

GRID = {"gridcolor": "rgba(128,128,128,0.18)", "zerolinecolor": "rgba(128,128,128,0.5)", "automargin": True}
LEGEND = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0.0}


def plot_curves(
    curves: Mapping[str, np.ndarray],
    *,
    x: np.ndarray | None = None,
    x_title: str = "",
    y_title: str = "",
    marks: Sequence[tuple[float, str]] = (),
    limits: tuple[float, float] | None = None,
    logarithmic: bool = False,
) -> go.Figure:
    """Draw named curves [n].

    x            [n]; None: 0, 1, 2 ..
    marks        (x, text) of dotted vertical lines
    limits       the range of y
    logarithmic  whether x, integers, has a logarithmic axis, on which 0 is drawn at 0.5
    """
    where = np.arange(len(next(iter(curves.values()), ()))) if x is None else np.asarray(x)
    lines = []
    for index, (name, values) in enumerate(curves.items()):
        lines.append(
            go.Scatter(
                x=np.maximum(where, 0.5) if logarithmic else where,
                customdata=where if logarithmic else None,
                y=np.asarray(values, np.float32),
                name=name,
                mode="lines+markers",
                marker={"size": 4},
                line={
                    "width": 2,
                    "color": theme.HEAD_COLOURS[index % len(theme.HEAD_COLOURS)],
                    "dash": theme.HEAD_DASHES[index % len(theme.HEAD_DASHES)],
                },
                hovertemplate=join(
                    (x_title, " %{customdata}" if logarithmic else " %{x}", ": %{y:.4f}<extra>", name, "</extra>")
                ),
            )
        )
    layout = theme.figure_layout(
        xaxis={"title": {"text": x_title}, **GRID},
        yaxis={"title": {"text": y_title}, **GRID},
        showlegend=len(curves) > 1,
        legend=LEGEND,
        top=28 if len(curves) > 1 else 8,
    )
    if logarithmic:
        layout["xaxis"] |= {"type": "log", **_ticks(where)}
    if limits:
        layout["yaxis"]["range"] = list(limits)
    picture = go.Figure(lines, layout)
    for index, (at, words) in enumerate(marks):
        colour = theme.HEAD_COLOURS[index % len(theme.HEAD_COLOURS)]
        picture.add_vline(
            x=at,
            line={"dash": "dot", "width": 1.5, "color": colour},
            annotation={"text": words, "font": {"size": 11}, "yanchor": "top", "textangle": -90},
        )
    return picture


def _ticks(x: np.ndarray) -> dict:
    """On a logarithmic axis: both ends, and the powers of ten that are well apart from them."""
    first, last = max(float(x.min()), 0.5), max(float(x.max()), 0.5)
    powers = [10.0**power for power in range(10) if 1.6 * first < 10.0**power < last / 1.6]
    names = [join([0 if at < 1 else round(at)]) for at in (first, *powers, last)]
    return {"tickvals": [first, *powers, last], "ticktext": names}


def plot_regression(
    keys: np.ndarray, values: np.ndarray, queries: np.ndarray, fitted: np.ndarray, true: np.ndarray
) -> go.Figure:
    """Draw points (keys, values) [point], and over queries [query] the fitted curve (gaps at NaN) and the true one."""
    dots = {"size": 7, "color": theme.HEAD_COLOURS[7]}
    dotted = {"width": 1.5, "dash": "dot", "color": theme.HEAD_COLOURS[5]}
    solid = {"width": 2.5, "color": theme.HEAD_COLOURS[0]}
    traces = [
        go.Scatter(x=keys, y=values, mode="markers", marker=dots, name=say("points")),
        go.Scatter(x=queries, y=true, mode="lines", line=dotted, name=say("truth")),
        go.Scatter(x=queries, y=fitted, mode="lines", line=solid, name=say("fit")),
    ]
    figure = go.Figure(
        traces,
        theme.figure_layout(
            xaxis={"title": {"text": "x"}, **GRID},
            yaxis={"title": {"text": "y"}, **GRID},
            legend=LEGEND,
            top=28,
        ),
    )
    return figure.update_traces(hovertemplate="%{x:.3f}: %{y:.4f}")


def plot_rotation(points: np.ndarray, shift: int, *, name: str) -> go.Figure:
    """Draw one pair of dimensions of the positional encoding as points on a circle.

    Arrows from a few positions to those `shift` further on show that all are rotated by the same angle.

    points: [position, 2], sine and cosine; name: the name of the pair, for the axes.
    """
    points = np.asarray(points, np.float64)
    circle = np.linspace(0, 2 * np.pi, 181)
    faint, strong, ring = theme.HEAD_COLOURS[4], theme.HEAD_COLOURS[5], {"color": "rgba(128,128,128,0.35)", "width": 1}
    traces = [
        go.Scatter(x=np.cos(circle), y=np.sin(circle), mode="lines", hoverinfo="skip", line=ring),
        go.Scatter(
            x=points[:, 1],
            y=points[:, 0],
            mode="markers+text",
            text=[str(p) for p in range(len(points))],
            textposition="top center",
            textfont={"size": 10},
            marker={"size": 7, "color": faint},
            hovertemplate=join(
                (say("position"), " %{text}<br>", say("cosine"), " %{x:.4f}, ", say("sine"), " %{y:.4f}<extra></extra>")
            ),
        ),
    ]
    grid = {"zerolinecolor": "rgba(128,128,128,0.4)", "gridcolor": "rgba(128,128,128,0.12)", "automargin": True}
    axis = {"range": [-1.25, 1.25], **grid, "constrain": "domain"}
    picture = go.Figure(
        traces,
        theme.figure_layout(
            xaxis={"title": {"text": join((say("cosine"), name), ", ")}, **axis},
            yaxis={"title": {"text": join((say("sine"), name), ", ")}, **axis, "scaleanchor": "x"},
            showlegend=False,
        ),
    )
    look = {"showarrow": True, "arrowhead": 2, "arrowwidth": 1.5, "arrowcolor": strong, "standoff": 5}
    look |= {"startstandoff": 5, "text": "", "xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
    starts = len(points) - shift
    for start in range(0, starts, max(1, starts // 3)) if shift and starts > 0 else ():
        (y, x), (from_y, from_x) = points[start + shift], points[start]
        picture.add_annotation(x=x, y=y, ax=from_x, ay=from_y, **look)
    return picture
