"""Work in several processes: a program that torchrun starts many times, and epochs drawn ahead of training.

`torchrun --nproc_per_node=N -m attention_atlas NAME` starts the processes; without torchrun the functions below
describe a group of one process. PyTorch's names are used: rank, world size, barrier.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")

TERMINATION_SECONDS = 5  # torchrun ends the remaining processes within this time; it polls ten times a second


@contextmanager
def process_group(backend: str = "gloo") -> Iterator[None]:
    """Join the processes that torchrun started into a group while the context lasts; without torchrun do nothing.

    All processes leave a successful context together, because one that leaves early can abort the others.
    """
    if "WORLD_SIZE" not in os.environ:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group(backend)
    try:
        yield
        barrier()
    except RuntimeError:
        time.sleep(TERMINATION_SECONDS)  # a lost peer breaks the connection: let torchrun end this process first
        raise
    finally:
        dist.destroy_process_group()


def rank() -> int:
    """Return the number of this process in its group, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def world_size() -> int:
    """Return how many processes the group has."""
    return dist.get_world_size() if dist.is_initialized() else 1


def barrier() -> None:
    """Wait until every process of the group has come here."""
    if dist.is_initialized():
        dist.barrier()


def gather(part: object) -> list:
    """Return the `part` of every process, in order of rank. Parts are pickled."""
    parts = [part] * world_size()
    if dist.is_initialized():
        dist.all_gather_object(parts, part)
    return parts


class EpochPrefetcher(Generic[T]):
    """Draw epochs in other processes before they are needed, so that training does not wait for them.

    `draw` is a function of the epoch's number alone. The workers are forked from this process, so that the corpora are
    neither copied nor sent; create the prefetcher before a device is used. With workers=0 each epoch is drawn in this
    process when it is requested. Raises ValueError where the system cannot fork.

    >>> epochs = EpochPrefetcher(lambda number: [number, 2 * number], workers=0)
    >>> epochs(3)
    [3, 6]
    """

    def __init__(self, draw: Callable[[int], T], workers: int) -> None:
        if workers and "fork" not in multiprocessing.get_all_start_methods():
            raise ValueError("this system cannot draw epochs in other processes: leave out --workers")
        self.draw, self.workers = draw, workers
        self._futures: dict[int, Future[T]] = {}
        self._pool = None
        if workers:
            context = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(draw,))
            self._pool.submit(int).result()  # the pool forks its workers with the first call

    def __call__(self, number: int) -> T:
        """Return one epoch, and start drawing the next ones."""
        if self._pool is None:
            return self.draw(number)
        for later in range(number, number + 1 + self.workers):
            if later not in self._futures:
                self._futures[later] = self._pool.submit(_draw_in_worker, later)
        return self._futures.pop(number).result()

    def close(self) -> None:
        """End the workers without waiting for epochs that were drawn ahead."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


_draw: Callable[[int], object] | None = None  # set in a worker process only


def _start_worker(draw: Callable[[int], object]) -> None:
    global _draw
    _draw = draw
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    # A killed parent never closes the queue, on which its workers would wait for ever.
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _draw_in_worker(number: int) -> object:
    assert _draw is not None
    return _draw(number)
