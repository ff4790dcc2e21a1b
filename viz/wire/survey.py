"""Blocks of a survey of heads: every statistic of every head, which the page filters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from attention_atlas.model.trace.survey.statistics import STATISTICS
from attention_atlas.model.trace.survey.survey import FALSE_DISCOVERIES, DirectionSurvey, KindSurvey
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.maps.labels import KIND_TITLES
from attention_atlas.viz.wire.address import link_fields
from attention_atlas.viz.words import Words, join, say

PARTS, FIELDS = ("value", "low", "high"), ("title", "plain", "exact", "threshold")  # of an Estimate, a Statistic
# The marks of names on small pictures of heads.
MARKS = {
    "previous": "←",
    "itself": "○",
    "next": "→",
    "two_before": "←2",
    "three_before": "←3",
    "two_after": "→2",
    "three_after": "→3",
    "begin": "⇤",
    "end": "⇥",
    "punctuation": ".,",
    "breadth": "≈",
    "same_token": "=",
    "rare_token": "*",
    "diagonal": "↘",
    "induction": "↻",
    "alignment_read": "⇄",
    "alignment_predicted": "⇄+",
}


def describe_head(survey: KindSurvey, layer: int, head: int, names: Sequence[str]) -> Words:
    """Describe what a head does and how much: for each of its names or, without one, for its leading statistic."""
    names = names or filter(None, [survey.leading(layer, head)])
    grades = [grade for name in names if (grade := _grade(survey, layer, head, name))]
    return join(grades, "; ") if grades else say("none of these habits stands out")


def _grade(survey: KindSurvey, layer: int, head: int, name: str) -> Words | None:
    value = float(survey.statistics[name].value[layer, head])
    does = {"does": STATISTICS[name].plain, "share": f"{value:.0%}"}
    if value >= 0.9:
        return say("almost always {does} ({share})", **does)
    if value >= 0.5:
        return say("mostly {does} ({share})", **does)
    return say("partly {does} ({share})", **does) if value >= 0.2 else None


def survey(direction: DirectionSurvey, trace: TranslationTrace) -> dict:
    """Return the overview of all heads as a block. trace: the translation that a link to it opens."""
    used = {name for kind in direction.kinds.values() for name in kind.statistics}
    return {
        "type": "survey",
        "link": link_fields(trace, trace.decoding),
        "statistics": {
            name: {**{field: getattr(s, field) for field in FIELDS}, "share": s.unit == "share"}
            for name, s in STATISTICS.items()
            if name in used
        },
        "kinds": [{"kind": kind.value, "title": KIND_TITLES[kind], **_kind(k)} for kind, k in direction.kinds.items()],
    }


def _kind(survey: KindSurvey) -> dict:
    """sure: whether a value differs from that of random rows; graded: each head's description."""
    layers, heads = survey.shape
    return {
        "layers": layers,
        "heads": heads,
        "graded": [describe_head(survey, layer, head, ()) for layer, head in np.ndindex(layers, heads)],
        "statistics": {
            name: {
                **{part: np.round(getattr(e, part).reshape(-1), 3).tolist() for part in PARTS},
                "sure": (e.adjusted.reshape(-1) <= FALSE_DISCOVERIES).tolist(),
            }
            for name, e in survey.statistics.items()
        },
    }


@lru_cache(maxsize=16)  # sent with every translation
def marks(direction: DirectionSurvey | None) -> dict:
    """Return the heads' names in few bytes, for a view of all heads: for each statistic and kind its mark, its title,
    and [layer, head, mean weight] of the heads that have it."""
    if direction is None:
        return {}
    by_name: dict[tuple[str, str], list[list]] = {}
    for kind, k in direction.kinds.items():
        for layer, row in enumerate(k.head_names()):
            for head, names in enumerate(row):
                for name in names:
                    value = round(float(k.statistics[name].value[layer, head]), 2)
                    by_name.setdefault((kind.value, name), []).append([layer, head, value])
    return {
        "sentences": direction.sentences,
        "named": [
            {"kind": kind, "mark": MARKS[name], "title": STATISTICS[name].title, "heads": heads}
            for (kind, name), heads in by_name.items()
        ],
    }
