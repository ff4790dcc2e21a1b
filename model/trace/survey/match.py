"""Which head of one model is which of another, by what a survey says of both. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.survey.statistics import STATISTICS
from attention_atlas.model.trace.survey.survey import KindSurvey


@dataclass(frozen=True)
class Match:
    """Heads by number, layer after layer. other: the nearest of the other model's; distance: how far, as match() was
    given it; mutual: whether this one is also the nearest of that one's; nearness: 1 where the two are the same, 0
    where they are as far apart as two heads are on average, or farther."""

    head: int
    other: int
    distance: float
    mutual: bool
    nearness: float


def compared(one: KindSurvey, other: KindSurvey) -> tuple[str, ...]:
    """The statistics that both have of every head and that tell heads apart: shares, since importance depends on how
    many heads there are."""
    return tuple(
        name
        for name in one.statistics
        if name in other.statistics and STATISTICS[name].unit == "share" and np.ptp(_values(one, other, name)) > 0
    )


def distances(one: KindSurvey, other: KindSurvey) -> np.ndarray:
    """float64 [heads, the other's heads]: the root mean square over statistics of how far two heads' means are apart,
    each statistic in standard deviations over the heads of both. NaN where nothing is compared."""
    names = compared(one, other)
    if not names:
        return np.full((one.similarity.shape[0], other.similarity.shape[0]), np.nan)
    heads = one.similarity.shape[0]
    scaled = np.stack(
        [(values - values.mean()) / values.std() for values in (_values(one, other, name) for name in names)], -1
    )  # [heads of both, statistic]
    return np.sqrt(((scaled[:heads, None] - scaled[None, heads:]) ** 2).mean(-1))


def _values(one: KindSurvey, other: KindSurvey, name: str) -> np.ndarray:
    return np.concatenate([found.statistics[name].value.reshape(-1) for found in (one, other)])


def match(apart: np.ndarray) -> Sequence[Match]:
    """Of each head of one model [heads, the other's heads], the nearest first."""
    nearest, back = apart.argmin(1), apart.argmin(0)
    found = [
        Match(
            head,
            int(other),
            float(apart[head, other]),
            int(back[other]) == head,
            float(max(0.0, 1 - apart[head, other] / apart.mean())),
        )
        for head, other in enumerate(nearest)
    ]
    return sorted(found, key=lambda one: one.distance)
