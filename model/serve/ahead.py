"""Epochs that are drawn by other processes while this one trains: an accelerator would wait for them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """draw(0), draw(1) and so on, each begun before it is asked for; draw is a function of the number alone.

    Processes begin as copies of this one, so that what they draw from is neither handed over nor held twice: they have
    to begin before a device is used. workers 0: everything is drawn here, when it is asked for. ValueError where the
    system has no such copies.
    """

    def __init__(self, draw: Callable[[int], T], workers: int) -> None:
        if workers and "fork" not in multiprocessing.get_all_start_methods():
            raise ValueError("this system cannot draw epochs in other processes: leave out --workers")
        self.draw, self.workers = draw, workers
        self.begun: dict[int, Future[T]] = {}
        self.processes = None
        if workers:
            context = multiprocessing.get_context("fork")
            self.processes = ProcessPoolExecutor(workers, mp_context=context, initializer=_keep, initargs=(draw,))
            self.processes.submit(int).result()  # they begin with the first call

    def __call__(self, number: int) -> T:
        if self.processes is None:
            return self.draw(number)
        for later in range(number, number + 1 + self.workers):
            if later not in self.begun:
                self.begun[later] = self.processes.submit(_drawn, later)
        return self.begun.pop(number).result()

    def close(self) -> None:
        """What nobody will ask for is not waited for."""
        if self.processes is not None:
            self.processes.shutdown(wait=False, cancel_futures=True)


_draw: Callable[[int], object] | None = None  # of this process, where it is one that draws


def _keep(draw: Callable[[int], object]) -> None:
    global _draw
    _draw = draw
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Where that one is killed, nobody closes the queue that a process would wait at for good."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _drawn(number: int) -> object:
    assert _draw is not None
    return _draw(number)
