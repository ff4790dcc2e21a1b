"""A matrix of numbers as a block of a panel: coloured cells, and sums in the margin. viz/web/lab/matrix.js draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.language import Words, join, say
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit
from attention_atlas.viz.wire.blocks import compact, format_nats, two_decimals

EVIDENCE = {Evidence.MEASURED: say("measured"), Evidence.EXACT_SPLIT: say("exact split"), Evidence.PROXY: say("proxy")}


@dataclass(frozen=True)
class Line:
    """A row of a matrix.

    key            its name in requests of the page
    cells          of cells(); None: the page requests the line when it is opened (the act "row" of its panel)
    margins        of margin(), one for each margin of the matrix
    about          sentences of the tooltip of its name
    layers, layer  the number of layers that can be shown one by one, and the layer shown, from 1; 0: all together
    folded         whether it is hidden at first
    """

    key: str
    name: Words | str
    cells: list[dict | None] | None
    margins: Sequence[list[dict]] = ()
    about: Sequence[Words] = ()
    evidence: Evidence | None = None
    layers: int = 0
    layer: int = 0
    folded: bool = False

    def payload(self) -> dict:
        """Return the line as JSON-ready data."""
        data = {"type": "line", **vars(self)}
        if (evidence := data.pop("evidence")) is not None:
            data |= {"kind": evidence.value, "evidence": EVIDENCE[evidence]}
        return data


@dataclass(frozen=True)
class Axis:
    """The columns of a matrix.

    groups   (title, number of columns) pairs, in order
    texts    the columns' labels
    special  which columns are dimmed
    names    texts for screen readers, if the labels are not enough
    sight    the column to scroll to at first; None: no scrolling
    """

    groups: Sequence[tuple[Words, int]]
    texts: Sequence[str]
    special: Sequence[bool] = ()
    names: Sequence[Words] = ()
    sight: int | None = None


def matrix(
    label: Words,
    axis: Axis,
    lines: Sequence[Line],
    *,
    margins: Sequence[tuple[Words, Words]] = (),
    act: str = "",
    none: Words = say("There is no such number."),
) -> dict:
    """Return a matrix as a block.

    label    a description for screen readers
    margins  (title, explanation) of the columns at the right end
    act      the act of the panel that a click on a cell requests with {row, column}; its answer goes into the slot of
             the same name
    none     why a cell is empty
    """
    special, names = axis.special or [False] * len(axis.texts), axis.names or [""] * len(axis.texts)
    columns = [
        {"cell": "token", "text": text, "special": bool(dim), "name": name}
        for text, dim, name in zip(axis.texts, special, names, strict=True)
    ]
    return {
        "type": "matrix",
        "label": label,
        "columns": columns,
        "act": act,
        "none": none,
        "sight": axis.sight,
        "groups": [list(group) for group in axis.groups if group[1]],
        "margins": [list(heading) for heading in margins],
        "lines": [line.payload() for line in lines],
    }


def cells(values: Sequence[float], unit: Unit, *, limit: float = 0.0) -> list[dict | None]:
    """Return {text, share} of each value, None for NaN; share is that of the full colour, -1 to 1.

    limit: the value at full colour; 0: the largest.
    """
    values = np.asarray(values, np.float64)
    scale = limit or float(np.nanmax(np.abs(values), initial=0.0)) or 1.0

    def cell(value: float) -> dict | None:
        if np.isnan(value):
            return None
        text = f"{value:.0%}" if unit is Unit.SHARE else format_nats(value)
        return {"text": text, "share": round(float(np.clip(value / scale, -1, 1)), 3)}

    return [cell(value) for value in values.tolist()]


def margin(*parts: Words | str) -> list[dict]:
    """Return texts below each other in a margin."""
    return [_note(part) for part in parts]


def noted(words: Words) -> list[dict]:
    """Return a mark in a margin for a remark that is printed below the matrix."""
    return [_note("*", "noted", words)]


def sum_margin(total: Sum, unit: Unit = Unit.NATS) -> list[dict]:
    """Return a sum and its expected value for a margin, with the error as a tooltip."""
    format_value = (lambda value: f"{value:.0%}") if unit is Unit.SHARE else two_decimals
    words = say("{found} of {expected}", found=format_value(total.found), expected=format_value(total.expected))
    mark, look = ("✓", "holds") if total.holds else ("✗", "misses")
    return [_note(join((words, mark), " "), look, say("error {n}", n=compact(total.error, 2)))]


def _note(text: Words | str, look: str = "", about: Words | str = "") -> dict:
    return {"text": text, "look": look, "about": about}
