"""Plotly figures of attention: one map as a heatmap or as lines, and all heads of a kind as a grid."""

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

__all__ = ["ColourScale", "Transform", "plot_grid", "plot_heatmap", "plot_lines", "plot_weights"]

DECADES = 4  # a log scale covers this many powers of ten
GAP = 0.12  # between the maps of a grid, as a share of a map's side
SIDE = 64  # cells on a side of a grid's map; longer maps show the largest weight of each block
STRENGTHS = 10  # different line widths and opacities
AXIS = {"tickmode": "array", "showgrid": False, "zeroline": False}


class Transform(str, Enum):
    """How weights are mapped to colours."""

    LINEAR = "linear"
    SQRT = "sqrt"
    LOG = "log"


@dataclass(frozen=True)
class ColourScale:
    """A colour scale.

    name       one of theme.SCALES
    transform  how weights are mapped to colours
    maximum    the weight of the last colour; 1 makes all heads comparable
    minimum    the weight of the first colour

    ValueError for an unknown name and for a maximum that is not above the minimum.
    """

    name: str = "viridis"
    transform: Transform = Transform.LINEAR
    maximum: float = 1.0
    minimum: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", Transform(self.transform))
        if self.name not in theme.SCALES:
            raise ValueError(f"a colour scale is one of {', '.join(theme.SCALES)}, found {self.name!r}")
        if not self.maximum > self.minimum:
            raise ValueError(f"a colour scale's maximum must be above {self.minimum}, found {self.maximum}")

    @classmethod
    def coerce(cls, scale: ColourScale | str | None) -> ColourScale:
        """Return the scale, or the scale of this name; None: the default."""
        return scale if isinstance(scale, ColourScale) else cls() if scale is None else cls(scale)

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Map values of any shape to positions on the scale, float64 from 0 to 1; NaN stays NaN."""
        share = np.clip((np.asarray(values, np.float64) - self.minimum) / (self.maximum - self.minimum), 0.0, 1.0)
        if self.transform == Transform.SQRT:
            return np.sqrt(share)
        if self.transform == Transform.LOG:
            return 1.0 + np.log10(np.maximum(share, 10.0**-DECADES)) / DECADES
        return share

    def ticks(self) -> tuple[list[float], list[str]]:
        """Return tick positions on the scale and their weights as text. The lowest of a log scale means "or less"."""
        shares = {
            Transform.LINEAR: (0.0, 0.25, 0.5, 0.75, 1.0),
            Transform.SQRT: (0.0, 0.05, 0.2, 0.5, 1.0),
            Transform.LOG: [10.0**-power for power in range(DECADES, -1, -1)],
        }
        values = [self.minimum + (self.maximum - self.minimum) * share for share in shares[self.transform]]
        texts = [f"{value:.3g}" for value in values]
        if self.transform == Transform.LOG:
            texts[0] = f"≤ {texts[0]}"
        return [float(p) for p in self.apply(np.array(values))], texts

    def heatmap(self, values: np.ndarray, **options: object) -> go.Heatmap:
        """Make a heatmap of values [row, column], with weights at the ticks of its colour bar."""
        colours, (positions, texts) = theme.SCALES[self.name], self.ticks()
        return go.Heatmap(
            z=self.apply(values),
            zmin=0,
            zmax=1,
            colorscale=[[i / (len(colours) - 1), colour] for i, colour in enumerate(colours)],
            colorbar={"tickvals": positions, "ticktext": texts, "thickness": 10, "outlinewidth": 0},
            hovertemplate="%{text}<extra></extra>",
            **options,
        )


def plot_heatmap(
    trace: TranslationTrace, view: View | Kind | None = None, *, scale: ColourScale | str | None = None
) -> go.Figure:
    """Draw the map of a view as a heatmap, queries down and keys across. Hovering shows query, key and weight.

    view   a kind stands for its first head, None for the first head of cross-attention
    scale  a colour scale or its name, by default from 0 to 1, so that heads can be compared

    ValueError if the trace has no such layer or head, and for several heads that are not combined.
    """
    view, scale = View.coerce(view), ColourScale.coerce(scale)
    view, *others = view.split(trace)
    if others:
        raise ValueError(
            'a heatmap shows one map: combine several heads by "mean" or "max", or draw them by plot_lines'
        )
    scores = score_map(trace, view)
    rows, columns = ([labels.escape(label) for label in side] for side in (scores.rows, scores.columns))
    text = [
        [f"{row} → {column}: {value:.3g}" for column, value in zip(columns, values)]
        for row, values in zip(rows, scores.values)
    ]
    return Figure(
        scale.heatmap(scores.values, text=text, xgap=1, ygap=1),
        theme.figure_layout(
            title={"text": f"{labels.KIND_TITLES[view.kind]}, {_heads_title(view)}: {scores.unit}"},
            xaxis={**_axis(scores.columns, scores.column_title), "side": "top"},
            yaxis={**_axis(scores.rows, scores.row_title), "autorange": "reversed"},
            top=96,
        ),
    )


def _axis(names: tuple[str, ...], title: str) -> dict:
    """Return a token axis, numeric since a category axis would merge equal tokens."""
    positions, texts = labels.ticks(names)
    return {**AXIS, "tickvals": positions, "ticktext": texts, "title": {"text": title}, "automargin": True, "ticks": ""}


def _heads_title(view: View) -> str:
    if view.combine == Combine.SINGLE:
        return f"layer {view.layer + 1}, head {view.head + 1}"
    if view.heads and view.combine != Combine.ROLLOUT:
        return f"{len(view.heads)} heads"
    return f"layer {view.layer + 1}"


def plot_grid(
    trace: TranslationTrace, kind: AttentionKind | str = AttentionKind.CROSS, *, scale: ColourScale | str | None = None
) -> go.Figure:
    """Draw every head of a kind as a thumbnail, on one colour scale. Hovering shows its pattern and entropy."""
    kind, scale = AttentionKind(kind), ColourScale.coerce(scale)
    weights = check_trace(trace).maps(kind).map_heads(lambda weights: pool(weights, SIDE))
    text = [
        [
            f"layer {layer + 1}, head {head + 1}<br>{pattern.reading}<br>entropy {pattern.entropy:.2f} bits"
            for head, pattern in enumerate(patterns)
        ]
        for layer, patterns in enumerate(head_patterns(trace, kind))
    ]
    hover = np.broadcast_to(np.array(text, object)[:, :, None, None], weights.shape)
    return _tiles(weights, hover, f"{labels.KIND_TITLES[kind]}: all heads", "L", scale)


def plot_weights(weights: np.ndarray, *, title: str = "", scale: ColourScale | str | None = None) -> go.Figure:
    """Draw any array [batch, heads, query, key] as a grid, a row for each sentence and a column for each head.

    weights  a NumPy array, or a tensor on the CPU without gradients; NaN and infinite cells are blank. Maps of more
             than 64 tokens a side show the largest value of each block
    scale    a colour scale or the name of one; a name, or None, stands for a scale from 0 to 1, wider if there are
             values outside, as in scores

    Hovering shows sentence, head, query, key and value, counted from 1. ValueError unless there are four axes.
    """
    values = np.array(weights, np.float64)
    if values.ndim != 4 or not values.size:
        raise ValueError(f"weights are [batch, heads, query, key], found shape {list(values.shape)}")
    finite = values[np.isfinite(values)]
    if not isinstance(scale, ColourScale):
        limits = {"minimum": float(finite.min(initial=0.0)), "maximum": float(finite.max(initial=1.0))}
        scale = ColourScale(scale or ColourScale.name, **limits)
    pooled = pool(np.where(np.isfinite(values), values, -np.inf), SIDE)
    pooled = np.where(np.isfinite(pooled), pooled, np.nan)
    hover = np.full(pooled.shape, "", object)
    for index in np.argwhere(~np.isnan(pooled)):
        sentence, head, query, key = index
        # A pooled cell is named by the first query and key of its block.
        query, key = (1 + at * max(1, full / SIDE) for at, full in ((query, values.shape[2]), (key, values.shape[3])))
        hover[tuple(index)] = (
            f"sentence {sentence + 1}, head {head + 1}<br>"
            f"query {int(query)}, key {int(key)}: {pooled[tuple(index)]:.3g}"
        )
    return _tiles(pooled, hover, title, "", scale)


def _tiles(weights: np.ndarray, hover: np.ndarray, title: str, letter: str, scale: ColourScale) -> go.Figure:
    """Draw weights [row, head, query, key] as a grid of maps, with a hover text for each cell.

    letter: stands before the number of a row.
    """
    layers, heads, rows, columns = weights.shape
    gap_rows, gap_columns = max(1, round(GAP * rows)), max(1, round(GAP * columns))
    shape = (layers, rows + gap_rows, heads, columns + gap_columns)
    # One heatmap with blank gaps between the maps: 48 subplots would take Plotly seconds.
    tiled, text = np.full(shape, np.nan), np.full(shape, "", object)
    tiled[:, :rows, :, :columns] = weights.transpose(0, 2, 1, 3)
    text[:, :rows, :, :columns] = hover.transpose(0, 2, 1, 3)
    size = (layers * shape[1], heads * shape[3])
    figure = Figure(
        scale.heatmap(tiled.reshape(size), hoverongaps=False),
        theme.figure_layout(
            title={"text": title},
            xaxis={**_ticks("H", heads, shape[3], columns), "side": "top"},
            yaxis={**_ticks(letter, layers, shape[1], rows), "autorange": "reversed"},
            top=72,
        ),
    )
    figure.data[0].text = text.reshape(size)  # set afterwards: the constructor copies cell by cell
    return figure


def _ticks(letter: str, count: int, step: int, length: int) -> dict:
    return {
        **AXIS,
        "tickvals": [i * step + (length - 1) / 2 for i in range(count)],
        "ticktext": [f"{letter}{i + 1}" for i in range(count)],
        "ticks": "",
    }


def plot_lines(trace: TranslationTrace, view: View | Kind | None = None, *, coverage: float = 0.7) -> go.Figure:
    """Draw the map of a view as lines between tokens; with SINGLE and `heads`, each head in its own colour.

    coverage: draw the fewest lines of each row that hold this share, (0, 1], of its weight. ValueError for any other
    coverage, and if the trace has no such layer or head.
    """
    view = View.coerce(view)
    if not (is_number(coverage) and 0 < coverage <= 1):
        raise ValueError(f"coverage is a share above 0 and up to 1, found {coverage!r}")
    views = view.split(trace)
    figure = Figure(
        layout=theme.figure_layout(
            xaxis={**AXIS, "range": [-0.35, 1.35], "tickvals": [0, 1], "side": "top"},
            yaxis={"visible": False, "autorange": "reversed"},
            top=40,
        )
    )
    for part, colour in zip(views, theme.HEAD_COLOURS):
        scores = score_map(trace, part)
        name = _heads_title(part) if part.combine == Combine.SINGLE else scores.unit
        for i, line in enumerate(_lines(strongest_edges(scores, coverage), colour)):
            figure.add_trace(line.update(name=name, legendgroup=name, showlegend=i == 0))
    for side, names, anchor, shift in ((0, scores.rows, "right", -6), (1, scores.columns, "left", 6)):
        for i, name in enumerate(names):
            text = labels.escape(labels.shorten(name))
            figure.add_annotation(x=side, y=i, text=text, showarrow=False, xanchor=anchor, xshift=shift)
    figure.update_xaxes(ticktext=[scores.row_title, scores.column_title])
    return figure


def strongest_edges(score_map: ScoreMap, coverage: float) -> list[tuple[int, int, float]]:
    """Return (row, column, value) of the fewest cells of each row that hold `coverage` of its sum, strongest first.

    Equal values are taken from left to right. Blank rows have no edges.
    """
    edges = []
    for row, values in enumerate(score_map.values.astype(np.float64)):
        if np.isnan(values).any():
            continue
        covered, total = 0.0, values.sum()
        for column in np.argsort(-values, kind="stable"):
            if covered >= coverage * total - 1e-9 or values[column] <= 0:
                break
            edges.append((row, int(column), float(values[column])))
            covered += values[column]
    return edges


def _lines(edges: Sequence[tuple[int, int, float]], colour: str) -> list[go.Scatter]:
    """Return one Plotly trace for each strength, so that many edges need few traces."""
    lines = []
    for strength in range(STRENGTHS):
        ends = [ends for *ends, value in edges if min(STRENGTHS - 1, int(value * STRENGTHS)) == strength]
        if ends:
            x, y = [0, 1, None] * len(ends), [y for row, column in ends for y in (row, column, None)]
            share = (strength + 0.5) / STRENGTHS
            look = {"opacity": 0.12 + 0.8 * share, "line": {"color": colour, "width": 0.6 + 4.4 * share}}
            lines.append(go.Scatter(x=x, y=y, mode="lines", hoverinfo="skip", **look))
    return lines
