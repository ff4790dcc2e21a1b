"""Requests that arrive together go through the model together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from attention_atlas.model.serve.limits import BatchLimits, Busy

IDLE_SECONDS = 30  # after which a thread without work ends
PATIENCE = 0.25  # seconds that the first in line waits for a batch under way to end

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Job(Generic[Item, Result]):
    item: Item
    length: int
    key: Hashable
    came: float = field(default_factory=time.monotonic)
    done: threading.Event = field(default_factory=threading.Event)
    result: Result | None = None
    error: BaseException | None = None


class Batcher(Generic[Item, Result]):
    """Calls from many threads, joined into batches.

    Nobody waits for company: whatever has come while one batch ran makes up the next. A batch is the oldest request and
    those nearest to it in length, so that little is padding. An error in a batch is narrowed down by halves: it reaches
    only the request that causes it, and a batch too large for the device's memory succeeds in parts.

    Batches run in `at_once` threads of the batcher's own, which start when needed and end when idle. (If callers' many
    threads ran them, each would get its own pool of torch's threads and its own arena of memory: measured, 1.1 GB.)
    Beside a batch another begins where each request can have a thread to itself, where a whole one has come, or where
    the first has waited too long; else the two would share the interpreter's lock for half the rows each: 10 callers
    got 48 answers a second, not 56.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Sequence[Result]],
        limits: BatchLimits = BatchLimits(),
        *,
        size: Callable[[int], int] = lambda length: 0,
    ) -> None:
        """run: a batch of items of one key -> their results, in order. size: bytes that a row of a batch takes whose
        longest item has this length."""
        self.limits: BatchLimits = limits
        self._run, self._size = run, size
        self._changed = threading.Condition()
        self._line: list[_Job[Item, Result]] = []
        self._workers = self._idle = self._under_way = 0  # threads, those of them that wait, jobs that run

    def __call__(self, item: Item, *, length: int, key: Hashable = None) -> Result:
        """The result for one item. length: its size in tokens. Only items of equal keys share a batch.

        Raises Busy at once if too many wait, or when this one has waited too long; else what `run` raised for it.
        """
        job = _Job[Item, Result](item, length, key)
        with self._changed:
            if len(self._line) >= self.limits.waiting:
                raise Busy.behind(len(self._line))
            runs_it = not self._workers and not self._line and threading.current_thread() is threading.main_thread()
            if runs_it:
                self._workers += 1
                self._under_way += 1
            else:
                self._line.append(job)
                if not self._idle and self._workers < self.limits.at_once:
                    self._start(job)
                self._changed.notify_all()
        if runs_it:
            try:
                self._serve([job])
            finally:  # the main thread is the one that Ctrl-C interrupts, at whatever line
                self._leave()
        else:
            self._wait(job)
        if job.error is not None:
            raise job.error
        return job.result

    def _has_work(self) -> bool:
        """Wait until those in line should go into the model; False if for long nobody came."""
        asked = time.monotonic()
        while True:
            line, now = len(self._line), time.monotonic()
            left = self._line[0].came + PATIENCE - now if line else asked + IDLE_SECONDS - now
            few = self._under_way + line <= self.limits.at_once
            if line and (not self._under_way or few or line >= self.limits.rows or left <= 0):
                return True
            if left <= 0:
                return False
            self._changed.wait(left)

    def _start(self, job: _Job) -> None:
        """Another worker. Where memory is too short for one, those that there are do its work; the error of the system
        if there are none."""
        try:
            threading.Thread(target=self._work, name="batch", daemon=True).start()
        except RuntimeError:
            if not self._workers:
                self._line.remove(job)
                raise
        else:
            self._workers += 1

    def _wait(self, job: _Job) -> None:
        if job.done.wait(self.limits.seconds):
            return
        with self._changed:
            if job in self._line:
                self._line.remove(job)
                raise Busy.after(self.limits.seconds)
        job.done.wait()  # it is in the model's hands, which always come to an end

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                found = self._has_work()
                self._idle -= 1
                if not found:
                    self._workers -= 1
                    return
                jobs = self._take()
                self._under_way += len(jobs)
            self._serve(jobs)
            with self._changed:
                self._under_way -= len(jobs)
                self._changed.notify_all()
            del jobs  # the thread may idle for long: it must not keep the last results alive

    def _leave(self) -> None:
        """The main thread is done; those who came meanwhile may have found no room for a thread of the batcher's."""
        with self._changed:
            self._workers -= 1
            self._under_way -= 1
            self._changed.notify_all()
            if self._line and not self._workers:
                first = self._line[0]
                try:
                    self._start(first)
                except RuntimeError as error:
                    first.error = error
                    first.done.set()

    def _serve(self, jobs: list[_Job]) -> None:
        try:
            with self.limits.share():
                self._finish(jobs)
        except BaseException as error:  # memory that is short even for telling of it: nobody may be left waiting
            for job in jobs:
                if job.result is None:
                    job.error = error
        for job in jobs:
            job.done.set()

    def _take(self) -> list[_Job]:
        oldest = self._line[0]
        near = sorted(
            (job for job in self._line if job.key == oldest.key),
            key=lambda job: (job is not oldest, abs(job.length - oldest.length)),
        )
        longest, taken = 0, []
        for job in near[: self.limits.rows]:
            longest = max(longest, job.length)
            if taken and (len(taken) + 1) * self._size(longest) > self.limits.batch_bytes:
                break
            taken.append(job)
        self._line = [job for job in self._line if job not in taken]
        return taken

    def _finish(self, jobs: list[_Job]) -> None:
        try:
            for job, result in zip(jobs, self._run([job.item for job in jobs]), strict=True):
                job.result = result
        except BaseException as error:  # whatever it is, it is the callers' to raise, and nobody may be left waiting
            if len(jobs) == 1:
                jobs[0].error = error
                return
            half = len(jobs) // 2
            self._finish(jobs[:half])
            self._finish(jobs[half:])
