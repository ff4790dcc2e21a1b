"""How much goes through the model at once, and what is said to those who are too many."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from model.config import ModelConfig
from model.serve.cores import Cores
from model.trace.language import Refusal

FLOAT = 4  # bytes of a number
LEAST = 8  # tokens that a text has to be allowed


class Busy(Refusal):
    """More requests wait than the bounds allow: the caller should come back later."""

    @classmethod
    def behind(cls, waiting: int) -> Busy:
        return Busy("The model is busy: {n} requests are waiting. Please try again in a moment.", n=waiting)

    @classmethod
    def after(cls, seconds: float) -> Busy:
        return Busy(
            "The model is busy: no turn came within {n} seconds. Please try again in a moment.", n=f"{seconds:g}"
        )


@dataclass(frozen=True)
class BatchLimits:
    """How much goes through the model at once, and how long the line may be. How many sentences or tokens that is
    follows from the model's sizes.

    rows         requests in one batch
    batch_bytes  of one batch: its maps, records and logits. A request alone goes through whatever it takes
    trace_bytes  of the maps of one trace: what bounds the length of a text
    at_once      batches that run at the same time
    waiting      requests that may stand in line
    seconds      how long one may stand there
    cores        what the batches and turns of a process share; None: torch's threads stay as they are
    """

    rows: int = 16
    batch_bytes: int = 768_000_000
    trace_bytes: int = 64_000_000
    at_once: int = 1
    waiting: int = 256
    seconds: float = 60.0
    cores: Cores | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "batch_bytes", "trace_bytes", "at_once", "waiting", "seconds"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, found {getattr(self, name)}")

    def share(self) -> AbstractContextManager:
        """For one pass: its share of the cores."""
        return nullcontext() if self.cores is None else self.cores.share()

    def longest(self, config: ModelConfig) -> int:
        """Tokens that each side of a text may have: as many as the model takes, unless the maps of so many would be
        larger than a trace may be, or one such sentence larger than a batch. ValueError if not even 8 fit."""
        fitting = (
            bisect_right(
                range(config.max_length + 1),
                False,
                key=lambda n: (
                    not (
                        FLOAT * config.map_numbers(n, n) <= self.trace_bytes
                        and FLOAT * config.pass_numbers(n, n) <= self.batch_bytes
                    )
                ),
            )
            - 1
        )
        if fitting < min(LEAST, config.max_length):
            raise ValueError(
                f"this model is too large: the maps of one text of {LEAST} tokens do not fit into "
                f"{self.trace_bytes:,} bytes, or what leads to them into {self.batch_bytes:,}"
            )
        return fitting
