"""What putting one run's activations into another changes, place by place. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from model.trace.kinds import AttentionKind, Side, SubLayerName
from model.trace.why.evidence import Evidence, Unit

LEAST_GAP = 1.0  # nats between the two runs: below it a recovered share is a quotient of nothings


class Direction(str, Enum):
    """DENOISE: the corrupt run receives what the clean one had there: is it enough? NOISE: the clean run receives the
    corrupt one's: is it needed? (Heimersheim and Nanda 2024)"""

    DENOISE = "denoise"
    NOISE = "noise"


@dataclass(frozen=True)
class StreamGrid:
    """The residual stream after each layer of a side, at each position."""

    side: Side


@dataclass(frozen=True)
class SubLayerGrid:
    """What one kind of sub-layer adds in each layer of a side, at each position."""

    side: Side
    sublayer: SubLayerName


@dataclass(frozen=True)
class HeadGrid:
    """What each head of a kind says, at all positions together."""

    kind: AttentionKind


Grid = StreamGrid | SubLayerGrid | HeadGrid


@dataclass(frozen=True, eq=False)
class PatchEffects:
    """metrics float64 [layers, positions or heads], in nats, of the receiving run with one place patched; NaN where the
    two sentences have no common place. base: the receiving run as it was; other: the run that gave.

    pairs  position of the giving run for each position of the receiving one, -1 for none; empty for heads
    """

    grid: Grid
    direction: Direction
    metrics: np.ndarray
    base: float
    other: float
    pairs: tuple[int, ...] = ()
    evidence: Evidence = Evidence.MEASURED
    unit: Unit = Unit.NATS

    @property
    def recovered(self) -> np.ndarray | None:
        """How much of the way from the receiving run to the giving one each place goes: 0 none, 1 all; it may be below
        or beyond. None where the two runs are less than 1 nat apart."""
        gap = self.other - self.base
        return None if abs(gap) < LEAST_GAP else (self.metrics - self.base) / gap
