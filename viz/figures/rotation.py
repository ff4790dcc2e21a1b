"""Two dimensions of the positional encoding as a point that moves around a circle."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from viz import theme
from viz.words import join, say


def plot_rotation(points: np.ndarray, shift: int, *, name: str) -> go.Figure:
    """points [position, 2]: sine and cosine of one pair. Every position on the circle, and an arrow from a few of
    them to the position `shift` further on: all turn by the same angle. name: the pair, for the axes."""
    points = np.asarray(points, np.float64)
    circle = np.linspace(0, 2 * np.pi, 181)
    faint, strong = theme.HEAD_COLOURS[4], theme.HEAD_COLOURS[5]
    traces = [
        go.Scatter(
            x=np.cos(circle),
            y=np.sin(circle),
            mode="lines",
            hoverinfo="skip",
            line={"color": "rgba(128,128,128,0.35)", "width": 1},
        ),
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
    axis = {
        "range": [-1.25, 1.25],
        "zerolinecolor": "rgba(128,128,128,0.4)",
        "gridcolor": "rgba(128,128,128,0.12)",
        "automargin": True,
    }
    picture = go.Figure(
        traces,
        theme.figure_layout(
            xaxis={"title": {"text": join((say("cosine"), name), ", ")}, **axis, "constrain": "domain"},
            yaxis={
                "title": {"text": join((say("sine"), name), ", ")},
                **axis,
                "scaleanchor": "x",
                "constrain": "domain",
            },
            showlegend=False,
            margin={"l": 8, "r": 8, "t": 8, "b": 8},
        ),
    )
    room = len(points) - shift
    for start in range(0, room, max(1, room // 3)) if shift and room > 0 else ():
        end = points[start + shift]
        picture.add_annotation(
            x=end[1],
            y=end[0],
            ax=points[start, 1],
            ay=points[start, 0],
            xref="x",
            yref="y",
            axref="x",
            ayref="y",
            showarrow=True,
            arrowhead=2,
            arrowwidth=1.5,
            arrowcolor=strong,
            text="",
            standoff=5,
            startstandoff=5,
        )
    return picture
