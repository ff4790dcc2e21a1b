"""Measured effects of taking heads or words away: from one token (HeadEffects, Losses, Removal) or a whole translation
(SmallestSet)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind, NamedEnum
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.why.attribution import rows_by_layer
from attention_atlas.model.trace.why.evidence import Evidence, Unit

Head = tuple[AttentionKind, int, int]  # kind, layer, head: as in Interventions.heads_off


class Replacement(NamedEnum):
    """The value that replaces an ablated head's output.

    ZERO      zeros (Michel et al. 2019); this also removes what the head writes for every input
    MEAN      its mean over many sentences (Wang et al. 2022)
    RESAMPLE  its output at the same relative position of another sentence (Chan et al. 2022)
    """

    ZERO = "zero"
    MEAN = "mean"
    RESAMPLE = "resample"


@dataclass(frozen=True, eq=False)
class HeadEffects(Result):
    """The effect of each head on one token: m(all heads) - m(without the head), in nats.

    effects  kind -> float64 [layers, heads]; positive if the head speaks for the token. Measured, or estimated by the
             gradient of the head's gate (a proxy); NaN if not measured yet
    flips    kind -> bool [layers, heads]: whether another token becomes the most probable; None if estimated
    draws    number of other sentences that the effects are a mean over
    """

    replacement: Replacement
    evidence: Evidence
    effects: dict[AttentionKind, np.ndarray]
    flips: dict[AttentionKind, np.ndarray] | None = None
    draws: int = 1
    unit: Unit = Unit.NATS

    def columns_of_table(self) -> dict[str, Any]:
        """Return a table with a line for each head: `kind`, `layer`, `head`, `effect` in nats, `flips` if measured."""
        heads = [(kind, *place) for kind, values in self.effects.items() for place in np.ndindex(values.shape)]
        columns = {"effect": self.effects} if self.flips is None else {"effect": self.effects, "flips": self.flips}
        return {
            **_head_columns(heads),
            **{name: [values[kind][layer, head] for kind, layer, head in heads] for name, values in columns.items()},
        }

    def about(self) -> str:
        return f"what the token loses without each head, {self.evidence.value}, replaced by {self.replacement.value}"

    def ranked(self) -> list[tuple[Head, float]]:
        """Return every head with its effect, the largest first and NaN last."""
        effects = [
            ((kind, int(layer), int(head)), float(values[layer, head]))
            for kind, values in self.effects.items()
            for layer, head in np.ndindex(values.shape)
        ]
        return sorted(effects, key=lambda pair: (bool(np.isnan(pair[1])), -pair[1]))

    def by_size(self) -> list[Head]:
        """Return every head, the largest absolute effect first."""
        return [head for head, _ in sorted(self.ranked(), key=lambda pair: -abs(pair[1]))]


def effects_table(*effects: HeadEffects) -> dict:
    """Return several effects as one table for to_jsonable(): a row for each kind and layer, a column for each head."""
    rows = [
        {**row, "flips": None if one.flips is None else one.flips[kind][row["layer"]]}
        for one in effects
        for kind, values in one.effects.items()
        for row in rows_by_layer(values, one.evidence, one.unit, kind=kind)
    ]
    first = effects[0]
    return {"replacement": first.replacement, "draws": first.draws, "columns": _column_names(rows), "rows": rows}


@dataclass(frozen=True)
class SmallestSet(Result):
    """A set of heads with which alone the model still writes the same translation.

    kept      the heads; without any single one of them the translation changes
    total     number of heads of the model
    passes    number of sets of heads that were tried
    verified  whether decoding again with these heads alone gave the same tokens
    """

    kept: frozenset[Head]
    total: int
    passes: int
    verified: bool

    def columns_of_table(self) -> dict[str, Any]:
        """Return a table with a line for each head of the set: `kind`, `layer`, `head`."""
        return _head_columns(sorted(self.kept))

    def about(self) -> str:
        return f"{len(self.kept)} of {self.total} heads write the same translation"

    def as_plain(self) -> dict[str, Any]:
        """Return the fields that to_jsonable() writes."""
        return {"kept": self.kept, "heads": self.total, "tried": self.passes, "verified": self.verified}


def sets_table(
    sets: Sequence[SmallestSet],
    replacement: Replacement,
    layers: Mapping[AttentionKind, int],
    heads: Mapping[AttentionKind, int],
) -> dict:
    """Return sets as one table for to_jsonable(): a row for each set, kind and layer; 1 for a head of the set, else 0.

    layers, heads: the number of layers of each kind, and of heads in each of its layers.
    """
    rows = []
    for order, smallest in enumerate(sets):
        for kind, depth in layers.items():
            places = [(kind, layer, head) for layer in range(depth) for head in range(heads[kind])]
            needed = np.array([place in smallest.kept for place in places], float).reshape(depth, -1)
            rows += rows_by_layer(needed, Evidence.MEASURED, "needed", order=order, kind=kind)
    return {"replacement": replacement, "columns": _column_names(rows), "sets": sets, "rows": rows}


def _head_columns(heads: Sequence[Head]) -> dict[str, list]:
    return {
        "kind": [kind.value for kind, _, _ in heads],
        "layer": [layer for _, layer, _ in heads],
        "head": [head for _, _, head in heads],
    }


def _column_names(rows: Sequence[Mapping]) -> list[str]:
    return [f"head {head}" for head in range(max(len(row["values"]) for row in rows))]


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses of the metric and of log p(token) without each word.

    The two differ if a word speaks for token and contrast alike: without it neither is written, and the metric hardly
    changes.

    metric, log_p        the question's metric and log p(token) of the plain run, in nats
    of_metric, of_log_p  float64 [column]: what each loses without the column's word
    ids, probabilities   int64 and float64 [1 + column, k]: the k most probable tokens of each run, the plain run first
    """

    metric: float
    log_p: float
    of_metric: np.ndarray
    of_log_p: np.ndarray
    ids: np.ndarray
    probabilities: np.ndarray
    evidence: Evidence = Evidence.MEASURED
    unit: Unit = Unit.NATS


@dataclass(frozen=True, eq=False)
class Removal:
    """The question's step before and after words, heads or anything else was taken away.

    before, after  the metric, in nats
    ids            the most probable tokens of both runs, and those of the question
    probabilities  float64 [2, token]: theirs before and after
    """

    before: float
    after: float
    ids: tuple[int, ...]
    probabilities: np.ndarray
    evidence: Evidence = Evidence.MEASURED
    unit: Unit = Unit.NATS
