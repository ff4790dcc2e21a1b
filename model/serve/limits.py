"""How much goes through the model at once, and what is said to those who are too many."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.serve.cores import Cores
from attention_atlas.model.trace.language import Refusal, say_plural

FLOAT = 4  # bytes of a number
LEAST = 8  # tokens that a text has to be allowed


class Busy(Refusal):
    """More requests wait than the bounds allow: the caller should come back later."""

    @classmethod
    def behind(cls, waiting: int) -> Busy:
        return Busy.of(
            say_plural(
                "The model is busy: {n} request is waiting. Please try again in a moment.",
                "The model is busy: {n} requests are waiting. Please try again in a moment.",
                n=waiting,
            )
        )

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
    trace_bytes  of the maps of one trace: where a text's would be more, the trace keeps queries and keys in their
                 place, and computes a map when it is looked at (model.trace.maps)
    tokens       of each side of a text, where the model has a code for so many positions
    at_once      batches that run at the same time
    waiting      requests that may stand in line
    seconds      how long one may stand there
    cores        what the batches and turns of a process share; None: torch's threads stay as they are
    """

    rows: int = 24
    batch_bytes: int = 768_000_000
    trace_bytes: int = 64_000_000
    tokens: int = 1024
    at_once: int = 1
    waiting: int = 256
    seconds: float = 60.0
    cores: Cores | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "batch_bytes", "trace_bytes", "tokens", "at_once", "waiting", "seconds"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, found {getattr(self, name)}")

    def share(self) -> AbstractContextManager[Any]:
        """For one pass: its share of the cores."""
        return nullcontext() if self.cores is None else self.cores.share()

    def longest(self, config: ModelConfig) -> int:
        """Tokens that each side of a text may have: as many as there are positions for, unless one such sentence would
        be larger than a batch. ValueError if not even 8 fit."""
        most = min(config.reach, self.tokens)
        fitting = (
            bisect_right(
                range(most + 1),
                False,
                key=lambda n: FLOAT * config.held_numbers(n, n) > self.batch_bytes,
            )
            - 1
        )
        if fitting < min(LEAST, most):
            raise ValueError(
                f"this model is too large: what a text of {LEAST} tokens leads to does not fit into "
                f"{self.batch_bytes:,} bytes"
            )
        return fitting

    def holds(self, config: ModelConfig, source: int, target: int) -> bool:
        """Whether of a text of so many tokens, and as many as its translation may get, queries and keys are held: its
        maps might be larger than a trace may be, or what leads to them larger than a batch."""
        return (
            FLOAT * config.map_numbers(source, target) > self.trace_bytes
            or FLOAT * config.pass_numbers(source, target) > self.batch_bytes
        )
