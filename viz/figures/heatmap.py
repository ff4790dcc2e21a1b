"""One attention map, or several combined, as a heatmap."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from model.trace.kinds import Kind
from model.trace.translation import TranslationTrace
from viz import theme
from viz.figures.colour import ColourScale
from viz.figures.still import Figure
from viz.maps import labels
from viz.maps.reduce import View, score_map


def plot_heatmap(
    trace: TranslationTrace, view: View | Kind | None = None, *, scale: ColourScale | str | None = None
) -> go.Figure:
    """The map that a view shows (the first head of a kind; of cross-attention for None), queries down, keys across.

    scale: colours or their name, fixed from 0 to 1 by default so that heads can be compared; the colour bar shows
    weights whatever the transform. Hover shows query, key and weight. ValueError if the trace has no such layer or
    head, or for several heads that are not combined.
    """
    view, scale = View.meant(view), ColourScale.meant(scale)
    view, *others = view.apart(trace)
    if others:
        raise ValueError(
            'a heatmap shows one map: combine several heads by "mean" or "max", or draw them by plot_lines'
        )
    found = score_map(trace, view)
    weights = np.array([[f"{value:.3g}" for value in row] for row in found.values])
    rows, columns = ([labels.escape(label) for label in side] for side in (found.rows, found.columns))
    text = [[f"{row} → {column}: {weights[i][j]}" for j, column in enumerate(columns)] for i, row in enumerate(rows)]
    heatmap = go.Heatmap(
        z=scale.place(found.values),
        zmin=0,
        zmax=1,
        colorscale=scale.plotly(),
        text=text,
        hovertemplate="%{text}<extra></extra>",
        colorbar=colour_bar(scale),
        xgap=1,
        ygap=1,
    )
    return Figure(
        heatmap,
        theme.figure_layout(
            title={"text": f"{labels.KIND_TITLES[view.kind]}, {_which(view)}: {found.unit}"},
            xaxis={**axis(found.columns, found.column_title), "side": "top"},
            yaxis={**axis(found.rows, found.row_title), "autorange": "reversed"},
            margin={"l": 8, "r": 8, "t": 96, "b": 8},
        ),
    )


def axis(names: tuple[str, ...], title: str) -> dict:
    """A token axis: whole numbers under the labels, since a category axis would merge equal tokens."""
    where, texts = labels.ticks(names)
    return {
        "tickmode": "array",
        "tickvals": where,
        "ticktext": texts,
        "title": {"text": title},
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "ticks": "",
    }


def colour_bar(scale: ColourScale) -> dict:
    """A colour bar whose ticks are weights, not places on the scale."""
    places, texts = scale.ticks()
    return {"tickvals": places, "ticktext": texts, "thickness": 10, "outlinewidth": 0}


def _which(view: View) -> str:
    if view.combine.value == "single":
        return f"layer {view.layer + 1}, head {view.head + 1}"
    if view.heads and view.combine.value != "rollout":
        return f"{len(view.heads)} heads"
    return f"layer {view.layer + 1}"
