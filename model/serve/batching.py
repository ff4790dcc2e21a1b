"""Join requests that arrive together into batches, and let work that cannot share a batch take turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from attention_atlas.model.serve.limits import BatchLimits, Busy

IDLE_SECONDS = 30  # after which a worker thread without work ends
PATIENCE = 0.25  # seconds that the oldest request waits for a running batch to end

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Job(Generic[Item, Result]):
    item: Item
    length: int
    key: Hashable
    arrived: float = field(default_factory=time.monotonic)
    done: threading.Event = field(default_factory=threading.Event)
    result: Result | None = None
    error: BaseException | None = None


class Batcher(Generic[Item, Result]):
    """Join calls from many threads into batches.

    Requests that arrive while a batch runs make up the next one: the oldest request and those nearest to it in length,
    so that little is padded. A batch that fails is split in halves until the error reaches only the request that causes
    it; a batch too large for the device's memory succeeds in parts.

    Batches run in `at_once` worker threads, which start when needed and end when idle. (In the callers' threads each
    would have its own pool of torch's threads and its own memory arena: 1.1 GB more.) Another batch starts beside a
    running one if each waiting request can have a thread, if a full batch waits, or if the oldest request has waited
    PATIENCE. Otherwise two half batches would share the interpreter's lock: 48 answers a second instead of 56.

    >>> batcher = Batcher(lambda texts: [text.upper() for text in texts])
    >>> batcher("hello", length=5)
    'HELLO'
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Sequence[Result]],
        limits: BatchLimits = BatchLimits(),
        *,
        size: Callable[[int], int] = lambda length: 0,
    ) -> None:
        """run: returns the results of a batch of items with equal keys, in order.

        size: returns the bytes of one row in a batch whose longest item has this length.
        """
        self.limits: BatchLimits = limits
        self._run, self._size = run, size
        self._changed = threading.Condition()
        self._queue: list[_Job[Item, Result]] = []
        self._workers = self._idle = self._running = 0  # threads, idle threads, jobs that run

    def __call__(self, item: Item, *, length: int, key: Hashable = None) -> Result:
        """Return the result of one item of `length` tokens. Only items with equal keys share a batch.

        Raises Busy at once if the queue is full, or after `limits.seconds` in it; else whatever `run` raises for it.
        """
        job = _Job[Item, Result](item, length, key)
        with self._changed:
            if len(self._queue) >= self.limits.waiting:
                raise Busy.queue_full(len(self._queue))
            runs_here = not self._workers and not self._queue and threading.current_thread() is threading.main_thread()
            if runs_here:
                self._workers += 1
                self._running += 1
            else:
                if not self._idle and self._workers < self.limits.at_once:
                    self._start()
                self._queue.append(job)
                self._changed.notify_all()
        if runs_here:
            try:
                self._serve([job])
            finally:  # Ctrl-C may interrupt the main thread at any line
                self._leave()
        else:
            self._wait(job)
        if job.error is not None:
            raise job.error
        return job.result

    def _wait_for_work(self) -> bool:
        """Wait until the queue should become a batch; return False if it stays empty for IDLE_SECONDS."""
        started = time.monotonic()
        while True:
            waiting, now = len(self._queue), time.monotonic()
            left = self._queue[0].arrived + PATIENCE - now if waiting else started + IDLE_SECONDS - now
            few = self._running + waiting <= self.limits.at_once
            if waiting and (not self._running or few or waiting >= self.limits.rows or left <= 0):
                return True
            if left <= 0:
                return False
            self._changed.wait(left)

    def _start(self) -> None:
        threading.Thread(target=self._work, name="batch", daemon=True).start()
        self._workers += 1

    def _wait(self, job: _Job) -> None:
        if job.done.wait(self.limits.seconds):
            return
        with self._changed:
            if job in self._queue:
                self._queue.remove(job)
                raise Busy.timed_out(self.limits.seconds)
        job.done.wait()  # it runs, and every batch ends

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                has_work = self._wait_for_work()
                self._idle -= 1
                if not has_work:
                    self._workers -= 1
                    return
                jobs = self._take()
                self._running += len(jobs)
            self._serve(jobs)
            with self._changed:
                self._running -= len(jobs)
                self._changed.notify_all()
            del jobs  # an idle thread must not keep the last results alive

    def _leave(self) -> None:
        """End the main thread's batch, and start a worker for requests that arrived meanwhile."""
        with self._changed:
            self._workers -= 1
            self._running -= 1
            self._changed.notify_all()
            if self._queue and not self._workers:
                self._start()

    def _serve(self, jobs: list[_Job]) -> None:
        try:
            with self.limits.share():
                self._finish(jobs)
        except BaseException as error:  # such as a MemoryError: no caller may wait for ever
            for job in jobs:
                if job.result is None:
                    job.error = error
        for job in jobs:
            job.done.set()

    def _take(self) -> list[_Job]:
        """Remove the next batch from the queue."""
        oldest = self._queue[0]
        near = sorted(
            (job for job in self._queue if job.key == oldest.key),
            key=lambda job: (job is not oldest, abs(job.length - oldest.length)),
        )
        longest, batch = 0, []
        for job in near[: self.limits.rows]:
            longest = max(longest, job.length)
            if batch and (len(batch) + 1) * self._size(longest) > self.limits.batch_bytes:
                break
            batch.append(job)
        self._queue = [job for job in self._queue if job not in batch]
        return batch

    def _finish(self, jobs: list[_Job]) -> None:
        """Run a batch, and each half of it again if it fails."""
        try:
            for job, result in zip(jobs, self._run([job.item for job in jobs]), strict=True):
                job.result = result
        except BaseException as error:  # the caller raises it, whatever it is
            if len(jobs) == 1:
                jobs[0].error = error
                return
            half = len(jobs) // 2
            self._finish(jobs[:half])
            self._finish(jobs[half:])


class Turns:
    """Let at most `limits.at_once` callers work at the same time, for work that cannot share a batch.

    >>> turns = Turns()
    >>> with turns.turn():
    ...     pass
    """

    def __init__(self, limits: BatchLimits = BatchLimits()) -> None:
        self.limits = limits
        self._free = threading.Semaphore(limits.at_once)
        self._lock, self._waiting = threading.Lock(), 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and hold it with its share of the cores. Raises Busy beyond the limits on waiting."""
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
                raise Busy.queue_full(self._waiting)
            self._waiting += 1
        try:
            if not self._free.acquire(timeout=self.limits.seconds):
                raise Busy.timed_out(self.limits.seconds)
        finally:
            with self._lock:
                self._waiting -= 1
