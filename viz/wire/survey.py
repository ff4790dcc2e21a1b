"""What travels to the page of a survey of heads: every statistic of every head, to be filtered there."""

from __future__ import annotations

import numpy as np

from model.trace.survey.statistics import STATISTICS
from model.trace.survey.survey import FALSE_DISCOVERIES, DirectionSurvey, KindSurvey
from viz.maps.labels import KIND_TITLES

PARTS = ("value", "low", "high")


def survey(found: DirectionSurvey) -> dict:
    """A block: the overview of all heads."""
    used = {name for kind in found.kinds.values() for name in kind.statistics}
    return {
        "type": "survey",
        "statistics": {name: {"title": s.title, "plain": s.plain, "exact": s.exact, "threshold": s.threshold,
                              "share": s.unit == "share"} for name, s in STATISTICS.items() if name in used},
        "kinds": [{"kind": kind.value, "title": KIND_TITLES[kind], **_kind(k)} for kind, k in found.kinds.items()]}


def _kind(found: KindSurvey) -> dict:
    """sure: whether a value differs from what random rows have."""
    layers, heads = found.shape
    return {"layers": layers, "heads": heads, "statistics": {
        name: {**{part: np.round(getattr(e, part).reshape(-1), 3).tolist() for part in PARTS},
               "sure": (e.adjusted.reshape(-1) <= FALSE_DISCOVERIES).tolist()}
        for name, e in found.statistics.items()}}


def take(done: int, of: int, sentences: int) -> dict:
    """A block: a survey that can be taken here, how much of it is done, or nothing yet."""
    return {"type": "take", "done": done, "of": of, "sentences": sentences}


def open_head(kind: str, layer: int, head: int) -> dict:
    """A block: a button that shows this head in the explorer."""
    return {"type": "open_head", "kind": kind, "layer": layer, "head": head}
