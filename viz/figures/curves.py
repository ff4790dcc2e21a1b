"""Curves over positions, offsets or widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz import theme
from viz.words import join


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
    """Named curves [n] over x [n] (None: 0, 1, 2 ..). marks: (x, words) as dotted vertical lines; limits: of y;
    logarithmic: the axis of x, whole numbers, where 0 stands at 0.5.
    """
    lines = []
    for index, (name, values) in enumerate(curves.items()):
        where = np.arange(len(values)) if x is None else np.asarray(x)
        lines.append(
            go.Scatter(
                x=np.maximum(where, 0.5) if logarithmic else where,
                customdata=where if logarithmic else None,
                y=np.asarray(values, np.float32),
                name=name,
                mode="lines+markers",
                marker={"size": 4},
                line={"width": 2, "color": theme.HEAD_COLOURS[index % len(theme.HEAD_COLOURS)]},
                hovertemplate=join(
                    (x_title, " %{customdata}" if logarithmic else " %{x}", ": %{y:.4f}<extra>", name, "</extra>")
                ),
            )
        )
    grid = {"gridcolor": "rgba(128,128,128,0.18)", "zerolinecolor": "rgba(128,128,128,0.5)", "automargin": True}
    layout = theme.figure_layout(
        xaxis={"title": {"text": x_title}, **grid},
        yaxis={"title": {"text": y_title}, **grid},
        showlegend=len(curves) > 1,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0.0},
        margin={"l": 8, "r": 8, "t": 28 if len(curves) > 1 else 8, "b": 8},
    )
    if logarithmic:
        layout["xaxis"] |= {"type": "log", **_ticks(np.arange(len(where)) if x is None else np.asarray(x))}
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
    names = [f"{0 if at < 1 else at:.0f}" for at in (first, *powers, last)]
    return {"tickvals": [first, *powers, last], "ticktext": names}
