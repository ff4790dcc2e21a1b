"""A Plotly figure of a circuit: a layered graph from the source to the logits, encoder left and decoder right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from attention_atlas.model.trace.kinds import Side
from attention_atlas.viz import theme
from attention_atlas.viz.words import Words, join, say

__all__ = ["DrawnEdge", "ModelShape", "plot_circuit"]

FOR, AGAINST = "#e0701a", "#4b86d9"  # visible on light and dark pages, distinct for any colour vision
MAX_WIDTH = 9.0  # pixels
NODE = "#5f6b7d"  # readable below white text, visible on light and dark pages
BAND = {"yref": "paper", "y0": 0, "y1": 1, "fillcolor": "rgba(128, 128, 128, 0.07)", "line_width": 0, "layer": "below"}
PARTS = {Side.ENCODER: {"self": 0, "ffn": 1}, Side.DECODER: {"self": 0, "cross": 1, "ffn": 2}}  # columns of a layer
SYMBOLS = {"self": "circle", "cross": "diamond", "ffn": "square", "embed": "circle", "logits": "circle"}
BENDS = {"q": 0.35, "k": 0.0, "v": -0.35}  # rows by which an edge is bent, since three may lead into one head
BEND_PER_COLUMN = 0.06  # for edges within a row, which would cross the nodes between their ends


@dataclass(frozen=True)
class DrawnEdge:
    """An edge between two nodes: "encoder.1.self.3" (a head), "decoder.0.ffn", "encoder.embed" or "logits".

    sender  the node that writes to the residual stream
    reader  the node that reads from it
    letter  the reading head's input: "q", "k" or "v"; "" for other nodes
    worth   its effect in nats; positive: it raises the token's probability
    """

    sender: str
    reader: str
    letter: str
    worth: float

    @property
    def name(self) -> str:
        """The edge's name: both nodes and the letter."""
        return f"{self.sender} → {self.reader}" + (f", {self.letter}" if self.letter else "")

    @property
    def description(self) -> Words:
        """The edge's translatable description."""
        return join(
            (describe_node(self.sender), " → ", describe_node(self.reader), f", {self.letter}" if self.letter else "")
        )


@dataclass(frozen=True)
class ModelShape:
    """The model's numbers of layers and heads, which determine the position of every node.

    A head's row is its number; feed-forward layers are below all heads. ends: the texts at the source and at the
    logits, such as a changed word and the token.
    """

    encoder: int
    decoder: int
    heads: int
    ends: tuple[str, str] = ("", "")

    def column(self, side: Side, layer: int) -> int:
        """Return the first column of a layer; for the number of layers, the first column after them."""
        before = 0 if side is Side.ENCODER else self.column(Side.ENCODER, self.encoder)
        return before + 1 + layer * len(PARTS[side])

    def position(self, name: str) -> tuple[float, float]:
        """Return x and y of a node."""
        side, *rest = name.split(".")
        middle = (1 - self.heads) / 2
        if name == "logits":
            return self.column(Side.DECODER, self.decoder), middle
        if rest == ["embed"]:
            return self.column(Side(side), 0) - 1, middle
        column = self.column(Side(side), int(rest[0])) + PARTS[Side(side)][rest[1]]
        return column, -self.heads if rest[1] == "ffn" else -int(rest[-1])


def plot_circuit(edges: Sequence[DrawnEdge], shape: ModelShape) -> go.Figure:
    """Draw edges with their worth as width and its sign as colour; those below 0 are dashed.

    The points of nodes and of the edges' middles have their names as ids.
    """
    names = sorted({name for edge in edges for name in (edge.sender, edge.reader)})
    largest = max((abs(edge.worth) for edge in edges), default=1.0) or 1.0
    by_worth = sorted(edges, key=lambda edge: -abs(edge.worth))
    paths = [_path(edge, shape) for edge in by_worth]
    lines = []
    for edge, path in zip(by_worth, paths):
        x, y = zip(*path)
        width = max(1.0, MAX_WIDTH * abs(edge.worth) / largest)
        look = {
            "shape": "spline",
            "width": width,
            "color": _colour(edge),
            "dash": "solid" if edge.worth > 0 else "dash",
        }
        lines.append(go.Scatter(x=x, y=y, mode="lines", line=look, opacity=0.7, hoverinfo="skip"))
    middles = go.Scatter(
        x=[path[1][0] for path in paths],
        y=[path[1][1] for path in paths],
        mode="markers",
        marker={"size": 9, "color": [_colour(edge) for edge in by_worth]},
        text=[edge.description for edge in by_worth],
        ids=[edge.name for edge in by_worth],
        customdata=[f"{edge.worth:+.2f}".replace("-", "−") for edge in by_worth],
        hovertemplate=join(("%{text}<br>", say("estimated"), " %{customdata} ", say("nats"), "<extra></extra>")),
    )
    x, y = zip(*map(shape.position, names)) if names else ((), ())
    symbols = [SYMBOLS[_part(name)] for name in names]
    nodes = go.Scatter(
        x=x,
        y=y,
        mode="markers+text",
        marker={"size": 26 if shape.heads <= 8 else 20, "color": NODE, "opacity": 1, "symbol": symbols},
        text=[node_label(name) for name in names],
        textfont={"size": 11, "color": "#ffffff"},
        ids=names,
        customdata=[describe_node(name) for name in names],
        hovertemplate="%{customdata}<extra></extra>",
    )
    (x, y), (to_x, to_y) = shape.position("encoder.embed"), shape.position("logits")
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


def _layout(shape: ModelShape) -> dict:
    """Return the layout, with a band for every layer."""
    bands = {
        _layer(side, layer): (shape.column(side, layer), shape.column(side, layer + 1))
        for side, layers in ((Side.ENCODER, shape.encoder), (Side.DECODER, shape.decoder))
        for layer in range(layers)
    }
    last, _ = shape.position("logits")
    axis = {"showgrid": False, "zeroline": False, "title": {"text": ""}}
    return theme.figure_layout(
        showlegend=False,
        hovermode="closest",
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


def _path(edge: DrawnEdge, shape: ModelShape) -> tuple[tuple[float, float], ...]:
    """Return the points where an edge starts, bends and ends."""
    (x, y), (to_x, to_y) = shape.position(edge.sender), shape.position(edge.reader)
    bend = BENDS.get(edge.letter, 0.0)
    if y == to_y:
        bend -= BEND_PER_COLUMN * (to_x - x) + 0.2
    return (x, y), ((x + to_x) / 2, (y + to_y) / 2 + bend), (to_x, to_y)


def _colour(edge: DrawnEdge) -> str:
    return FOR if edge.worth > 0 else AGAINST


def _layer(side: Side, layer: int) -> Words:
    return say("encoder {n}", n=layer + 1) if side is Side.ENCODER else say("decoder {n}", n=layer + 1)


def _part(name: str) -> str:
    return name if name == "logits" else name.split(".")[2 - name.endswith("embed")]


def node_label(name: str) -> str:
    """Return the label of a node: the number of a head, from 1, or a short name."""
    *_, last = name.split(".")
    return str(int(last) + 1) if last.isdigit() else {"embed": "x", "ffn": "FF", "logits": "p"}[last]


def describe_node(name: str) -> Words:
    """Return the translatable description of a node."""
    side, *rest = name.split(".")
    if name == "logits":
        return say("the logits")
    if rest == ["embed"]:
        return say("source embeddings") if side == Side.ENCODER.value else say("prefix embeddings")
    where = _layer(Side(side), int(rest[0]))
    if rest[1] == "ffn":
        return join((where, say("feed-forward")), ", ")
    head = int(rest[-1]) + 1
    name = say("head {n}", n=head) if rest[1] == "self" else say("cross-attention head {n}", n=head)
    return join((where, name), ", ")
