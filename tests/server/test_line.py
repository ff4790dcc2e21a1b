"""The line before the model: bounded, fair to each address, and left by whoever goes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context

import pytest

from attention_atlas.model.serve.limits import Busy
from attention_atlas.viz.server.line import Line, let_others_go


def run(coroutine: Coroutine) -> object:
    """asyncio.run() in a thread of its own: in this one a browser's loop may run."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, coroutine).result()


def begin(coroutine: Coroutine) -> asyncio.Task:
    """A task as of another request: one that is begun inside of a turn would have that turn."""
    return asyncio.create_task(coroutine, context=Context())


async def served(line: Line, address: str, order: list[str]) -> None:
    async with line.turn("model", address):
        order.append(address)
        await asyncio.sleep(0)


def test_addresses_take_turns_whatever_the_number_of_their_requests() -> None:
    async def scenario() -> list[str]:
        line, order = Line({"model": 1}, waiting=80), []
        many = [begin(served(line, "many", order)) for _ in range(15)]
        await asyncio.sleep(0)
        one = begin(served(line, "one", order))
        await asyncio.gather(*many, one)
        return order

    assert run(scenario()).index("one") <= 3


def test_the_places_are_bounded_for_one_address_and_for_all() -> None:
    async def scenario() -> None:
        line, order = Line({"model": 1}, waiting=8), []
        async with line.turn("model", "a"):
            waiting = [begin(served(line, address, order)) for address in "aabbccdd"]
            await asyncio.sleep(0)
            with pytest.raises(Busy, match="8"):
                line.check("model", "e")
            waiting.pop().cancel()
            await asyncio.sleep(0)
            line.check("model", "e")
            line.check("other lane", "a")
            with pytest.raises(Busy, match="2"):
                line.check("model", "a")
        await asyncio.gather(*waiting)
        assert len(line) == 0 and order == list("abcdabc")

    run(scenario())


def test_a_request_that_leaves_keeps_no_turn() -> None:
    async def scenario() -> None:
        line, order = Line({"model": 1}, waiting=4), []
        async with line.turn("model", "a"):
            leaving = begin(served(line, "b", order))
            staying = begin(served(line, "c", order))
            await asyncio.sleep(0)
        leaving.cancel()  # its turn has just come
        await asyncio.gather(leaving, staying, return_exceptions=True)
        async with asyncio.timeout(1), line.turn("model", "d"):
            pass
        assert order == ["c"]

    run(scenario())


def test_work_begun_in_a_turn_waits_for_no_second_one_until_the_turn_has_passed() -> None:
    async def scenario() -> list[str]:
        line, order, ended = Line({"model": 1}, waiting=4), [], asyncio.Event()

        async def later() -> None:
            await ended.wait()
            await served(line, "later", order)

        async with asyncio.timeout(1), line.turn("model", "a"):
            late = asyncio.create_task(later())
            await served(line, "inside", order)
            waiting = begin(served(line, "another", order))
            await asyncio.sleep(0)
            assert order == ["inside"] and len(line) == 1
        async with line.turn("model", "b"):
            ended.set()
            for _ in range(3):
                await asyncio.sleep(0)
            assert "later" not in order
        await asyncio.gather(waiting, late)
        return order

    assert run(scenario()) == ["inside", "another", "later"]


def test_between_its_parts_a_long_answer_lets_others_go() -> None:
    async def scenario() -> list[str]:
        line, order = Line({"model": 1}, waiting=8), []

        async def stream() -> None:
            async with line.turn("model", "long"):
                for part in range(3):
                    order.append(f"part {part}")
                    for _ in range(3):
                        await asyncio.sleep(0)
                    await let_others_go()

        long = begin(stream())
        await asyncio.sleep(0)
        await asyncio.gather(*(begin(served(line, address, order)) for address in "ab"), long)
        async with line.turn("model", "long"):
            await let_others_go()  # nobody waits
        return order

    assert run(scenario()) == ["part 0", "a", "b", "part 1", "part 2"]


def test_a_long_answer_that_is_left_while_others_go_frees_its_place_once() -> None:
    async def scenario() -> list[str]:
        line, order = Line({"model": 1}, waiting=8), []
        ended = asyncio.Event()

        async def stream() -> None:
            async with line.turn("model", "long"):
                await asyncio.sleep(0)
                await let_others_go()

        async def other() -> None:
            async with line.turn("model", "a"):
                await ended.wait()

        long = begin(stream())
        await asyncio.sleep(0)
        holds = begin(other())
        for _ in range(5):
            await asyncio.sleep(0)
        long.cancel()
        waits = begin(served(line, "b", order))
        for _ in range(5):
            await asyncio.sleep(0)
        assert order == [], "the other one still runs"
        ended.set()
        await asyncio.gather(holds, waits)
        assert len(line) == 0
        return order

    assert run(scenario()) == ["b"]
