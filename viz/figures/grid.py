"""All layers x heads of one kind of attention in one picture."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from model.trace.kinds import AttentionKind
from model.trace.translation import TranslationTrace, a_trace
from viz import theme
from viz.figures.colour import ColourScale
from viz.figures.heatmap import colour_bar
from viz.figures.still import Figure
from viz.maps import labels
from viz.maps.patterns import head_patterns
from viz.maps.reduce import pool

GAP = 0.12  # of a map's side, between maps
SIDE = 64  # cells a side; longer maps show the largest weight of each block


def plot_grid(
    trace: TranslationTrace, kind: AttentionKind | str = AttentionKind.CROSS, *, scale: ColourScale | str | None = None
) -> go.Figure:
    """Every head of a kind as a thumbnail: layers down, heads across, one colour scale for all. Hover names the head,
    its pattern and its entropy."""
    kind, scale = AttentionKind(kind), ColourScale.meant(scale)
    weights = a_trace(trace).maps(kind).of_heads(lambda weights: pool(weights, SIDE))
    layers, heads, rows, columns = weights.shape
    gap_rows, gap_columns = max(1, round(GAP * rows)), max(1, round(GAP * columns))
    shape = (layers, rows + gap_rows, heads, columns + gap_columns)
    # One heatmap of all maps with blank gaps: 48 subplots take Plotly seconds, one trace takes none.
    tiled, text = np.full(shape, np.nan), np.full(shape, "", object)
    tiled[:, :rows, :, :columns] = scale.place(weights).transpose(0, 2, 1, 3)
    for layer, patterns in enumerate(head_patterns(trace, kind)):
        for head, pattern in enumerate(patterns):
            text[layer, :rows, head, :columns] = (
                f"layer {layer + 1}, head {head + 1}<br>{pattern.reading}<br>entropy {pattern.entropy:.2f} bits"
            )
    size = (layers * shape[1], heads * shape[3])
    heatmap = go.Heatmap(
        z=tiled.reshape(size),
        zmin=0,
        zmax=1,
        colorscale=scale.plotly(),
        hovertemplate="%{text}<extra></extra>",
        hoverongaps=False,
        colorbar=colour_bar(scale),
    )
    figure = Figure(
        heatmap,
        theme.figure_layout(
            title={"text": f"{labels.KIND_TITLES[kind]}: all heads"},
            xaxis={**_ticks("H", heads, shape[3], columns), "side": "top"},
            yaxis={**_ticks("L", layers, shape[1], rows), "autorange": "reversed"},
            margin={"l": 8, "r": 8, "t": 72, "b": 8},
        ),
    )
    figure.data[0].text = text.reshape(size)  # here, since a figure copies twice, cell by cell, what it is made of
    return figure


def _ticks(letter: str, count: int, step: int, length: int) -> dict:
    return {
        "tickmode": "array",
        "tickvals": [i * step + (length - 1) / 2 for i in range(count)],
        "ticktext": [f"{letter}{i + 1}" for i in range(count)],
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }
