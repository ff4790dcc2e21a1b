"""A circuit as a layered graph: from the words of the source to the token, the encoder left, the decoder right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from attention_atlas.model.trace.kinds import Side
from attention_atlas.viz import theme
from attention_atlas.viz.words import Words, join, say

__all__ = ["Drawn", "Shape", "plot_circuit"]

FOR, AGAINST = "#e0701a", "#4b86d9"  # seen on a light page and on a dark one, told apart with any colour vision
WIDEST = 9.0  # pixels
NODE = "#5f6b7d"  # white reads on it, and it stands out from either page
BAND = {"yref": "paper", "y0": 0, "y1": 1, "fillcolor": "rgba(128, 128, 128, 0.07)", "line_width": 0, "layer": "below"}
PARTS = {Side.ENCODER: {"self": 0, "ffn": 1}, Side.DECODER: {"self": 0, "cross": 1, "ffn": 2}}  # columns of a layer
SYMBOLS = {"self": "circle", "cross": "diamond", "ffn": "square", "embed": "circle", "logits": "circle"}
APART = {"q": 0.35, "k": 0.0, "v": -0.35}  # rows by which an edge is bent: three may lead into one head
BENT = 0.06  # rows a column more: an edge passes by what stands on its line


@dataclass(frozen=True)
class Drawn:
    """An edge from what writes to what reads: "encoder.1.self.3" (a head), "decoder.0.ffn", "encoder.embed", "logits".
    letter: "q", "k" or "v" of a head, else empty; worth: in nats, positive: it speaks for the token."""

    sender: str
    reader: str
    letter: str
    worth: float

    @property
    def name(self) -> str:
        """The edge's name: both ends, and for a head's input its letter."""
        return f"{self.sender} → {self.reader}" + (f", {self.letter}" if self.letter else "")

    @property
    def spoken(self) -> Words:
        """The edge in words, which the page translates."""
        return join((spoken(self.sender), " → ", spoken(self.reader), f", {self.letter}" if self.letter else ""))


@dataclass(frozen=True)
class Shape:
    """Of the model: a node has its own place, whatever else is drawn. A head's row is its number, feed-forwards are
    below all heads; ends: what is shown at the source and at the logits, such as a changed word and the token."""

    encoder: int
    decoder: int
    heads: int
    ends: tuple[str, str] = ("", "")

    def column(self, side: Side, layer: int) -> int:
        """The first one of a layer; after the last layer, the next free one."""
        before = 0 if side is Side.ENCODER else self.column(Side.ENCODER, self.encoder)
        return before + 1 + layer * len(PARTS[side])

    def place(self, name: str) -> tuple[float, float]:
        """x and y of a node."""
        side, *rest = name.split(".")
        middle = (1 - self.heads) / 2
        if name == "logits":
            return self.column(Side.DECODER, self.decoder), middle
        if rest == ["embed"]:
            return self.column(Side(side), 0) - 1, middle
        column = self.column(Side(side), int(rest[0])) + PARTS[Side(side)][rest[1]]
        return column, -self.heads if rest[1] == "ffn" else -int(rest[-1])


def plot_circuit(edges: Sequence[Drawn], shape: Shape) -> go.Figure:
    """Draw edges: width by worth, colour by sign. Points at nodes and in the middle of edges have the names as ids."""
    names = sorted({name for edge in edges for name in (edge.sender, edge.reader)})
    largest = max((abs(edge.worth) for edge in edges), default=1.0) or 1.0
    drawn = sorted(edges, key=lambda edge: -abs(edge.worth))
    ways = [_way(edge, shape) for edge in drawn]
    lines = []
    for edge, way in zip(drawn, ways):
        x, y = zip(*way)
        look = {"shape": "spline", "width": max(1.0, WIDEST * abs(edge.worth) / largest), "color": _colour(edge)}
        lines.append(go.Scatter(x=x, y=y, mode="lines", line=look, opacity=0.7, hoverinfo="skip"))
    middles = go.Scatter(
        x=[way[1][0] for way in ways],
        y=[way[1][1] for way in ways],
        mode="markers",
        marker={"size": 9, "color": [_colour(edge) for edge in drawn]},
        text=[edge.spoken for edge in drawn],
        ids=[edge.name for edge in drawn],
        customdata=[f"{edge.worth:+.2f}".replace("-", "−") for edge in drawn],
        hovertemplate=join(("%{text}<br>", say("estimated"), " %{customdata} ", say("nats"), "<extra></extra>")),
    )
    x, y = zip(*map(shape.place, names)) if names else ((), ())
    symbols = [SYMBOLS[_part(name)] for name in names]
    nodes = go.Scatter(
        x=x,
        y=y,
        mode="markers+text",
        marker={"size": 26 if shape.heads <= 8 else 20, "color": NODE, "opacity": 1, "symbol": symbols},
        text=[short(name) for name in names],
        textfont={"size": 11, "color": "#ffffff"},
        ids=names,
        customdata=[spoken(name) for name in names],
        hovertemplate="%{customdata}<extra></extra>",
    )
    (x, y), (to_x, to_y) = shape.place("encoder.embed"), shape.place("logits")
    ends = go.Scatter(
        x=[x, to_x],
        y=[y + 0.7, to_y + 0.7],
        mode="text",
        text=list(shape.ends),
        textposition=["top right", "top left"],
        textfont={"size": 14},
        hoverinfo="skip",
    )
    return go.Figure([*lines, middles, nodes, ends], _layout(shape))


def _layout(shape: Shape) -> dict:
    """Every layer has its band, whether anything of it is drawn or not."""
    bands = {
        _layer(side, layer): (shape.column(side, layer), shape.column(side, layer + 1))
        for side, layers in ((Side.ENCODER, shape.encoder), (Side.DECODER, shape.decoder))
        for layer in range(layers)
    }
    last, _ = shape.place("logits")
    axis = {"showgrid": False, "zeroline": False, "title": {"text": ""}}
    return theme.figure_layout(
        showlegend=False,
        hovermode="closest",
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        shapes=[
            {"type": "rect", "x0": start - 0.5, "x1": end - 0.5, **BAND} for start, end in list(bands.values())[::2]
        ],
        xaxis={
            **axis,
            "range": [-0.7, last + 0.7],
            "tickvals": [(start + end - 1) / 2 for start, end in bands.values()],
            "ticktext": list(bands),
            "automargin": True,
        },
        yaxis={**axis, "range": [-shape.heads - 1.2, 0.8], "visible": False},
    )


def _way(edge: Drawn, shape: Shape) -> tuple[tuple[float, float], ...]:
    """Where an edge begins, bends and ends."""
    (x, y), (to_x, to_y) = shape.place(edge.sender), shape.place(edge.reader)
    bent = APART.get(edge.letter, 0.0)
    if y == to_y:
        bent -= BENT * (to_x - x) + 0.2
    return (x, y), ((x + to_x) / 2, (y + to_y) / 2 + bent), (to_x, to_y)


def _colour(edge: Drawn) -> str:
    return FOR if edge.worth > 0 else AGAINST


def _layer(side: Side, layer: int) -> Words:
    return say("encoder {n}", n=layer + 1) if side is Side.ENCODER else say("decoder {n}", n=layer + 1)


def _part(name: str) -> str:
    return name if name == "logits" else name.split(".")[2 - name.endswith("embed")]


def short(name: str) -> str:
    """The label of a node: the number of a head, from 1, or which part it is."""
    *_, last = name.split(".")
    return str(int(last) + 1) if last.isdigit() else {"embed": "x", "ffn": "FF", "logits": "p"}[last]


def spoken(name: str) -> Words:
    """A node or what it reads, in words."""
    side, *rest = name.split(".")
    if name == "logits":
        return say("the logits")
    if rest == ["embed"]:
        return say("source embeddings") if side == Side.ENCODER.value else say("prefix embeddings")
    where = _layer(Side(side), int(rest[0]))
    if rest[1] == "ffn":
        return join((where, say("feed-forward")), ", ")
    head = int(rest[-1]) + 1
    what = say("head {n}", n=head) if rest[1] == "self" else say("cross-attention head {n}", n=head)
    return join((where, what), ", ")
