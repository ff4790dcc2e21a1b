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
) -> go.Figure:
    """Named curves [n] over x [n] (None: 0, 1, 2 ..). marks: (x, words) as dotted vertical lines; limits: of y.

    Six parameters: the labels of the two axes among them.
    """
    lines = []
    for index, (name, values) in enumerate(curves.items()):
        where = np.arange(len(values)) if x is None else np.asarray(x)
        lines.append(
            go.Scatter(
                x=where,
                y=np.asarray(values, np.float32),
                name=name,
                mode="lines+markers",
                marker={"size": 4},
                line={"width": 2, "color": theme.HEAD_COLOURS[index % len(theme.HEAD_COLOURS)]},
                hovertemplate=join((x_title, " %{x}: %{y:.4f}<extra>", name, "</extra>")),
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
