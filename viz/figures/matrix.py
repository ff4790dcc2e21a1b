"""Plotly figure of a matrix, such as positions by dimensions, positions by positions, or a mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from attention_atlas.viz import theme
from attention_atlas.viz.maps import labels
from attention_atlas.viz.words import join, say

# Transparent at zero, for light and dark pages.
DIVERGING = ((0.0, "rgba(29, 95, 191, 1)"), (0.5, "rgba(128, 128, 128, 0.04)"), (1.0, "rgba(206, 92, 0, 1)"))
SEQUENTIAL = ((0.0, "rgba(29, 95, 191, 0.03)"), (1.0, "rgba(29, 95, 191, 1)"))


def plot_matrix(
    values: np.ndarray,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    row_title: str = "",
    column_title: str = "",
    limit: float | None = None,
    signed: bool = True,
    unit: str = "",
) -> go.Figure:
    """Draw values [row, column] as a heatmap, row 0 on top.

    rows, columns  tick labels; None: the indices
    limit          the value at full colour; None: the largest absolute value
    signed         use a diverging scale with zero in the middle
    unit           what a value is, for the hover text
    """
    values = np.asarray(values)
    has_scale = values.dtype != bool
    limit = float(np.abs(values).max(initial=0.0)) or 1.0 if limit is None else limit
    x, y = ([labels.escape(name) for name in names] if names is not None else None for names in (columns, rows))
    heatmap = go.Heatmap(
        z=values.astype(np.float32),
        zmin=-limit if signed else 0.0,
        zmax=limit,
        showscale=has_scale,
        colorscale=DIVERGING if signed else SEQUENTIAL,
        colorbar={"thickness": 10, "len": 0.9, "outlinewidth": 0},
        hovertemplate=join(
            (
                row_title or say("row"),
                " %{y}, ",
                column_title or say("column"),
                " %{x}<br>",
                unit or say("value"),
                " %{z:.4f}<extra></extra>",
            )
        ),
    )
    layout = theme.figure_layout(
        xaxis=_axis(x, column_title, values.shape[1]),
        yaxis={**_axis(y, row_title, values.shape[0]), "autorange": "reversed"},
    )
    return go.Figure(heatmap, layout)


def _axis(names: list[str] | None, title: str, length: int) -> dict:
    axis = {"title": {"text": title}, "showgrid": False, "zeroline": False, "automargin": True, "ticks": ""}
    if names is None:
        return axis
    step = -(-length // 40)  # at most about 40 labels: more are slow and unreadable
    positions = list(range(0, length, step))
    return {**axis, "tickmode": "array", "tickvals": positions, "ticktext": [names[i] for i in positions]}
