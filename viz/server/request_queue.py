"""The bounded queue of requests for a model.

Requests wait in lanes. A lane runs a fixed number of requests at once; within a lane, client addresses take turns, so
that a client with many requests delays another by one request only. One address may take only a share of the places.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from attention_atlas.model.serve.limits import Busy

TRANSLATE_WIDTH = 48  # requests that only translate, run at once
ADDRESS_SHARE = 0.25  # of the waiting places, for API calls from one address in one lane
PAGE_SHARE = 0.8  # the same for the page: the computers of a class often share one address


@dataclass
class Turn:
    """The right to run in a lane. `is_held` is False once it was passed on."""

    queue: RequestQueue
    lane: str
    address: str
    is_held: bool = True


_current_turn: ContextVar[Turn | None] = ContextVar("current_turn", default=None)


async def yield_turn() -> None:
    """Let the next waiting request of this task's lane run, and wait for another turn. Called between the parts of a
    streamed answer."""
    turn = _current_turn.get()
    if turn is None or not turn.is_held:
        return
    waiting = turn.queue._waiting[turn.lane]
    if waiting:
        turn.is_held = False
        turn.queue._release(turn.lane)
        await turn.queue._wait(waiting, turn.lane, turn.address)
        turn.is_held = True


class RequestQueue:
    """The queue; all its methods run on one event loop."""

    def __init__(self, lanes: dict[str, int], max_waiting: int) -> None:
        """
        Args:
            lanes: the number of requests that each lane runs at once
            max_waiting: the number of requests that may wait in all lanes together
        """
        self._free = Counter(lanes)
        self.max_waiting = max_waiting
        self._waiting: dict[str, OrderedDict[str, deque[asyncio.Future]]] = {lane: OrderedDict() for lane in lanes}

    def __len__(self) -> int:
        """Return the number of waiting requests."""
        return sum(len(futures) for waiting in self._waiting.values() for futures in waiting.values())

    def check(self, lane: str, address: str, share: float = ADDRESS_SHARE) -> None:
        """Raise Busy if the queue is full or this address already has its share of the places in the lane."""
        total, from_address = len(self), len(self._waiting.get(lane, {}).get(address, ()))
        if total >= self.max_waiting:
            raise Busy.queue_full(total)
        if from_address >= max(1, int(share * self.max_waiting)):
            raise Busy.queue_full(from_address)

    @asynccontextmanager
    async def turn(self, lane: str, address: str, share: float = ADDRESS_SHARE) -> AsyncIterator[None]:
        """Wait for a turn in a lane and hold it for the block. A nested call uses the outer call's turn. Raises Busy as
        check() does."""
        outer = _current_turn.get()
        if outer is not None and outer.is_held:
            yield
            return
        if self._free[lane] > 0:
            self._free[lane] -= 1
        else:
            self.check(lane, address, share)
            await self._wait(self._waiting[lane], lane, address)
        turn = Turn(self, lane, address)
        token = _current_turn.set(turn)
        try:
            yield
        finally:
            _current_turn.reset(token)
            if turn.is_held:
                turn.is_held = False
                self._release(lane)

    async def _wait(self, waiting: OrderedDict[str, deque[asyncio.Future]], lane: str, address: str) -> None:
        future = asyncio.get_running_loop().create_future()
        waiting.setdefault(address, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # cancelled just after it got its turn
                self._release(lane)
            elif future in waiting.get(address, ()):
                waiting[address].remove(future)
                if not waiting[address]:
                    del waiting[address]
            raise

    def _release(self, lane: str) -> None:
        """Give the turn to the address that has waited longest, or mark the place as free."""
        waiting = self._waiting[lane]
        while waiting:
            address, futures = waiting.popitem(last=False)
            future = futures.popleft()
            if futures:
                waiting[address] = futures  # its next request waits behind the other addresses
            if not future.done():
                future.set_result(None)
                return
        self._free[lane] += 1
