"""A circuit as a layered graph: the encoder left, the decoder right, the logits at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from model.trace.kinds import Side
from viz import theme
from viz.words import Words, join, say

FOR, AGAINST = theme.DIVERGING["light"][4], theme.DIVERGING["light"][0]  # as in the tokens' matrix
WIDEST = 9.0  # pixels
NODE = "#5f6b7d"  # white reads on it, and it stands out from either page
PARTS = {"self": 0, "cross": 1, "ffn": 2}  # from left to right within a layer
ALONG = {"q": 0.4, "k": 0.5, "v": 0.6}  # where on its way an edge is named: three may lead to one head


@dataclass(frozen=True)
class Drawn:
    """An edge from what writes to what reads: "encoder.1.self.3" (a head), "decoder.0.ffn", "encoder.embed", "logits".
    letter: "q", "k" or "v" of a head, else empty; worth: in nats, positive: it speaks for the token."""

    sender: str
    reader: str
    letter: str
    worth: float


def plot_circuit(edges: Sequence[Drawn], layers: tuple[int, int]) -> go.Figure:
    """Width by worth, colour by sign; an edge's name and number under the pointer. layers: of encoder and decoder."""
    names = {name for edge in edges for name in (edge.sender, edge.reader)}
    places = _places(names, layers)
    largest = max((abs(edge.worth) for edge in edges), default=1.0) or 1.0
    lines, named = [], []
    for edge in sorted(edges, key=lambda edge: abs(edge.worth)):
        (x, y), (to_x, to_y) = places[edge.sender], places[edge.reader]
        worth = edge.worth
        colour = FOR if worth > 0 else AGAINST
        lines.append(
            go.Scatter(
                x=[x, to_x],
                y=[y, to_y],
                mode="lines",
                line={"width": max(1.0, WIDEST * abs(worth) / largest), "color": colour},
                opacity=0.55,
                hoverinfo="skip",
            )
        )
        share = ALONG.get(edge.letter, 0.5)
        name = f"{edge.sender} → {edge.reader}" + (f", {edge.letter}" if edge.letter else "")
        named.append((x + share * (to_x - x), y + share * (to_y - y), name, worth))
    along_x, along_y, words, worths = zip(*named) if named else ((), (), (), ())
    middles = go.Scatter(
        x=along_x,
        y=along_y,
        mode="markers",
        marker={"size": 9, "color": [FOR if worth > 0 else AGAINST for worth in worths]},
        text=words,
        customdata=[f"{worth:+.2f}".replace("-", "−") for worth in worths],
        hovertemplate=join(("%{text}<br>%{customdata} ", say("nats"), "<extra></extra>")),
    )
    nodes = go.Scatter(
        x=[places[name][0] for name in places],
        y=[places[name][1] for name in places],
        mode="markers+text",
        marker={"size": 26, "color": NODE},
        text=[short(name) for name in places],
        textfont={"size": 11, "color": "#ffffff"},
        customdata=list(places),
        hovertemplate="%{customdata}<extra></extra>",
    )
    ticks = _ticks(names, layers)
    axis = {"showgrid": False, "zeroline": False}
    return go.Figure(
        [*lines, middles, nodes],
        theme.figure_layout(
            showlegend=False,
            hovermode="closest",
            margin={"l": 8, "r": 8, "t": 8, "b": 8},
            xaxis={
                **axis,
                "title": {"text": ""},
                "tickvals": list(ticks),
                "ticktext": list(ticks.values()),
                "automargin": True,
            },
            yaxis={**axis, "title": {"text": ""}, "visible": False},
        ),
    )


def short(name: str) -> str:
    """What stands in a node: the number of a head, from 1, or which part it is."""
    *_, last = name.split(".")
    return str(int(last) + 1) if last.isdigit() else {"embed": "x", "ffn": "FF", "logits": "p"}[last]


def _column(name: str, layers: tuple[int, int]) -> float:
    """How far along the pass something stands."""
    side, *rest = name.split(".")
    if name == "logits":
        return 3.0 * sum(layers) + 4
    start = 0.0 if side == Side.ENCODER.value else 3.0 * layers[0] + 1.5
    return start if rest == ["embed"] else start + 3 * int(rest[0]) + 1 + PARTS[rest[1]]


def _places(names: set[str], layers: tuple[int, int]) -> dict[str, tuple[float, float]]:
    """Where each stands: those of one column one below the other, neighbouring columns half a step apart."""
    columns: dict[float, list[str]] = {}
    for name in sorted(names, key=lambda name: (len(name), name)):
        columns.setdefault(_column(name, layers), []).append(name)
    places = {}
    for number, column in enumerate(sorted(columns)):
        here, shift = columns[column], 0.3 * (number % 3 - 1)
        for row, name in enumerate(here):
            places[name] = (column, shift + (len(here) - 1) / 2 - row)
    return places


def _ticks(names: set[str], layers: tuple[int, int]) -> dict[float, Words]:
    """What stands below the columns that are there."""
    found: dict[float, Words] = {}
    for name in names:
        side, *rest = name.split(".")
        if name == "logits":
            found[_column(name, layers)] = say("next token")
        elif rest == ["embed"]:
            found[_column(name, layers)] = say("source") if side == Side.ENCODER.value else say("prefix")
        else:
            words = (
                say("encoder {n}", n=int(rest[0]) + 1) if side == "encoder" else say("decoder {n}", n=int(rest[0]) + 1)
            )
            found[_column(f"{side}.{rest[0]}.cross", layers)] = words
    return dict(sorted(found.items()))
