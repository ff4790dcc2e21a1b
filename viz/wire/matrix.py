"""The tokens' matrix as a block of a panel; viz/web/why/matrix.js draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace.language import Words, say
from model.trace.why.columns import Columns
from model.trace.why.evidence import Evidence, Sum, Unit
from model.trace.why.rows import Row
from viz.wire.blocks import compact
from viz.wire.question import nats

EVIDENCE = {Evidence.MEASURED: say("measured"), Evidence.EXACT_SPLIT: say("exact split"), Evidence.PROXY: say("proxy")}


@dataclass(frozen=True)
class Line:
    """A row of the matrix: what is said of its method, and its answer; None while it is computed. layers: how many it
    can be asked about one by one; layer: the one it is about, from 1; 0: all. agreement: its rank correlation with
    occlusion under the other replacement."""

    name: Words
    evidence: Evidence
    unit: Unit
    done: Words
    misleads: Words
    class_agnostic: bool
    layers: int = 0
    layer: int = 0
    row: Row | None = None
    agreement: float | None = None


def matrix(columns: Columns, lines: Sequence[Line], *, limit: float, fold: int = 0) -> dict:
    """columns: words of the source, then of the prefix. limit: the nats at full colour, for all rows alike. fold: how
    many rows stand in sight before the others are asked for; 0: all."""
    words = [{"cell": "token", "text": label, "special": special}
             for label, special in zip(columns.labels, columns.special.tolist())]
    return {"type": "matrix", "columns": words, "source": len(columns.source), "fold": fold,
            "lines": [line_dict(line, limit) for line in lines]}


def line_dict(line: Line, limit: float) -> dict:
    """One line, JSON-ready: cells {text, share of the full colour from -1 to 1}, and what stands in the margin."""
    about = {"method": str(line.name), "name": line.name,
             "kind": line.evidence.value, "evidence": EVIDENCE[line.evidence],
             "about": [line.done, line.misleads, *(line.row.notes if line.row else ())],
             "layers": line.layers, "layer": line.layer,
             "same": say("the same for any contrast") if line.class_agnostic else ""}
    if line.row is None:
        return {**about, "cells": None, "sum": None, "agreement": ""}
    scale = limit if line.unit is Unit.NATS else float(np.nanmax(line.row.values, initial=0.0)) or 1.0
    return {**about, "cells": [_cell(value, line.unit, scale) for value in line.row.values.tolist()],
            "sum": None if line.row.sum is None else sum_words(line.row.sum, line.unit),
            "agreement": "–" if line.agreement is None else f"{line.agreement:.2f}".replace("-", "−")}


def sum_words(found: Sum, unit: Unit) -> dict:
    """{words, holds, error}: the sum beside what it should be."""
    if unit is Unit.SHARE:
        words = say("{found} of {expected}", found=f"{found.found:.0%}", expected=f"{found.expected:.0%}")
    else:
        words = say("{found} of {expected}", found=_two(found.found), expected=_two(found.expected))
    return {"words": words, "holds": found.holds, "error": say("error {n}", n=compact(found.error, 2))}


def _cell(value: float, unit: Unit, scale: float) -> dict | None:
    if np.isnan(value):
        return None
    text = f"{value:.0%}" if unit is Unit.SHARE else nats(value)
    return {"text": text, "share": round(float(np.clip(value / scale, -1, 1)), 3) if scale else 0.0}


def _two(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
