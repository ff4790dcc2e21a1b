"""Which picture to believe: how well each method's order of words holds when words are taken away. Importable without
torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.trace.why.rows import slug_of

RESAMPLES = 1000
MEASURES = ("agreement", "comprehensiveness", "sufficiency")
LEVEL = 0.95


@dataclass(frozen=True)
class Curves:
    """Of one method on one word, each a mean over numbers k of words in the method's order, in nats (DeYoung et al.
    2020, section 4, on log-odds).

    agreement          rank correlation with occlusion under the other replacement; None where it has none
    comprehensiveness  what the metric loses without the first k words: large is good
    sufficiency        what it loses with the first k words alone: small is good
    """

    agreement: float | None
    comprehensiveness: float
    sufficiency: float


@dataclass(frozen=True)
class Interval:
    """A value and its bootstrap interval over sentences."""

    value: float
    low: float
    high: float
    count: int


def bootstrap(values: Sequence[float | None], *, median: bool = False, seed: int = 0) -> Interval | None:
    """The mean, or the median, of one value a sentence, with a 95 % percentile interval over resampled sentences
    (Efron 1979). None counts for nothing; None if nothing is left. Equal values in equal order give equal intervals."""
    found = np.array([value for value in values if value is not None and np.isfinite(value)], np.float64)
    if not len(found):
        return None
    middle = np.median if median else np.mean
    rows = np.random.default_rng(seed).integers(0, len(found), (RESAMPLES, len(found)))
    low, high = np.quantile(middle(found[rows], axis=1), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Interval(float(middle(found)), float(low), float(high), len(found))


@dataclass(frozen=True)
class MethodFaithfulness:
    """One method over all sentences. agreement is a median; comprehensiveness and sufficiency are means less those of a
    random order of the same words. randomised: stage -> the median rank correlation of its values with those of a model
    whose weights are redrawn down to that stage (Adebayo et al. 2018); a class-agnostic method does not see the output
    projection and cannot pass there."""

    method: str
    evidence: str
    class_agnostic: bool
    agreement: Interval | None
    comprehensiveness: Interval | None
    sufficiency: Interval | None
    randomised: dict[str, float | None]


@dataclass(frozen=True)
class Faithfulness:
    """All methods of a checkpoint. sentences: how many were translated and asked about, one word each; corpus: of which
    corpora they are."""

    checkpoint: str
    digest: str
    directions: tuple[str, ...]
    corpus: str
    sentences: int
    scored_by: str
    methods: tuple[MethodFaithfulness, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """Down to where weights were redrawn, from the top; empty if they were not."""
        return next((tuple(found.randomised) for found in self.methods if found.randomised), ())

    def by_agreement(self) -> tuple[MethodFaithfulness, ...]:
        """The one that agrees best with occlusion first, those without an agreement last; equal ones as they stand."""
        return tuple(
            sorted(
                self.methods, key=lambda one: -np.inf if one.agreement is None else one.agreement.value, reverse=True
            )
        )

    def markdown(self, titles: Mapping[str, str]) -> str:
        """The table for a model card, in the order of by_agreement(). titles: of methods by slug."""
        return _markdown(
            ("method", "kind", "agreement with occlusion", "comprehensiveness, nats", "sufficiency, nats"),
            [
                (titles[one.method], one.evidence, *map(_text, (one.agreement, one.comprehensiveness, one.sufficiency)))
                for one in self.by_agreement()
            ],
        )

    def cascade(self, titles: Mapping[str, str]) -> str:
        """A second table: what is left of each method, weights redrawn stage by stage."""
        return _markdown(
            ("redrawn down to", *self.stages),
            [
                (
                    f"{titles[one.method]}{' (class-agnostic)' if one.class_agnostic else ''}",
                    *(
                        "none" if one.randomised[stage] is None else f"{one.randomised[stage]:.2f}"
                        for stage in self.stages
                    ),
                )
                for one in self.by_agreement()
                if one.randomised
            ],
        )


BAR = 0.5  # the median agreement that a row needs to stand first
MARGIN = 0.15  # by which it must beat raw attention


def first(table: Faithfulness, *, raw: str) -> MethodFaithfulness | None:
    """The method whose order of words agrees best with occlusion by another replacement, if its median reaches BAR and
    beats that of the method `raw` by MARGIN; None if there is no such method. Of equal ones, the first."""
    known = {found.method: found.agreement.value for found in table.methods if found.agreement is not None}
    least = max(BAR, known[raw] + MARGIN) if raw in known else BAR
    able = [found for found in table.methods if found.method in known and known[found.method] >= least]
    return max(able, key=lambda found: known[found.method], default=None)


def from_dict(values: Any) -> Faithfulness:
    """A table as dataclasses.asdict() takes it apart. ValueError for what is none."""
    try:
        methods = tuple(
            MethodFaithfulness(
                **{
                    **one,
                    "method": slug_of(one["method"]),
                    **{name: one[name] and Interval(**one[name]) for name in MEASURES},
                }
            )
            for one in values["methods"]
        )
        return Faithfulness(**{**values, "directions": tuple(values["directions"]), "methods": methods})
    except (TypeError, KeyError) as error:
        raise ValueError(f"this is no table of faithfulness: {error!r}") from error


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join((lines[0], "|" + "---|" * len(head), *lines[1:]))


def _text(found: Interval | None) -> str:
    return "none" if found is None else f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
