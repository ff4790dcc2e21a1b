"""Independent pieces of work on several cores of a CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

from attention_atlas.model.serve.cancellation import raise_if_cancelled

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
        return _one_by_one(work, items)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="map-over-cores")
    try:
        torch.set_num_threads(threads // workers)  # new threads begin with it
        return list(pool.map(work, items))
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
        _one_at_a_time.release()


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """[work(item) for item in items], on a second core of those that this pass shares for as long as nobody else needs
    it: that is asked before each item. Torch's operations let other threads of Python run.

    Within another call of this function, or outside a share of cores, one item after another. The first error ends it.
    """
    cores = _shared.get()
    if cores is None or len(items) < 2:
        return _one_by_one(work, items)
    found: dict[int, Result] = {}
    waiting, lock = list(enumerate(items)), threading.Lock()
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def take_turns(going_on: Callable[[], bool]) -> None:
        try:
            while going_on():
                with lock:
                    number, item = waiting.pop(0) if waiting else (-1, None)
                if number < 0:
                    return
                raise_if_cancelled()
                found[number] = work(item)
        except BaseException:
            waiting.clear()
            raise

    def helping() -> None:
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):  # a thread's own
            take_turns(cores.is_one_spare)

    with cores.helper() as helps:
        if not helps:
            return _one_by_one(work, items)
        with ThreadPoolExecutor(1, thread_name_prefix="side-by-side") as pool:
            other = pool.submit(helping)
            take_turns(lambda: True)
            other.result()
    return [found[number] for number in range(len(items))]


def _one_by_one(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    results = []
    for item in items:
        raise_if_cancelled()
        results.append(work(item))
    return results


def in_passing(work: Callable[..., Result], *arguments: object) -> Result:
    """work(*arguments), in a thread that ends with it: before a thread that lives on, such as that of the batches.

    Each thread has a team of torch's threads, which lives as long as the thread. Where teams are more than cores they
    sleep at once between two operations: beside the team of the thread that loaded a model of t5-base's size, a step of
    the batches' took 36 ms on two cores in place of 27."""
    with ThreadPoolExecutor(1, thread_name_prefix="in-passing") as passing:
        return passing.submit(work, *arguments).result()


class Cores:
    """The cores of one process, which the passes under way share: one alone has all of them, as torch's threads, or
    where `number` is set to 1 as threads of Python (side_by_side). A pass that has begun
    keeps what it was given, and those that begin beside it take less, so that they are not many more than there are
    cores for long: more threads than cores spin, waiting for each other (measured 16 times slower)."""

    def __init__(self, number: int) -> None:
        """number: of the cores, at least 1"""
        self.number: int = number
        self.cores: int = number
        self._lock, self._under_way, self._helpers = threading.Lock(), 0, 0

    @contextmanager
    def share(self) -> Iterator[None]:
        """For one pass in this thread: torch's threads are its share of the cores."""
        with self._lock:
            self._under_way += 1
            torch.set_num_threads(max(1, self.number // self._under_way))
        before = _shared.set(self)
        try:
            yield
        finally:
            _shared.reset(before)
            with self._lock:
                self._under_way -= 1

    @contextmanager
    def helper(self) -> Iterator[bool]:
        """Whether a pass that shares these may have a second thread: where each has one of torch's, and a core is
        spare."""
        with self._lock:
            helps = self.number == 1 and self._under_way + self._helpers < self.cores
            self._helpers += helps
        try:
            yield helps
        finally:
            with self._lock:
                self._helpers -= helps

    def is_one_spare(self) -> bool:
        """Whether those who help may go on: they have no more than what passes leave."""
        with self._lock:
            return self._under_way + self._helpers <= self.cores


_shared: ContextVar[Cores | None] = ContextVar("shared cores", default=None)  # of the pass under way
