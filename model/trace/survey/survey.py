"""The result of a survey: every head's statistics with intervals, the heads' names, and its JSON form.

match_heads() finds the most similar head of another model by these statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.trace.alignment import RowToken, Voter
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.statistics import STATISTICS

OWN = "own sentences"  # the corpus name of this project's own sentences
FALSE_DISCOVERIES = 0.05  # the share of all names that may be due to chance
EXAMPLES = ("most", "least", "typical")
DIGITS = 4
_INTERVAL = ("value", "low", "high", "adjusted")  # the arrays of an Estimate


@dataclass(frozen=True, eq=False)
class Estimate:
    """One statistic of every head of a kind, over many sentences.

    value, low, high  float64 [layers, heads]: the mean over sentences and its 95 % interval, from a bootstrap over
                      sentences
    adjusted          float64 [layers, heads]: the smallest false discovery rate, over heads and statistics, at which
                      the value differs from that of random rows (Benjamini and Hochberg 1995)
    chance            the mean for random rows
    sentences         the number of sentences with rows for the statistic
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    adjusted: np.ndarray
    chance: float
    sentences: int


@dataclass(frozen=True, eq=False)
class KindSurvey:
    """The survey of one kind of attention.

    statistics  by name
    examples    statistic -> "most", "least", "typical" -> int [layers, heads, 3]: lines of the project's own sentences
                in the source language, -1 for none
    similarity  float64 [head, head] over the heads of all layers: 1 less the mean Jensen-Shannon divergence, in bits,
                of their rows
    """

    statistics: Mapping[str, Estimate]
    examples: Mapping[str, Mapping[str, np.ndarray]]
    similarity: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """(layers, heads)."""
        return next(iter(self.statistics.values())).value.shape

    def head_names(self) -> list[list[tuple[str, ...]]]:
        """Return the names of each head, [layer][head], most certain first."""
        layers, heads = self.shape
        return [[self._names(layer, head) for head in range(heads)] for layer in range(layers)]

    def leading(self, layer: int, head: int) -> str | None:
        """Return the statistic with the largest value in relation to its threshold, among those above chance, or None
        if there is none."""
        ratios = {
            name: float(estimate.value[layer, head]) / STATISTICS[name].threshold
            for name, estimate in self.statistics.items()
            if STATISTICS[name].threshold is not None
            and estimate.adjusted[layer, head] <= FALSE_DISCOVERIES
            and estimate.value[layer, head] > estimate.chance
        }
        return max(ratios, key=ratios.get, default=None)

    def _names(self, layer: int, head: int) -> tuple[str, ...]:
        margins = {
            name: float(estimate.low[layer, head]) - STATISTICS[name].threshold
            for name, estimate in self.statistics.items()
            if STATISTICS[name].threshold is not None and estimate.adjusted[layer, head] <= FALSE_DISCOVERIES
        }
        return tuple(name for name in sorted(margins, key=margins.get, reverse=True) if margins[name] > 0)


@dataclass(frozen=True, eq=False)
class DirectionSurvey:
    """The survey of one language pair.

    corpus      what the sentences are
    sentences   the number of sentences that were read
    skipped     the number of empty or too long ones
    ablated     the number of sentences on which heads were ablated
    references  whether the targets are reference translations; otherwise they are the model's
    linked_by   the heads that words were linked by; empty if no words were linked
    """

    corpus: str
    sentences: int
    skipped: int
    ablated: int
    references: bool
    kinds: Mapping[AttentionKind, KindSurvey]
    linked_by: tuple[Voter, ...] = ()


@dataclass(frozen=True, eq=False)
class Survey:
    """The surveys of all language pairs of a checkpoint. digest: of the weights."""

    checkpoint: str
    digest: str
    directions: Mapping[str, DirectionSurvey]


def adjust_p_values(p: np.ndarray) -> np.ndarray:
    """Adjust p-values (Benjamini and Hochberg): the k-th smallest of m becomes the least p(i) m / i over i >= k."""
    flat = p.reshape(-1)
    order = np.argsort(flat, kind="stable")
    scaled = flat[order] * flat.size / np.arange(1, flat.size + 1)
    adjusted = np.empty_like(scaled)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted.reshape(p.shape)


def to_json(survey: Survey) -> dict:
    """Convert to JSON-ready data, with rounded numbers."""
    return {
        "format": 1,
        "checkpoint": survey.checkpoint,
        "digest": survey.digest,
        "directions": {
            name: {
                **vars(direction),
                "kinds": {kind.value: _kind_to_json(kind_survey) for kind, kind_survey in direction.kinds.items()},
                "linked_by": [[voter.layer, voter.head, voter.row.value] for voter in direction.linked_by],
            }
            for name, direction in survey.directions.items()
        },
    }


def _kind_to_json(survey: KindSurvey) -> dict:
    layers, heads = survey.shape
    upper = np.triu_indices(layers * heads, 1)
    return {
        "shape": [layers, heads],
        "statistics": {
            name: {
                **{part: _round(getattr(estimate, part)) for part in _INTERVAL},
                "chance": round(estimate.chance, DIGITS),
                "sentences": estimate.sentences,
            }
            for name, estimate in survey.statistics.items()
        },
        "examples": {
            name: {rank: lines.reshape(-1).tolist() for rank, lines in by_rank.items()}
            for name, by_rank in survey.examples.items()
        },
        "similarity": _round(survey.similarity[upper], 3),
    }


def _round(values: np.ndarray, digits: int = DIGITS) -> list[float]:
    return [
        float(f"{value:.{digits}g}") if abs(value) < 0.1 else round(float(value), digits)
        for value in values.reshape(-1)
    ]


def survey_from_json(data: Any) -> Survey:
    """Read the result of to_json(). ValueError for anything else."""
    try:
        if data["format"] != 1:
            raise ValueError(f"its format is {data['format']!r}, expected 1")
        directions = {
            str(name): DirectionSurvey(
                str(direction["corpus"]),
                int(direction["sentences"]),
                int(direction["skipped"]),
                int(direction["ablated"]),
                bool(direction["references"]),
                {AttentionKind(kind): _kind_from_json(fields) for kind, fields in direction["kinds"].items()},
                tuple(  # missing in old files
                    Voter(int(layer), int(head), RowToken(row), False)
                    for layer, head, row in direction.get("linked_by", ())
                ),
            )
            for name, direction in data["directions"].items()
        }
        return Survey(str(data["checkpoint"]), str(data["digest"]), directions)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"this is no survey of heads: {error!r}") from error


def _kind_from_json(data: dict) -> KindSurvey:
    layers, heads = (int(n) for n in data["shape"])

    def to_grid(numbers: list, *rest: int) -> np.ndarray:
        return np.array(numbers, np.float64).reshape(layers, heads, *rest)

    statistics = {
        name: Estimate(
            *(to_grid(fields[part]) for part in _INTERVAL), float(fields["chance"]), int(fields["sentences"])
        )
        for name, fields in data["statistics"].items()
        if name in STATISTICS
    }
    similarity = np.eye(layers * heads)
    upper = np.triu_indices(layers * heads, 1)
    similarity[upper] = data["similarity"]
    return KindSurvey(
        statistics,
        {
            name: {rank: to_grid(by_rank[rank], 3).astype(int) for rank in EXAMPLES}
            for name, by_rank in data["examples"].items()
            if name in statistics
        },
        np.maximum(similarity, similarity.T),
    )


@dataclass(frozen=True)
class Match:
    """A head and the most similar head of another model. Heads are numbered layer after layer.

    other     the other model's nearest head
    distance  to it, as in head_distances()
    mutual    whether this head is also the nearest of that one
    nearness  1 if the two are equal, 0 if they are at least as far apart as two heads on average
    """

    head: int
    other: int
    distance: float
    mutual: bool
    nearness: float


def comparable_statistics(survey: KindSurvey, other: KindSurvey) -> tuple[str, ...]:
    """Return the names of the statistics that both surveys have and that differ between heads.

    Only shares are comparable: importance depends on the number of heads.
    """
    return tuple(
        name
        for name in survey.statistics
        if name in other.statistics and STATISTICS[name].unit == "share" and np.ptp(_values(survey, other, name)) > 0
    )


def head_distances(survey: KindSurvey, other: KindSurvey) -> np.ndarray:
    """Return the distances between the heads of two models, float64 [head, other's head].

    The distance is the root mean square difference over the comparable statistics, each in standard deviations over the
    heads of both. NaN if no statistic is comparable.
    """
    names, heads = comparable_statistics(survey, other), survey.similarity.shape[0]
    if not names:
        return np.full((heads, other.similarity.shape[0]), np.nan)
    scaled = np.stack(
        [(values - values.mean()) / values.std() for values in (_values(survey, other, name) for name in names)], -1
    )  # [heads of both, statistic]
    return np.sqrt(((scaled[:heads, None] - scaled[None, heads:]) ** 2).mean(-1))


def _values(survey: KindSurvey, other: KindSurvey, name: str) -> np.ndarray:
    return np.concatenate([part.statistics[name].value.reshape(-1) for part in (survey, other)])


def match_heads(distances: np.ndarray) -> list[Match]:
    """Return the nearest head of the other model for each head, smallest distance first.

    distances: [head, other's head], as of head_distances().
    """
    nearest, nearest_back = distances.argmin(1), distances.argmin(0)
    matches = [
        Match(
            head,
            int(other),
            float(distances[head, other]),
            int(nearest_back[other]) == head,
            float(max(0.0, 1 - distances[head, other] / distances.mean())),
        )
        for head, other in enumerate(nearest)
    ]
    return sorted(matches, key=lambda match: match.distance)
