"""How faithful attribution methods are: how well each method's ranking of words predicts what removing words does.

`Faithfulness` is the table of a checkpoint. `spearman` and `bootstrap` are the statistics behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.trace.why.attribution import slug_of

RESAMPLES = 1000
MEASURES = ("agreement", "comprehensiveness", "sufficiency")
LEVEL = 0.95  # of intervals
BAR = 0.5  # the median agreement that a method needs to be recommended
MARGIN = 0.15  # by which it must beat raw attention


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of values [n], from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[inverse.reshape(-1)]


def spearman(first: np.ndarray, second: np.ndarray) -> float | None:
    """Return Spearman's rank correlation over the places where neither is NaN, ties with average ranks (Spearman 1904).

    None for fewer than three places, or if all values of one side are equal.
    """
    known = ~(np.isnan(first) | np.isnan(second))
    if known.sum() < 3:
        return None
    a, b = (average_ranks(values[known]) for values in (first, second))
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / size) if size > 0 else None


@dataclass(frozen=True)
class Interval:
    """A value, its bootstrap interval, and the number of sentences it is taken over."""

    value: float
    low: float
    high: float
    count: int


def bootstrap(values: Sequence[float | None], *, median: bool = False, seed: int = 0) -> Interval | None:
    """Return the mean, or the median, of one value per sentence, with its 95 % percentile interval (Efron 1979).

    None and non-finite values are left out; None if no value is left. The same values give the same interval.
    """
    known = np.array([value for value in values if value is not None and np.isfinite(value)], np.float64)
    if not len(known):
        return None
    middle = np.median if median else np.mean
    rows = np.random.default_rng(seed).integers(0, len(known), (RESAMPLES, len(known)))
    low, high = np.quantile(middle(known[rows], axis=1), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Interval(float(middle(known)), float(low), float(high), len(known))


@dataclass(frozen=True)
class Curves:
    """The scores of one method on one word, each a mean over numbers k of words in the method's order, in nats.

    They are those of DeYoung et al. (2020, section 4), on log-odds.

    agreement          rank correlation with the occlusion by another replacement; None if undefined
    comprehensiveness  what the metric loses without the first k words; large is good
    sufficiency        what it loses with the first k words alone; small is good
    """

    agreement: float | None
    comprehensiveness: float
    sufficiency: float


@dataclass(frozen=True)
class MethodFaithfulness:
    """One method's scores over all sentences.

    agreement is a median; comprehensiveness and sufficiency are means less those of a random order of the same words.
    randomised: stage -> the median rank correlation of the method's values with those of a model whose weights are
    redrawn down to that stage (Adebayo et al. 2018). A class-agnostic method does not see the output projection and
    cannot pass this test there.
    """

    method: str
    evidence: str
    class_agnostic: bool
    agreement: Interval | None
    comprehensiveness: Interval | None
    sufficiency: Interval | None
    randomised: dict[str, float | None]


@dataclass(frozen=True)
class Faithfulness:
    """All methods' scores for a checkpoint.

    corpus, sentences  where the sentences come from and how many there were, each with a question about one word
    scored_by          how words were removed
    """

    checkpoint: str
    digest: str
    directions: tuple[str, ...]
    corpus: str
    sentences: int
    scored_by: str
    methods: tuple[MethodFaithfulness, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages down to which weights were redrawn, from the top; empty if none were."""
        return next((tuple(method.randomised) for method in self.methods if method.randomised), ())

    def by_agreement(self) -> tuple[MethodFaithfulness, ...]:
        """Return the methods, the largest agreement first and those without one last."""

        def agreement(method: MethodFaithfulness) -> float:
            return -np.inf if method.agreement is None else method.agreement.value

        return tuple(sorted(self.methods, key=agreement, reverse=True))

    def markdown(self, titles: Mapping[str, str]) -> str:
        """Return the table for a model card, in the order of by_agreement(). titles: of methods by slug."""
        return _markdown(
            ("method", "kind", "agreement with occlusion", "comprehensiveness, nats", "sufficiency, nats"),
            [
                (titles[row.method], row.evidence, *map(_text, (row.agreement, row.comprehensiveness, row.sufficiency)))
                for row in self.by_agreement()
            ],
        )

    def cascade(self, titles: Mapping[str, str]) -> str:
        """Return a second table: each method's correlation after weights are redrawn, stage by stage."""
        rows = []
        for method in self.by_agreement():
            if method.randomised:
                title = f"{titles[method.method]}{' (class-agnostic)' if method.class_agnostic else ''}"
                values = (method.randomised[stage] for stage in self.stages)
                rows.append((title, *("none" if value is None else f"{value:.2f}" for value in values)))
        return _markdown(("redrawn down to", *self.stages), rows)


def best_method(table: Faithfulness, *, raw: str) -> MethodFaithfulness | None:
    """Return the method with the largest median agreement, or None if it is below BAR or too close to raw attention.

    raw: the slug of raw attention, which must be beaten by MARGIN. Of equal methods the first is returned.
    """
    agreement = {method.method: method.agreement.value for method in table.methods if method.agreement is not None}
    least = max(BAR, agreement[raw] + MARGIN) if raw in agreement else BAR
    passing = [method for method in table.methods if agreement.get(method.method, -np.inf) >= least]
    return max(passing, key=lambda method: agreement[method.method], default=None)


def from_dict(values: Any) -> Faithfulness:
    """Return the table that dataclasses.asdict() turned into `values`. Raises ValueError for anything else."""
    try:
        methods = tuple(
            MethodFaithfulness(
                **{
                    **method,
                    "method": slug_of(method["method"]),
                    **{name: method[name] and Interval(**method[name]) for name in MEASURES},
                }
            )
            for method in values["methods"]
        )
        return Faithfulness(**{**values, "directions": tuple(values["directions"]), "methods": methods})
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a table of faithfulness: {error!r}") from error


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join((lines[0], "|" + "---|" * len(head), *lines[1:]))


def _text(interval: Interval | None) -> str:
    return "none" if interval is None else f"{interval.value:.2f} ({interval.low:.2f} to {interval.high:.2f})"
