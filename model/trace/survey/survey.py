"""What a survey found: every head's statistics with intervals, and its names. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.alignment import RowToken, Voter
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.statistics import STATISTICS

OWN = "own sentences"  # the name of this project's own as a corpus
FALSE_DISCOVERIES = 0.05  # of all names given, the share that may be chance's
EXAMPLES = ("most", "least", "typical")
DIGITS = 4


@dataclass(frozen=True, eq=False)
class Estimate:
    """One statistic over many sentences, of every head of a kind. value, low, high: float64 [layers, heads], a mean
    over sentences and the 95 % interval of a bootstrap over sentences. adjusted: [layers, heads], the smallest share of
    false discoveries among heads and statistics at which this one differs from random rows (Benjamini and Hochberg
    1995). chance: the same mean for random rows. sentences: how many had rows for it."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    adjusted: np.ndarray
    chance: float
    sentences: int


@dataclass(frozen=True, eq=False)
class KindSurvey:
    """One kind of attention. statistics: by name. examples: statistic -> "most", "least", "typical" -> int [layers,
    heads, 3], lines of the project's own sentences in the source language, −1 for none. similarity: float64 [heads of
    all layers, the same], 1 less the mean Jensen-Shannon divergence in bits of two heads' rows."""

    statistics: Mapping[str, Estimate]
    examples: Mapping[str, Mapping[str, np.ndarray]]
    similarity: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and heads."""
        return next(iter(self.statistics.values())).value.shape

    def named(self, thresholds: Mapping[str, float] = {}) -> list[list[tuple[str, ...]]]:
        """[layer][head] the names of each head, the surest first: none, one or several. thresholds: other ones than the
        statistics' own."""
        layers, heads = self.shape
        return [[self._names(layer, head, thresholds) for head in range(heads)] for layer in range(layers)]

    def leading(self, layer: int, head: int) -> str | None:
        """The habit that comes closest to a name, or goes furthest beyond it, among those that a head has more of than
        random rows do; None: there is none."""
        found = {
            name: float(e.value[layer, head]) / STATISTICS[name].threshold
            for name, e in self.statistics.items()
            if STATISTICS[name].threshold is not None
            and e.adjusted[layer, head] <= FALSE_DISCOVERIES
            and e.value[layer, head] > e.chance
        }
        return max(found, key=found.get, default=None)

    def _names(self, layer: int, head: int, thresholds: Mapping[str, float]) -> tuple[str, ...]:
        found = []
        for name, estimate in self.statistics.items():
            threshold = thresholds.get(name, STATISTICS[name].threshold)
            if threshold is not None and estimate.adjusted[layer, head] <= FALSE_DISCOVERIES:
                found.append((float(estimate.low[layer, head]) - threshold, name))
        return tuple(name for margin, name in sorted(found, key=lambda pair: -pair[0]) if margin > 0)


@dataclass(frozen=True, eq=False)
class DirectionSurvey:
    """One direction. corpus: what the sentences are; sentences: how many were read; skipped: empty or too long ones;
    ablated: on how many heads were switched off; references: whether the targets were people's (else the model's);
    linked_by: the heads that linked words, chosen by agreement; none where nothing was linked."""

    corpus: str
    sentences: int
    skipped: int
    ablated: int
    references: bool
    kinds: Mapping[AttentionKind, KindSurvey]
    linked_by: tuple[Voter, ...] = ()


@dataclass(frozen=True, eq=False)
class Survey:
    """All directions of a checkpoint. digest: of the weights."""

    checkpoint: str
    digest: str
    directions: Mapping[str, DirectionSurvey]


def adjusted(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's adjusted p-values, same shape: the k-th smallest of m becomes the least p(i) m / i over
    i >= k."""
    flat = p.reshape(-1)
    order = np.argsort(flat, kind="stable")
    scaled = flat[order] * flat.size / np.arange(1, flat.size + 1)
    found = np.empty_like(scaled)
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return found.reshape(p.shape)


def to_json(survey: Survey) -> dict:
    """Plain values, numbers rounded to what a reader can use."""
    return {
        "format": 1,
        "checkpoint": survey.checkpoint,
        "digest": survey.digest,
        "directions": {name: _direction_json(found) for name, found in survey.directions.items()},
    }


def _direction_json(found: DirectionSurvey) -> dict:
    return {
        "corpus": found.corpus,
        "sentences": found.sentences,
        "skipped": found.skipped,
        "ablated": found.ablated,
        "references": found.references,
        "kinds": {kind.value: _kind_json(k) for kind, k in found.kinds.items()},
        "linked_by": [[v.layer, v.head, v.row.value] for v in found.linked_by],
    }


def _kind_json(found: KindSurvey) -> dict:
    layers, heads = found.shape
    upper = np.triu_indices(layers * heads, 1)
    return {
        "shape": [layers, heads],
        "statistics": {
            name: {
                **{part: _short(getattr(e, part)) for part in ("value", "low", "high", "adjusted")},
                "chance": round(e.chance, DIGITS),
                "sentences": e.sentences,
            }
            for name, e in found.statistics.items()
        },
        "examples": {
            name: {which: lines.reshape(-1).tolist() for which, lines in rows.items()}
            for name, rows in found.examples.items()
        },
        "similarity": _short(found.similarity[upper], 3),
    }


def _short(values: np.ndarray, digits: int = DIGITS) -> list[float]:
    return [
        float(f"{value:.{digits}g}") if abs(value) < 0.1 else round(float(value), digits)
        for value in values.reshape(-1)
    ]


def survey_from_json(values: object) -> Survey:
    """The survey of to_json(). ValueError for what is none."""
    try:
        if values["format"] != 1:
            raise ValueError(f"its format is {values['format']!r}, expected 1")
        return Survey(
            str(values["checkpoint"]),
            str(values["digest"]),
            {str(name): _direction(direction) for name, direction in values["directions"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"this is no survey of heads: {error!r}") from error


def _direction(values: dict) -> DirectionSurvey:
    return DirectionSurvey(
        str(values["corpus"]),
        int(values["sentences"]),
        int(values["skipped"]),
        int(values["ablated"]),
        bool(values["references"]),
        {AttentionKind(kind): _kind(k) for kind, k in values["kinds"].items()},
        # Older files do not say by which heads words were linked.
        tuple(Voter(int(layer), int(head), RowToken(row), False) for layer, head, row in values.get("linked_by", ())),
    )


def _kind(values: dict) -> KindSurvey:
    layers, heads = (int(n) for n in values["shape"])

    def grid(numbers: list, *rest: int) -> np.ndarray:
        return np.array(numbers, np.float64).reshape(layers, heads, *rest)

    statistics = {
        name: Estimate(
            *(grid(e[part]) for part in ("value", "low", "high", "adjusted")), float(e["chance"]), int(e["sentences"])
        )
        for name, e in values["statistics"].items()
        if name in STATISTICS
    }
    similarity = np.eye(layers * heads)
    upper = np.triu_indices(layers * heads, 1)
    similarity[upper] = values["similarity"]
    return KindSurvey(
        statistics,
        {
            name: {which: grid(rows[which], 3).astype(int) for which in EXAMPLES}
            for name, rows in values["examples"].items()
            if name in statistics
        },
        np.maximum(similarity, similarity.T),
    )


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
