"""A derived map as the page draws it: its numbers, and everything that must be known to draw them rightly."""

from __future__ import annotations

import numpy as np

from model.trace.kinds import AttentionKind
from model.trace.scores import Groups, ScoreMap
from viz.wire.codecs import ROOT, SIGNED, Codec


def descriptor(name: str, title: str, kind: AttentionKind, found: ScoreMap) -> dict:
    """{id, title, kind, rows, columns, unit, signed, range, codec, data}, JSON-ready. rows, columns: {title, labels,
    positions}; range: the values at the two ends of the colours, of which 0 is one or, if signed, the middle."""
    codec = codec_for(found)
    return {
        "id": name,
        "title": title,
        "kind": kind.value,
        "unit": found.unit,
        "signed": found.signed,
        "range": limits(found),
        "rows": _axis(found.row_title, found.rows, found.row_positions),
        "columns": _axis(found.column_title, found.columns, found.column_positions),
        "codec": codec.name,
        "data": codec.encode(found.values),
    }


def codec_for(found: ScoreMap) -> Codec:
    """The one that holds a map's numbers most closely."""
    values = found.values
    within = not found.signed and values.size and values.min() >= 0 and values.max() <= 1  # not with a NaN either
    return ROOT if within else SIGNED


def limits(found: ScoreMap) -> list[float]:
    """[low, high] at full colour: the map's own, else its largest absolute value; even about 0 if it is signed."""
    low, high = found.limits or (0.0, float(np.nanmax(np.abs(found.values), initial=0.0)))
    end = max(abs(low), abs(high)) or 1.0
    return [-end if found.signed else 0.0, end]


def _axis(title: str, names: tuple[str, ...], positions: Groups) -> dict:
    return {"title": title, "labels": list(names), "positions": [list(group) for group in positions]}
