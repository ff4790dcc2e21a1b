"""What travels to the page of a survey of heads: every statistic of every head, to be filtered there."""

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

PARTS, FIELDS = ("value", "low", "high"), ("title", "plain", "exact", "threshold")  # of a measurement, a statistic
# What stands on a head's picture for a name: the picture is as large as a fingertip.
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


def describe_head(found: KindSurvey, layer: int, head: int, names: Sequence[str]) -> Words:
    """What a head does, and how much of it: of each of its names; without one, of its leading habit."""
    leading = [found.leading(layer, head)]
    said = [_grade(found, layer, head, name) for name in (names or leading) if name is not None]
    said = [words for words in said if words is not None]
    return join(said, "; ") if said else say("none of these habits stands out")


def _grade(found: KindSurvey, layer: int, head: int, name: str) -> Words | None:
    value = float(found.statistics[name].value[layer, head])
    does = {"does": STATISTICS[name].plain, "share": f"{value:.0%}"}
    if value >= 0.9:
        return say("almost always {does} ({share})", **does)
    if value >= 0.5:
        return say("mostly {does} ({share})", **does)
    return say("partly {does} ({share})", **does) if value >= 0.2 else None


def survey(found: DirectionSurvey, trace: TranslationTrace) -> dict:
    """A block: the overview of all heads. trace: what a link to it is to bring back beside it."""
    used = {name for kind in found.kinds.values() for name in kind.statistics}
    return {
        "type": "survey",
        "link": link_fields(trace, trace.decoding),
        "statistics": {
            name: {**{field: getattr(s, field) for field in FIELDS}, "share": s.unit == "share"}
            for name, s in STATISTICS.items()
            if name in used
        },
        "kinds": [{"kind": kind.value, "title": KIND_TITLES[kind], **_kind(k)} for kind, k in found.kinds.items()],
    }


def _kind(found: KindSurvey) -> dict:
    """sure: whether a value differs from that of random rows. graded: by head, what it does most."""
    layers, heads = found.shape
    return {
        "layers": layers,
        "heads": heads,
        "graded": [describe_head(found, layer, head, ()) for layer, head in np.ndindex(layers, heads)],
        "statistics": {
            name: {
                **{part: np.round(getattr(e, part).reshape(-1), 3).tolist() for part in PARTS},
                "sure": (e.adjusted.reshape(-1) <= FALSE_DISCOVERIES).tolist(),
            }
            for name, e in found.statistics.items()
        },
    }


@lru_cache(maxsize=16)  # it comes with every translation
def marks(found: DirectionSurvey | None) -> dict:
    """The names of heads, in few bytes, for whoever shows all heads at once: by statistic and kind its mark, its title,
    and [layer, head, mean weight] of the heads that have it."""
    if found is None:
        return {}
    by_name: dict[tuple[str, str], list[list]] = {}
    for kind, k in found.kinds.items():
        for layer, row in enumerate(k.head_names()):
            for head, names in enumerate(row):
                for name in names:
                    value = round(float(k.statistics[name].value[layer, head]), 2)
                    by_name.setdefault((kind.value, name), []).append([layer, head, value])
    return {
        "sentences": found.sentences,
        "named": [
            {"kind": kind, "mark": MARKS[name], "title": STATISTICS[name].title, "heads": heads}
            for (kind, name), heads in by_name.items()
        ],
    }


def work_block(work: str, begin: Words, about: Words) -> dict:
    """A block: work of many parts that can be done here. work: its key; begin: what the button says; about: what stands
    above it. The page then asks the panel again, with the key in the field "begun"."""
    return {"type": "take", "work": work, "begin": begin, "about": about}


def open_head(kind: str, layer: int, head: int) -> dict:
    """A block: a button that shows this head in the explorer."""
    return {"type": "open_head", "kind": kind, "layer": layer, "head": head}


def pick(title: Words, options: Sequence[Words], *, act: str, slot: str) -> dict:
    """A block: a menu. The number of what is chosen goes to an act as "option"; the answer takes the slot's place."""
    return {"type": "pick", "title": title, "options": list(options), "act": act, "slot": slot}
