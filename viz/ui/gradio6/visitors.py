"""Visitors' state, kept cheaply and apart from callers of the API.

Gradio makes a session for every call of an endpoint, too: 20 ms to describe all of the page's components, and a place
taken from the visitors, of whom only so many are remembered (measured with Gradio 6.31: 77 % of the event loop's time).
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, fields, is_dataclass

import gradio as gr
import numpy as np
from gradio.state_holder import SessionState, StateHolder

from viz.ui.gradio6.part import Part, lacking

PLAIN = (str, int, float)
REMEMBERED_BYTES = 1_000_000_000  # of all visitors' traces and branches together


@dataclass(frozen=True)
class Latest:
    """The next value of a gr.State, and the number of the question that it answers: it is dropped where the value of a
    later question stands already."""

    number: int
    value: object


def latest(number: int, value: object) -> object:
    """A state's next value in answer to the question with this number."""
    return Latest(number, value) if PART.usable else value


class Visitor(SessionState):
    """One visitor's state. held: bytes of what it keeps between calls; answered: of which question each state has the
    answer, where that has a number."""

    held = 0

    def __setitem__(self, key: int, value: object) -> None:
        if isinstance(value, Latest):
            if value.number < self.answered.get(key, 0):
                return
            self.answered[key], value = value.number, value.value
        super().__setitem__(key, value)
        if key in self.state_data:
            self.held = held_bytes(list(self.state_data.values()))
            self.keep_bounds()


class Descriptions(ChainMap):
    """What a session says of each component: the page's own words until they are read, then a copy. A call reads those
    of its answer alone, and the page has hundreds: to copy all took a third of the time in which the server can run
    Python at 50 callers."""

    def __getitem__(self, key: int) -> dict | None:
        own, page = self.maps
        if key not in own:
            config = page[key]
            own[key] = {**config, "props": copy(config["props"])} if config and "props" in config else config
        return own[key]


class Visitors(StateHolder):
    """Gradio's store of sessions, with sessions copied from one description of the page instead of made anew; a caller
    of the API gets one for the call, which is not kept. Beyond `limit` bytes the visitor longest idle is forgotten, and
    the next, as beyond the number of visitors; never the one who is served."""

    def __init__(self, blocks: gr.Blocks, limit: int = REMEMBERED_BYTES) -> None:
        super().__init__()
        self.limit, self._described = limit, Visitor(blocks)
        self.set_blocks(blocks)  # the last: it is asked from then on

    def __getitem__(self, session_id: str) -> SessionState:
        # A call that names no session of its own goes by its event's id.
        if session_id not in self.session_data:
            if session_id in self.blocks._queue.event_ids_to_events:
                return self._new()
            self.session_data[session_id] = self._new()
        found = super().__getitem__(session_id)
        found.is_closed = False  # a page whose connection was cut goes on
        return found

    def keep_bounds(self) -> None:
        """Forget whoever has been idle longest until the rest is within the limit."""
        with self.lock:
            total = sum(visitor.held for visitor in self.session_data.values())
            while total > self.limit and len(self.session_data) > 1:
                forgotten, visitor = self.session_data.popitem(last=False)
                self.time_last_used.pop(forgotten, None)
                total -= visitor.held

    def _new(self) -> SessionState:
        session = copy(self._described)
        session.blocks_config = copy(self.blocks.default_config)
        session.state_data, session._state_ttl, session.answered = {}, {}, {}
        session.keep_bounds = self.keep_bounds
        session.config_values = Descriptions({}, self._described.config_values)
        return session


def held_bytes(value: object, seen: set[int] | None = None) -> int:
    """Bytes of the arrays in a value of dataclasses and sequences, and roughly of all else; what stands there twice
    counts once."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        whole = value if value.base is None else value.base
        return (
            value.nbytes
            if whole is value
            else held_bytes(whole, seen)
            if isinstance(whole, np.ndarray)
            else value.nbytes
        )
    size = sys.getsizeof(value)
    if is_dataclass(value):
        return size + sum(held_bytes(getattr(value, field.name), seen) for field in fields(value))
    if isinstance(value, (tuple, list, frozenset, set)):
        if all(issubclass(one, PLAIN) for one in set(map(type, value))):  # the many tokens: an answer waits for this
            return size + sum(map(sys.getsizeof, value))
        return size + sum(held_bytes(item, seen) for item in value)
    return size


def use_visitors(blocks: gr.Blocks, limit: int = REMEMBERED_BYTES) -> None:
    """Give a launched page this store, of as many bytes."""
    if PART.usable:
        blocks.app.state_holder = Visitors(blocks, limit)


def _missing() -> Iterator[str]:
    yield from lacking(StateHolder, "__getitem__", "set_blocks", "update")
    yield from lacking(SessionState, "__setitem__", "_update_value_in_config")
    holder, session = StateHolder(), SessionState(gr.Blocks(analytics_enabled=False))
    yield from lacking(holder, "session_data", "time_last_used", "lock", "capacity")
    yield from lacking(session, "blocks_config", "config_values", "state_data", "_state_ttl", "is_closed")


PART = Part(
    "visitors' states",
    _missing,
    "calls of the API take visitors' places, of answers that overtake one another the last to come stands, and maps of "
    "earlier translations are forgotten",
)
