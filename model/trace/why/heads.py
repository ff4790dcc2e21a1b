"""What heads do for one written token, and for a whole translation. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from model.trace.kinds import AttentionKind
from model.trace.why.evidence import Evidence, Unit

Head = tuple[AttentionKind, int, int]  # kind, layer, head: as in Interventions.heads_off


class Replacement(str, Enum):
    """What is heard of a head that is switched off.

    ZERO      nothing (Michel et al. 2019); it also takes away what the head always says
    MEAN      what it says on average over many sentences (Wang et al. 2022)
    RESAMPLE  what it says at the same relative position of another sentence (Chan et al. 2022)
    """

    ZERO = "zero"
    MEAN = "mean"
    RESAMPLE = "resample"


@dataclass(frozen=True, eq=False)
class HeadEffects:
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


@dataclass(frozen=True)
class SmallestSet:
    """Heads with which alone the model still writes the same translation, and no fewer of them.

    kept      the heads; without any single one of them, the translation changes
    passes    how many sets of heads were tried
    verified  decoding again with the kept heads alone gave the same tokens
    """

    kept: frozenset[Head]
    total: int
    passes: int
    verified: bool
