"""What heads do for one written token, and for a whole translation. Importable without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind, NamedEnum
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.why.evidence import Evidence, Unit
from attention_atlas.model.trace.why.rows import by_layer

Head = tuple[AttentionKind, int, int]  # kind, layer, head: as in Interventions.heads_off


class Replacement(NamedEnum):
    """What is heard of a head that is switched off.

    ZERO      nothing (Michel et al. 2019); it also takes away what the head always says
    MEAN      what it says on average over many sentences (Wang et al. 2022)
    RESAMPLE  what it says at the same relative position of another sentence (Chan et al. 2022)
    """

    ZERO = "zero"
    MEAN = "mean"
    RESAMPLE = "resample"


@dataclass(frozen=True, eq=False)
class HeadEffects(Result):
    """m(all heads) - m(without one), in nats, positive where the head spoke for the token.

    effects  kind -> float64 [layers, heads]; measured, or estimated by the gradient of its gate (a proxy); NaN where it
             is not measured yet
    flips    kind -> bool [layers, heads]: without the head another token is the most probable; None where estimated
    draws    over how many other sentences it is a mean
    """

    replacement: Replacement
    evidence: Evidence
    effects: dict[AttentionKind, np.ndarray]
    flips: dict[AttentionKind, np.ndarray] | None = None
    draws: int = 1
    unit: Unit = Unit.NATS

    def columns_of_table(self) -> dict[str, Any]:
        """A line for each head: `kind`, `layer`, `head`, `effect` in nats, and `flips` where that was seen."""
        heads = [(kind, *place) for kind, values in self.effects.items() for place in np.ndindex(values.shape)]
        found = {"effect": self.effects} if self.flips is None else {"effect": self.effects, "flips": self.flips}
        return {
            **_named(heads),
            **{name: [values[kind][layer, head] for kind, layer, head in heads] for name, values in found.items()},
        }

    def about(self) -> str:
        return f"what the token loses without each head, {self.evidence.value}, replaced by {self.replacement.value}"

    def ranked(self) -> list[tuple[Head, float]]:
        """Every head with its effect, the largest first, those without one last."""
        found = [
            ((kind, int(layer), int(head)), float(values[layer, head]))
            for kind, values in self.effects.items()
            for layer, head in np.ndindex(values.shape)
        ]
        return sorted(found, key=lambda pair: (bool(np.isnan(pair[1])), -pair[1]))

    def by_size(self) -> list[Head]:
        """Every head, the one with the largest effect in either direction first."""
        return [head for head, _ in sorted(self.ranked(), key=lambda pair: -abs(pair[1]))]


def effects_table(*several: HeadEffects) -> dict:
    """For model.trace.why.plain: a row for each kind and layer of each, a column a head; flips: None where not seen."""
    rows = [
        {**row, "flips": None if found.flips is None else found.flips[kind][row["layer"]]}
        for found in several
        for kind, effects in found.effects.items()
        for row in by_layer(effects, found.evidence, found.unit, kind=kind)
    ]
    first = several[0]
    return {"replacement": first.replacement, "draws": first.draws, "columns": _columns(rows), "rows": rows}


@dataclass(frozen=True)
class SmallestSet(Result):
    """Heads with which alone the model still writes the same translation, and no fewer of them.

    kept      the heads; without any single one of them, the translation changes
    passes    how many sets of heads were tried
    verified  decoding again with the kept heads alone gave the same tokens
    """

    kept: frozenset[Head]
    total: int
    passes: int
    verified: bool

    def columns_of_table(self) -> dict[str, Any]:
        """A line for each head that is kept: `kind`, `layer`, `head`."""
        return _named(sorted(self.kept))

    def about(self) -> str:
        return f"{len(self.kept)} of {self.total} heads write the same translation"

    def as_plain(self) -> dict[str, Any]:
        """For model.trace.why.plain."""
        return {"kept": self.kept, "heads": self.total, "tried": self.passes, "verified": self.verified}


def sets_table(
    sets: Sequence[SmallestSet],
    replacement: Replacement,
    layers: Mapping[AttentionKind, int],
    heads: Mapping[AttentionKind, int],
) -> dict:
    """For model.trace.why.plain: a row for each order, kind and layer, 1 for a head that the translation needs, 0 for
    one that could go. layers: of each kind; heads: of each in a layer."""
    rows = [
        row
        for order, one in enumerate(sets)
        for kind, depth in layers.items()
        for row in by_layer(
            np.array(
                [[float((kind, layer, head) in one.kept) for head in range(heads[kind])] for layer in range(depth)]
            ),
            Evidence.MEASURED,
            "needed",
            order=order,
            kind=kind,
        )
    ]
    return {"replacement": replacement, "columns": _columns(rows), "sets": sets, "rows": rows}


def _named(heads: Sequence[Head]) -> dict[str, list]:
    return {
        "kind": [kind.value for kind, _, _ in heads],
        "layer": [layer for _, layer, _ in heads],
        "head": [head for _, _, head in heads],
    }


def _columns(rows: Sequence[Mapping]) -> list[str]:
    return [f"head {head}" for head in range(max(len(row["values"]) for row in rows))]
