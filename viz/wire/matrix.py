"""A matrix of numbers as a block of a panel (viz/web/lab/matrix.js): coloured cells, and sums in the margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.language import Words, join, say
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit
from attention_atlas.viz.wire.blocks import compact
from attention_atlas.viz.wire.question import format_nats, with_minus_sign

EVIDENCE = {Evidence.MEASURED: say("measured"), Evidence.EXACT_SPLIT: say("exact split"), Evidence.PROXY: say("proxy")}


@dataclass(frozen=True)
class Line:
    """A row of a matrix.

    key      what the page calls it when it asks for what is behind a cell
    cells    of cells(); None: the page asks for the line by itself (the act "row" of its panel)
    margins  of margin(), one for each of the matrix's
    about    sentences that are shown when one points at its name
    layers, layer   how many layers it can be asked about one by one, and which it is about, from 1; 0: all together
    folded   whether it is out of sight until it is asked for
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
        """JSON-ready."""
        found = {"type": "line", **vars(self)}
        if (evidence := found.pop("evidence")) is not None:
            found |= {"kind": evidence.value, "evidence": EVIDENCE[evidence]}
        return found


@dataclass(frozen=True)
class Axis:
    """The columns of a matrix. groups: (title, how many columns), in order; texts: what each is called; special: which
    of them are dimmed; names: what is read out, where the text alone does not say it; sight: the column that must be
    seen at first, where there are more than the page is wide."""

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
    """label: for those who do not see it. margins: (title, about) of the columns at the right end. act: of the panel,
    which a click on a cell asks for with {row, column}, for the slot of that name. none: why a cell is empty."""
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
        "margins": [list(one) for one in margins],
        "lines": [line.payload() for line in lines],
    }


def cells(values: Sequence[float], unit: Unit, *, limit: float = 0.0) -> list[dict | None]:
    """{text, share of the full colour, -1 to 1} of each value, None for NaN. limit: at full colour; 0: the largest."""
    values = np.asarray(values, np.float64)
    scale = limit or float(np.nanmax(np.abs(values), initial=0.0)) or 1.0

    def cell(value: float) -> dict | None:
        if np.isnan(value):
            return None
        text = f"{value:.0%}" if unit is Unit.SHARE else format_nats(value)
        return {"text": text, "share": round(float(np.clip(value / scale, -1, 1)), 3)}

    return [cell(value) for value in values.tolist()]


def margin(*parts: Words | str) -> list[dict]:
    """Words in a margin, one below the other."""
    return [_note(part) for part in parts]


def noted(words: Words) -> list[dict]:
    """A mark in a margin, whose words stand below the matrix."""
    return [_note(words, "noted")]


def sum_margin(found: Sum, unit: Unit = Unit.NATS) -> list[dict]:
    """A sum beside what it should be, its error when one points at it."""
    written = (lambda value: f"{value:.0%}") if unit is Unit.SHARE else two_decimals
    words = say("{found} of {expected}", found=written(found.found), expected=written(found.expected))
    mark, look = ("✓", "holds") if found.holds else ("✗", "misses")
    return [_note(join((words, mark), " "), look, say("error {n}", n=compact(found.error, 2)))]


def _note(text: Words | str, look: str = "", about: Words | str = "") -> dict:
    return {"text": text, "look": look, "about": about}


def two_decimals(value: float) -> str:
    """A number to two decimals."""
    return with_minus_sign(f"{value:.2f}")
