"""Attention maps as Plotly figures: one map as a heatmap or as lines, and all heads of a kind as a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import plotly.graph_objects as go

from attention_atlas.model.trace import is_number
from attention_atlas.model.trace.kinds import AttentionKind, Kind
from attention_atlas.model.trace.scores import ScoreMap
from attention_atlas.model.trace.translation import TranslationTrace, check_trace
from attention_atlas.viz import theme
from attention_atlas.viz.figures.still import Figure
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.patterns import head_patterns
from attention_atlas.viz.maps.reduce import Combine, View, pool, score_map

__all__ = ["ColourScale", "Transform", "plot_grid", "plot_heatmap", "plot_lines"]

DECADES = 4  # a log scale ends this many powers of ten below its maximum
GAP = 0.12  # of a map's side, between the maps of a grid
SIDE = 64  # cells a side of a grid's map; longer maps show the largest weight of each block
STRENGTHS = 10  # line widths and opacities told apart
AXIS = {"tickmode": "array", "showgrid": False, "zeroline": False}


class Transform(str, Enum):
    """How weights are spread over the colours."""

    LINEAR = "linear"
    SQRT = "sqrt"
    LOG = "log"


@dataclass(frozen=True)
class ColourScale:
    """name: one of theme.SCALES. maximum: the weight of the last colour (1 makes all heads comparable)."""

    name: str = "viridis"
    transform: Transform = Transform.LINEAR
    maximum: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", Transform(self.transform))
        if self.name not in theme.SCALES:
            raise ValueError(f"a colour scale is one of {', '.join(theme.SCALES)}, found {self.name!r}")
        if not self.maximum > 0:
            raise ValueError(f"a colour scale's maximum must be positive, found {self.maximum}")

    @classmethod
    def coerce(cls, scale: ColourScale | str | None) -> ColourScale:
        """Return the scale, or the scale of this name; None: the default."""
        return scale if isinstance(scale, ColourScale) else cls() if scale is None else cls(scale)

    def place(self, values: np.ndarray) -> np.ndarray:
        """Values of any shape -> place on the scale, 0 to 1 (float64); NaN stays NaN."""
        share = np.clip(np.asarray(values, np.float64) / self.maximum, 0.0, 1.0)
        if self.transform == Transform.SQRT:
            return np.sqrt(share)
        if self.transform == Transform.LOG:
            return 1.0 + np.log10(np.maximum(share, 10.0**-DECADES)) / DECADES
        return share

    def ticks(self) -> tuple[list[float], list[str]]:
        """Places on the scale and the weights they stand for. A log scale's lowest colour means that or less."""
        shares = {
            Transform.LINEAR: (0.0, 0.25, 0.5, 0.75, 1.0),
            Transform.SQRT: (0.0, 0.05, 0.2, 0.5, 1.0),
            Transform.LOG: [10.0**-power for power in range(DECADES, -1, -1)],
        }
        values = [self.maximum * share for share in shares[self.transform]]
        texts = [f"{value:.3g}" for value in values]
        if self.transform == Transform.LOG:
            texts[0] = f"≤ {texts[0]}"
        return [float(p) for p in self.place(np.array(values))], texts

    def heatmap(self, values: np.ndarray, **options: object) -> go.Heatmap:
        """A heatmap [row, column] in these colours, whose colour bar has weights, not places, at its ticks."""
        colours, (places, texts) = theme.SCALES[self.name], self.ticks()
        return go.Heatmap(
            z=self.place(values),
            zmin=0,
            zmax=1,
            colorscale=[[i / (len(colours) - 1), colour] for i, colour in enumerate(colours)],
            colorbar={"tickvals": places, "ticktext": texts, "thickness": 10, "outlinewidth": 0},
            hovertemplate="%{text}<extra></extra>",
            **options,
        )


def plot_heatmap(
    trace: TranslationTrace, view: View | Kind | None = None, *, scale: ColourScale | str | None = None
) -> go.Figure:
    """The map that a view shows (the first head of a kind; of cross-attention for None), queries down, keys across.

    scale: colours or their name, fixed from 0 to 1 by default so that heads can be compared; the colour bar shows
    weights whatever the transform. Hover shows query, key and weight. ValueError if the trace has no such layer or
    head, or for several heads that are not combined.
    """
    view, scale = View.coerce(view), ColourScale.coerce(scale)
    view, *others = view.split(trace)
    if others:
        raise ValueError(
            'a heatmap shows one map: combine several heads by "mean" or "max", or draw them by plot_lines'
        )
    found = score_map(trace, view)
    rows, columns = ([labels.escape(label) for label in side] for side in (found.rows, found.columns))
    text = [
        [f"{row} → {column}: {value:.3g}" for column, value in zip(columns, values)]
        for row, values in zip(rows, found.values)
    ]
    return Figure(
        scale.heatmap(found.values, text=text, xgap=1, ygap=1),
        theme.figure_layout(
            title={"text": f"{labels.KIND_TITLES[view.kind]}, {_which(view)}: {found.unit}"},
            xaxis={**_axis(found.columns, found.column_title), "side": "top"},
            yaxis={**_axis(found.rows, found.row_title), "autorange": "reversed"},
            margin={"l": 8, "r": 8, "t": 96, "b": 8},
        ),
    )


def _axis(names: tuple[str, ...], title: str) -> dict:
    """A token axis: whole numbers under the labels, since a category axis would merge equal tokens."""
    where, texts = labels.ticks(names)
    return {**AXIS, "tickvals": where, "ticktext": texts, "title": {"text": title}, "automargin": True, "ticks": ""}


def _which(view: View) -> str:
    if view.combine == Combine.SINGLE:
        return f"layer {view.layer + 1}, head {view.head + 1}"
    if view.heads and view.combine != Combine.ROLLOUT:
        return f"{len(view.heads)} heads"
    return f"layer {view.layer + 1}"


def plot_grid(
    trace: TranslationTrace, kind: AttentionKind | str = AttentionKind.CROSS, *, scale: ColourScale | str | None = None
) -> go.Figure:
    """Every head of a kind as a thumbnail, on one colour scale. Hover names the head, its pattern and its entropy."""
    kind, scale = AttentionKind(kind), ColourScale.coerce(scale)
    weights = check_trace(trace).maps(kind).of_heads(lambda weights: pool(weights, SIDE))
    layers, heads, rows, columns = weights.shape
    gap_rows, gap_columns = max(1, round(GAP * rows)), max(1, round(GAP * columns))
    shape = (layers, rows + gap_rows, heads, columns + gap_columns)
    # One heatmap of all maps with blank gaps: 48 subplots take Plotly seconds, one trace takes none.
    tiled, text = np.full(shape, np.nan), np.full(shape, "", object)
    tiled[:, :rows, :, :columns] = weights.transpose(0, 2, 1, 3)
    for layer, patterns in enumerate(head_patterns(trace, kind)):
        for head, pattern in enumerate(patterns):
            text[layer, :rows, head, :columns] = (
                f"layer {layer + 1}, head {head + 1}<br>{pattern.reading}<br>entropy {pattern.entropy:.2f} bits"
            )
    size = (layers * shape[1], heads * shape[3])
    figure = Figure(
        scale.heatmap(tiled.reshape(size), hoverongaps=False),
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
        **AXIS,
        "tickvals": [i * step + (length - 1) / 2 for i in range(count)],
        "ticktext": [f"{letter}{i + 1}" for i in range(count)],
        "ticks": "",
    }


def plot_lines(trace: TranslationTrace, view: View | Kind | None = None, *, coverage: float = 0.7) -> go.Figure:
    """The map that a view shows as lines; with SINGLE and `heads`, each of them in its own colour.

    coverage: for each row, only the fewest edges that hold this share (0 to 1] of its weight are drawn. ValueError
    for another coverage, or if the trace has no such layer or head.
    """
    view = View.coerce(view)
    if not (is_number(coverage) and 0 < coverage <= 1):
        raise ValueError(f"coverage is a share above 0 and up to 1, found {coverage!r}")
    views = view.split(trace)
    figure = Figure(
        layout=theme.figure_layout(
            xaxis={**AXIS, "range": [-0.35, 1.35], "tickvals": [0, 1], "side": "top"},
            yaxis={"visible": False, "autorange": "reversed"},
            margin={"l": 8, "r": 8, "t": 40, "b": 8},
        )
    )
    for one, colour in zip(views, theme.HEAD_COLOURS):
        found = score_map(trace, one)
        name = f"layer {one.layer + 1}, head {one.head + 1}" if one.combine == Combine.SINGLE else found.unit
        for i, line in enumerate(_strands(edges(found, coverage), colour)):
            figure.add_trace(line.update(name=name, legendgroup=name, showlegend=i == 0))
    for side, names, anchor, shift in ((0, found.rows, "right", -6), (1, found.columns, "left", 6)):
        for i, name in enumerate(names):
            text = labels.escape(labels.shorten(name))
            figure.add_annotation(x=side, y=i, text=text, showarrow=False, xanchor=anchor, xshift=shift)
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
        ends = [ends for *ends, value in found if min(STRENGTHS - 1, int(value * STRENGTHS)) == strength]
        if ends:
            x, y = [0, 1, None] * len(ends), [y for row, column in ends for y in (row, column, None)]
            share = (strength + 0.5) / STRENGTHS
            look = {"opacity": 0.12 + 0.8 * share, "line": {"color": colour, "width": 0.6 + 4.4 * share}}
            lines.append(go.Scatter(x=x, y=y, mode="lines", hoverinfo="skip", **look))
    return lines
