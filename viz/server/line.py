"""The line of requests that wait for the model: bounded, with a share of the places for each address."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from attention_atlas.model.serve.limits import Busy

TRANSLATES = {"concurrency_id": "translate", "concurrency_limit": 48}  # of the endpoints that only translate
SHARE = 0.25  # of the places in line, for the calls of one address in one lane
PAGE_SHARE = 0.8  # for questions of the page: a class has one address


@dataclass
class Turn:
    """A place that runs in a lane of a line. is_held: until it is passed on."""

    line: Line
    lane: str
    address: str
    is_held: bool = True


async def let_others_go() -> None:
    """Between two parts of an answer: whoever waits in this task's lane goes first, and this task waits for its next
    turn."""
    turn = _turn.get()
    if turn is None or not turn.is_held:
        return
    lines = turn.line._lines[turn.lane]
    if lines:
        turn.is_held = False
        turn.line._pass_on(turn.lane)
        await turn.line._wait(lines, turn.lane, turn.address)
        turn.is_held = True


_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


class Line:
    """Requests wait here in lanes; a lane runs `at_once` of them. All methods belong to one event loop.

    The addresses that wait in a lane take turns, so that one with many requests delays another's by one of its own.
    """

    def __init__(self, lanes: dict[str, int], waiting: int) -> None:
        """lanes: how many requests each runs at once. waiting: how many may wait in all lanes together."""
        self._free = Counter(lanes)
        self.waiting = waiting
        self._lines: dict[str, OrderedDict[str, deque[asyncio.Future]]] = {lane: OrderedDict() for lane in lanes}

    def __len__(self) -> int:
        """How many requests wait."""
        return sum(len(turns) for lines in self._lines.values() for turns in lines.values())

    def check(self, lane: str, address: str, share: float = SHARE) -> None:
        """Raise Busy if another request of this address would find no place in the lane."""
        total, own = len(self), len(self._lines.get(lane, {}).get(address, ()))
        if total >= self.waiting:
            raise Busy.behind(total)
        if own >= max(1, int(share * self.waiting)):
            raise Busy.behind(own)

    @asynccontextmanager
    async def turn(self, lane: str, address: str, share: float = SHARE) -> AsyncIterator[None]:
        """Wait for a turn in a lane and hold it; a nested call shares it. Raises Busy if there is no place."""
        outer = _turn.get()
        if outer is not None and outer.is_held:
            yield
            return
        if self._free[lane] > 0:
            self._free[lane] -= 1
        else:
            self.check(lane, address, share)
            await self._wait(self._lines[lane], lane, address)
        turn = Turn(self, lane, address)
        before = _turn.set(turn)
        try:
            yield
        finally:
            _turn.reset(before)
            if turn.is_held:
                turn.is_held = False
                self._pass_on(lane)

    async def _wait(self, lines: OrderedDict[str, deque[asyncio.Future]], lane: str, address: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        lines.setdefault(address, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the turn came in the same moment
                self._pass_on(lane)
            elif turn in lines.get(address, ()):
                lines[address].remove(turn)
                if not lines[address]:
                    del lines[address]
            raise

    def _pass_on(self, lane: str) -> None:
        """Give a turn to the address that has waited longest for one."""
        lines = self._lines[lane]
        while lines:
            address, turns = lines.popitem(last=False)
            turn = turns.popleft()
            if turns:
                lines[address] = turns  # at the end
            if not turn.done():
                turn.set_result(None)
                return
        self._free[lane] += 1
