"""Gradio's queue, woken when an event arrives or is done, instead of looking for one a thousand times a second.

Gradio's own takes 2 to 4 % of a core from an app that nobody uses. What is replaced are the two loops that look, and a
table that nobody reads; what is done with an event is Gradio's. Beside that, an event is ended alone: Gradio's /cancel
ends all of the same function that the session has under way, so also the question that was asked after the one that is
to end, if that is sooner there.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import sys
import time
import zlib
from collections.abc import Iterator

import gradio as gr
from gradio.blocks import BlockFunction
from gradio.queueing import Event, EventQueue, Queue
from gradio.utils import run_coro_in_background, set_task_name

from viz.ui.gradio6.part import Part, lacking, unsaid

# What the replaced loops say in the version that they were read in: another one may do more.
READ = {"start_processing": "d65be5a5cbed97d7", "start_progress_updates": "7cbbec1cf932324c"}


class WakefulQueue(Queue):
    """A queue that has been made by Gradio becomes one by `wake_on_arrival`."""

    woken: asyncio.Event  # something has arrived, or is done
    loop: asyncio.AbstractEventLoop | None = None

    def wake(self) -> None:
        """From any thread."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.woken.set)

    async def push(self, *given: object, **options: object) -> tuple:
        try:
            return await super().push(*given, **options)
        finally:
            self.wake()

    async def process_events(self, *given: object, **options: object) -> None:
        try:
            await super().process_events(*given, **options)
        finally:
            self.wake()

    def compute_analytics_summary(self, records: list[dict]) -> dict:
        """Nothing: after every event Gradio makes a table of the last 10,000, for a page that the guard refuses."""
        return self.cached_event_analytics_summary

    def close(self) -> None:
        super().close()
        self.wake()

    async def start_processing(self) -> None:
        self.loop, self.woken = asyncio.get_running_loop(), asyncio.Event()
        try:
            while not self.stopped:
                self.woken.clear()
                while None in self.active_jobs:
                    async with self.delete_lock:
                        found = self.get_events()
                    if found is None:
                        break
                    self._begin(*found)
                await self.woken.wait()
        finally:
            self.stopped = True
            self._cancel_asyncio_tasks()

    def _begin(self, events: list[Event], batch: bool, concurrency_id: str) -> None:
        """As Gradio's own loop begins with events."""
        queue: EventQueue = self.event_queue_per_concurrency_id[concurrency_id]
        started, function = time.time(), events[0].fn
        self.active_jobs[self.active_jobs.index(None)] = events
        queue.current_concurrency += 1
        queue.start_times_per_fn[function].add(started)
        for event in events:
            if (analytics := self.event_analytics.get(event._id)) is not None:
                analytics["status"] = "processing"
        task = run_coro_in_background(self.process_events, events, batch, started, function)
        set_task_name(task, events[0].session_hash, _number(events[0]._id), events[0]._id, batch)
        self._asyncio_tasks.add(task)
        task.add_done_callback(self._asyncio_tasks.discard)
        if self.live_updates:
            self.broadcast_estimations(concurrency_id)

    async def start_progress_updates(self) -> None:
        """Nothing: no handler of this app reports progress to Gradio."""


def wake_on_arrival(queue: Queue) -> None:
    """Before the server starts."""
    if PART.usable and type(queue) is Queue:
        queue.__class__ = WakefulQueue


def ended_alone(app: gr.routes.App, call: dict) -> dict:
    """A call of /cancel that ends the event that it names, and no other."""
    name = call.get("event_id")
    if not isinstance(name, str) or not isinstance(app.get_blocks()._queue, WakefulQueue):
        return call
    return {**call, "fn_index": _number(name)}


def _number(event: str) -> int:
    """In the place of its function's: /cancel finds a task by its session and this."""
    return zlib.crc32(event.encode(errors="replace"))


def waiting(app: gr.routes.App) -> tuple[int, int | None]:
    """How many events stand in line, and how many may (None: any number)."""
    queue = app.get_blocks()._queue
    return len(queue), queue.max_size


def waiting_from(app: gr.routes.App, lane: str, address: str) -> tuple[int, int]:
    """How many events stand in line, and how many of those have this concurrency_id and come from this address."""
    queue = app.get_blocks()._queue
    line = queue.event_queue_per_concurrency_id.get(lane)
    events = line.queue if line else ()
    return len(queue), sum(event.request.client and event.request.client.host == address for event in events)


def line_limits(app: gr.routes.App) -> tuple[int, int]:
    """How many requests may wait, and how many of those that share no batch run at once."""
    queue = app.get_blocks()._queue
    return queue.max_size or sys.maxsize, queue.default_concurrency_limit or 1


def function_of(app: gr.routes.App, number: object) -> BlockFunction | None:
    """The function that a request names by its number."""
    return app.get_blocks().fns.get(number) if isinstance(number, int) else None


def is_known(app: gr.routes.App, event: str) -> bool:
    """Whether an event waits, runs, or has an answer that nobody has fetched."""
    queue = app.get_blocks()._queue
    if event in queue.event_ids_to_events or event in queue.pending_messages_per_session:
        return True
    return any(event in events for events in queue.pending_event_ids_session.values())


def has_answers(app: gr.routes.App, session: str) -> bool:
    """Whether this session has ever asked for anything through the queue, as far as one can tell."""
    return session in getattr(app.get_blocks()._queue, "pending_messages_per_session", (session,))


def _missing() -> Iterator[str]:
    yield from lacking(gr.routes.App, "get_blocks")
    yield from lacking(
        Queue,
        *READ,
        "__len__",
        "push",
        "process_events",
        "get_events",
        "broadcast_estimations",
        "compute_analytics_summary",
        "close",
    )
    yield from unsaid("routes.py", 'cancel_tasks({f"{body.session_hash}_{body.fn_index}"})')
    for name, digest in READ.items():
        if hasattr(Queue, name) and read(name) != digest:
            yield f"Queue.{name} as it was read"


def read(name: str) -> str:
    """A short digest of what a method of Gradio's queue says."""
    return hashlib.sha256(inspect.getsource(getattr(Queue, name)).encode()).hexdigest()[:16]


PART = Part(
    "the queue that is woken",
    _missing,
    "an idle app looks for events a thousand times a second, and what ends a question may end the next one, too",
)
