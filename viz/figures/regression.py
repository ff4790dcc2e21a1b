"""Points, the curve that was fitted to them, and the one that they scatter around."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from viz import theme
from viz.words import say


def plot_regression(
    keys: np.ndarray, values: np.ndarray, queries: np.ndarray, fitted: np.ndarray, true: np.ndarray
) -> go.Figure:
    """Points (keys, values) [point]; over queries [query] the fit, with gaps where it is NaN, and the truth."""
    points, fit, truth = theme.HEAD_COLOURS[7], theme.HEAD_COLOURS[0], theme.HEAD_COLOURS[5]
    grid = {"gridcolor": "rgba(128,128,128,0.18)", "zerolinecolor": "rgba(128,128,128,0.5)", "automargin": True}
    shown = "%{x:.3f}: %{y:.4f}"
    return go.Figure(
        [
            go.Scatter(
                x=keys,
                y=values,
                mode="markers",
                marker={"size": 7, "color": points},
                name=say("points"),
                hovertemplate=shown,
            ),
            go.Scatter(
                x=queries,
                y=true,
                mode="lines",
                line={"width": 1.5, "dash": "dot", "color": truth},
                name=say("truth"),
                hovertemplate=shown,
            ),
            go.Scatter(
                x=queries,
                y=fitted,
                mode="lines",
                line={"width": 2.5, "color": fit},
                name=say("fit"),
                hovertemplate=shown,
            ),
        ],
        theme.figure_layout(
            xaxis={"title": {"text": "x"}, **grid},
            yaxis={"title": {"text": "y"}, **grid},
            legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0.0},
            margin={"l": 8, "r": 8, "t": 28, "b": 8},
        ),
    )
