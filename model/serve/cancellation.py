"""Stop a computation whose caller has gone away.

The caller's side runs work inside `cancelled_by(event)`; long computations call `raise_if_cancelled()` between parts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_event: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


class Cancelled(Exception):
    """The caller no longer waits for the result."""


@contextmanager
def cancelled_by(event: threading.Event) -> Iterator[None]:
    """Let work in this context end with Cancelled soon after the event is set."""
    token = _event.set(event)
    try:
        yield
    finally:
        _event.reset(token)


def raise_if_cancelled() -> None:
    """Raise Cancelled if this context's event is set. A new thread needs a copy of the context to see the event."""
    event = _event.get()
    if event is not None and event.is_set():
        raise Cancelled
