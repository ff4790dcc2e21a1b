"""Stop work whose caller has gone away.

Whoever starts work on a caller's behalf runs it inside `cancelled_by(event)`. Long computations call
`raise_if_cancelled()` between their parts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_event: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


class Cancelled(Exception):
    """Nobody waits for the result any more."""


@contextmanager
def cancelled_by(event: threading.Event) -> Iterator[None]:
    """Work started in this context ends with Cancelled soon after the event is set."""
    before = _event.set(event)
    try:
        yield
    finally:
        _event.reset(before)


def raise_if_cancelled() -> None:
    """Raise Cancelled if the event of this context is set. Threads see the context that they were started with."""
    event = _event.get()
    if event is not None and event.is_set():
        raise Cancelled
