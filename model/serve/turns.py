"""A line for work that shares no batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from attention_atlas.model.serve.limits import BatchLimits, Busy


class Turns:
    """A line for work that shares no batch: `with turns.one():` waits for one of `at_once` turns, within the bounds on
    how many may wait and for how long. Raises Busy beyond them."""

    def __init__(self, limits: BatchLimits = BatchLimits()) -> None:
        self.limits = limits
        self._free = threading.Semaphore(limits.at_once)
        self._lock, self._waiting = threading.Lock(), 0

    @contextmanager
    def one(self) -> Iterator[None]:
        if not self._free.acquire(blocking=False):
            self._wait()
        try:
            with self.limits.share():
                yield
        finally:
            self._free.release()

    def _wait(self) -> None:
        with self._lock:
            if self._waiting >= self.limits.waiting:
                raise Busy.behind(self._waiting)
            self._waiting += 1
        try:
            if not self._free.acquire(timeout=self.limits.seconds):
                raise Busy.after(self.limits.seconds)
        finally:
            with self._lock:
                self._waiting -= 1
