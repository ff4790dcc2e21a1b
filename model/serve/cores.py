"""Run independent pieces of work on several cores of a CPU, and share the cores among passes."""

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
_exclusive = threading.Lock()  # the number of torch's threads belongs to the whole process


def map_over_cores(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return [work(item) for item in items], computed several at a time with torch's threads divided among them.

    Small operations gain little from a second thread inside them, but much from a second batch beside them. Calls
    within another call, and calls with one thread or item, run one item after another. The first error ends the call.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(items))
    if workers < 2 or not _exclusive.acquire(blocking=False):
        return _map_in_order(work, items)
    try:
        torch.set_num_threads(threads // workers)  # new threads start with this number
        return _map_in_threads(work, items, workers)
    finally:
        torch.set_num_threads(threads)
        _exclusive.release()


def map_on_spare_core(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return [work(item) for item in items], two at a time if no other pass needs a second core when the call begins.

    Outside Cores.share(), and within another call, items run in order. The first error ends the call.
    """
    cores = _shared.get()
    if cores is None or len(items) < 2:
        return _map_in_order(work, items)
    with cores.helper() as has_helper:
        return _map_in_threads(work, items, 2) if has_helper else _map_in_order(work, items)


def _map_in_threads(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> list[Result]:
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run(item: Item) -> Result:
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):  # each thread has its own modes
            return work(item)

    pool, results = ThreadPoolExecutor(workers, thread_name_prefix="map-over-cores"), []
    try:
        for result in pool.map(run, items):
            raise_if_cancelled()
            results.append(result)
    finally:
        pool.shutdown(cancel_futures=True)
    return results


def _map_in_order(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    results = []
    for item in items:
        raise_if_cancelled()
        results.append(work(item))
    return results


def run_in_new_thread(work: Callable[..., Result], *arguments: object) -> Result:
    """Return work(*arguments), computed in a thread that ends with it.

    Each thread that calls torch has a pool of torch's threads as long as it lives. Pools of more threads than cores
    sleep between operations: beside the pool of the thread that loaded a model of T5-base's size, a decoding step took
    36 ms on two cores instead of 27.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="run-in-new-thread") as pool:
        return pool.submit(work, *arguments).result()


class Cores:
    """The cores of one process, shared by the passes that run at the same time.

    A pass that runs alone has all of them as torch's threads. A pass that starts beside others takes fewer, and running
    passes keep theirs: with more threads than cores, threads spin while they wait (measured 16 times slower). Set
    `threads` to 1 to let a pass use further cores by map_on_spare_core() instead.
    """

    def __init__(self, count: int) -> None:
        """count: the number of cores, at least 1."""
        self.threads: int = count
        self.count: int = count
        self._lock, self._passes, self._helpers = threading.Lock(), 0, 0

    @contextmanager
    def share(self) -> Iterator[None]:
        """Give one pass in this thread its share of the cores while the context lasts."""
        with self._lock:
            self._passes += 1
            torch.set_num_threads(max(1, self.threads // self._passes))
        token = _shared.set(self)
        try:
            yield
        finally:
            _shared.reset(token)
            with self._lock:
                self._passes -= 1

    @contextmanager
    def helper(self) -> Iterator[bool]:
        """Reserve a spare core for a second thread of a pass; yield whether there is one."""
        with self._lock:
            is_spare = self.threads == 1 and self._passes + self._helpers < self.count
            self._helpers += is_spare
        try:
            yield is_spare
        finally:
            with self._lock:
                self._helpers -= is_spare


_shared: ContextVar[Cores | None] = ContextVar("shared cores", default=None)  # those of the running pass
