"""Tests of the request queue: its limits, its fairness between addresses, and cancellation."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context

import pytest

from attention_atlas.model.serve.limits import Busy
from attention_atlas.viz.server.request_queue import RequestQueue, yield_turn


def in_event_loop(test: Callable[[], Coroutine]) -> Callable[[], None]:
    """Run an asynchronous test in another thread: a browser's event loop may run in this one."""

    @functools.wraps(test)
    def run() -> None:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, test()).result()

    return run


def begin(coroutine: Coroutine) -> asyncio.Task:
    """Start a task in its own context, as another request would: a task started inside a turn shares that turn."""
    return asyncio.create_task(coroutine, context=Context())


async def serve(queue: RequestQueue, address: str, order: list[str]) -> None:
    async with queue.turn("model", address):
        order.append(address)
        await asyncio.sleep(0)


@in_event_loop
async def test_addresses_take_turns() -> None:
    queue, order = RequestQueue({"model": 1}, max_waiting=80), []
    many = [begin(serve(queue, "many", order)) for _ in range(15)]
    await asyncio.sleep(0)
    later = begin(serve(queue, "later", order))
    await asyncio.gather(*many, later)
    assert order.index("later") <= 3


@in_event_loop
async def test_places_are_limited_per_address_and_in_total() -> None:
    queue, order = RequestQueue({"model": 1}, max_waiting=8), []
    async with queue.turn("model", "a"):
        waiting = [begin(serve(queue, address, order)) for address in "aabbccdd"]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="8"):
            queue.check("model", "e")
        waiting.pop().cancel()
        await asyncio.sleep(0)
        queue.check("model", "e")
        queue.check("other lane", "a")
        with pytest.raises(Busy, match="2"):
            queue.check("model", "a")
    await asyncio.gather(*waiting)
    assert len(queue) == 0 and order == list("abcdabc")


@in_event_loop
async def test_a_cancelled_request_keeps_no_turn() -> None:
    queue, order = RequestQueue({"model": 1}, max_waiting=4), []
    async with queue.turn("model", "a"):
        cancelled = begin(serve(queue, "b", order))
        remaining = begin(serve(queue, "c", order))
        await asyncio.sleep(0)
    cancelled.cancel()  # just after it got its turn
    await asyncio.gather(cancelled, remaining, return_exceptions=True)
    async with asyncio.timeout(1), queue.turn("model", "d"):
        pass
    assert order == ["c"]


@in_event_loop
async def test_a_nested_call_shares_the_turn_until_it_ends() -> None:
    queue, order, ended = RequestQueue({"model": 1}, max_waiting=4), [], asyncio.Event()

    async def later() -> None:
        await ended.wait()
        await serve(queue, "later", order)

    async with asyncio.timeout(1), queue.turn("model", "a"):
        late = asyncio.create_task(later())
        await serve(queue, "inside", order)
        waiting = begin(serve(queue, "another", order))
        await asyncio.sleep(0)
        assert order == ["inside"] and len(queue) == 1
    async with queue.turn("model", "b"):
        ended.set()
        for _ in range(3):
            await asyncio.sleep(0)
        assert "later" not in order
    await asyncio.gather(waiting, late)
    assert order == ["inside", "another", "later"]


@in_event_loop
async def test_yield_turn_lets_waiting_requests_run() -> None:
    queue, order = RequestQueue({"model": 1}, max_waiting=8), []

    async def stream() -> None:
        async with queue.turn("model", "long"):
            for part in range(3):
                order.append(f"part {part}")
                for _ in range(3):
                    await asyncio.sleep(0)
                await yield_turn()

    long = begin(stream())
    await asyncio.sleep(0)
    await asyncio.gather(*(begin(serve(queue, address, order)) for address in "ab"), long)
    async with queue.turn("model", "long"):
        await yield_turn()  # returns at once, since no request waits
    assert order == ["part 0", "a", "b", "part 1", "part 2"]


@in_event_loop
async def test_cancelling_while_waiting_in_yield_turn_frees_one_place() -> None:
    queue, order = RequestQueue({"model": 1}, max_waiting=8), []
    ended = asyncio.Event()

    async def stream() -> None:
        async with queue.turn("model", "long"):
            await asyncio.sleep(0)
            await yield_turn()

    async def other() -> None:
        async with queue.turn("model", "a"):
            await ended.wait()

    long = begin(stream())
    await asyncio.sleep(0)
    holds = begin(other())
    for _ in range(5):
        await asyncio.sleep(0)
    long.cancel()
    waits = begin(serve(queue, "b", order))
    for _ in range(5):
        await asyncio.sleep(0)
    assert order == [], "the other request still runs"
    ended.set()
    await asyncio.gather(holds, waits)
    assert len(queue) == 0 and order == ["b"]
