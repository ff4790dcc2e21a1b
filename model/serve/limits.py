"""How much goes through the model at once, and what is said to those who are too many."""

from __future__ import annotations

from dataclasses import dataclass

from model.trace.language import Refusal


class Busy(Refusal):
    """More requests wait than the bounds allow: the caller should come back later."""

    @classmethod
    def behind(cls, waiting: int) -> Busy:
        return Busy("The model is busy: {n} requests are waiting. Please try again in a moment.", n=waiting)

    @classmethod
    def after(cls, seconds: float) -> Busy:
        return Busy("The model is busy: no turn came within {n} seconds. Please try again in a moment.",
                    n=f"{seconds:g}")


@dataclass(frozen=True)
class BatchLimits:
    """How much goes through the model at once, and how long the line may be.

    rows      requests in one batch
    cells     rows x longest^2, the size of one padded attention map: what bounds a batch's memory
    at_once   batches that run at the same time
    waiting   requests that may stand in line
    seconds   how long one may stand there
    """

    rows: int = 16
    cells: int = 4 * 256 * 256
    at_once: int = 1
    waiting: int = 256
    seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in ("rows", "cells", "at_once", "waiting", "seconds"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, found {getattr(self, name)}")
