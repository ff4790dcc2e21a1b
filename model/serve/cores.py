"""Independent pieces of work on several cores of a CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item, Result = TypeVar("Item"), TypeVar("Result")
_one_at_a_time = threading.Lock()  # the number of torch's threads belongs to the whole process


def map_over_cores(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """[work(item) for item in items], several at a time, with torch's threads divided among them.

    Small operations gain little from a second core; a second batch beside the first one does. Within another call of
    this function, or where there is nothing to divide, one item after another. The first error ends it.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(items))
    if workers < 2 or not _one_at_a_time.acquire(blocking=False):
        return [work(item) for item in items]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="map-over-cores")
    try:
        torch.set_num_threads(threads // workers)  # new threads begin with it
        return list(pool.map(work, items))
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
        _one_at_a_time.release()


def in_passing(work: Callable[..., Result], *arguments: object) -> Result:
    """work(*arguments), in a thread that ends with it: before a thread that lives on, such as that of the batches.

    Each thread has a team of torch's threads, which lives as long as the thread. Where teams are more than cores they
    sleep at once between two operations: beside the team of the thread that loaded a model of t5-base's size, a step of
    the batches' took 36 ms on two cores in place of 27."""
    with ThreadPoolExecutor(1, thread_name_prefix="in-passing") as passing:
        return passing.submit(work, *arguments).result()


class Cores:
    """The cores of one process, which the passes under way share: one alone has all of them. A pass that has begun
    keeps what it was given, and those that begin beside it take less, so that they are not many more than there are
    cores for long: more threads than cores spin, waiting for each other (measured 16 times slower)."""

    def __init__(self, number: int) -> None:
        """number: of the cores, at least 1"""
        self.number = number
        self._lock, self._under_way = threading.Lock(), 0

    @contextmanager
    def share(self) -> Iterator[None]:
        """For one pass in this thread: torch's threads are its share of the cores."""
        with self._lock:
            self._under_way += 1
            torch.set_num_threads(max(1, self.number // self._under_way))
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
