"""The limits on batches, texts and waiting requests."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import Any

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.serve.cores import Cores
from attention_atlas.model.trace.language import Refusal, say_plural

FLOAT = 4  # bytes of a number
MIN_TOKENS = 8  # that every model must allow a text


class Busy(Refusal):
    """More requests wait than the limits allow: the caller should try again later."""

    @classmethod
    def queue_full(cls, waiting: int) -> Busy:
        """Return the error for a request that finds `waiting` others before it."""
        return Busy.of(
            say_plural(
                "The model is busy: {n} request is waiting. Please try again in a moment.",
                "The model is busy: {n} requests are waiting. Please try again in a moment.",
                n=waiting,
            )
        )

    @classmethod
    def timed_out(cls, seconds: float) -> Busy:
        """Return the error for a request that has waited this long."""
        return Busy(
            "The model is busy: the request waited {n} seconds without a turn. Please try again in a moment.",
            n=f"{seconds:g}",
        )


@dataclass(frozen=True)
class BatchLimits:
    """How much goes through a model at once, and how many requests may wait. Raises ValueError for values up to 0.

    rows         requests in one batch
    batch_bytes  of one batch: its maps, records and logits; a single request may take more
    trace_bytes  of the maps of one trace: a larger trace stores queries and keys, and computes a map when it is read
                 (model.trace.maps)
    tokens       of each side of a text, where the model has positions for so many
    at_once      batches that run at the same time
    waiting      requests in the queue
    seconds      that a request may wait
    cores        shared by the batches and turns of a process; None: torch's threads stay as they are
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
        for name in (field.name for field in fields(self) if field.name != "cores"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, found {getattr(self, name)}")

    def share(self) -> AbstractContextManager[Any]:
        """Return a context in which one pass has its share of the cores."""
        return nullcontext() if self.cores is None else self.cores.share()

    def max_text_tokens(self, config: ModelConfig) -> int:
        """Return how many tokens each side of a text may have.

        The model has positions for them, and one such text is not larger than a batch. Raises ValueError if not even
        MIN_TOKENS fit.
        """
        most = min(config.reach, self.tokens)
        lengths = range(most + 1)
        fitting = bisect_right(lengths, self.batch_bytes, key=lambda n: FLOAT * config.long_text_numbers(n, n)) - 1
        if fitting < min(MIN_TOKENS, most):
            raise ValueError(
                f"this model is too large: what a text of {MIN_TOKENS} tokens leads to does not fit into "
                f"{self.batch_bytes:,} bytes"
            )
        return fitting

    def needs_long_text_cache(self, config: ModelConfig, source: int, target: int) -> bool:
        """Return whether the maps of a text of these lengths may exceed the limits on a trace or on a batch."""
        return (
            FLOAT * config.map_numbers(source, target) > self.trace_bytes
            or FLOAT * config.pass_numbers(source, target) > self.batch_bytes
        )
