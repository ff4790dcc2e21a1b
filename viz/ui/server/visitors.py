"""Visitors' state, kept cheaply and apart from callers of the API.

Gradio makes a session for every call of an endpoint, too: 20 ms to describe all of the page's components, and a place
taken from the visitors, of whom only so many are remembered (measured with Gradio 6.31: 77 % of the event loop's time).
"""

from __future__ import annotations

from copy import copy

import gradio as gr
from gradio.state_holder import SessionState, StateHolder


class Visitors(StateHolder):
    """Gradio's store of sessions, with sessions copied from one description of the page instead of made anew; a caller
    of the API gets one for the call, which is not kept."""

    def __init__(self, blocks: gr.Blocks) -> None:
        super().__init__()
        self.set_blocks(blocks)
        self._described = SessionState(blocks)

    def __getitem__(self, session_id: str) -> SessionState:
        # A call that names no session of its own goes by its event's id.
        if session_id not in self.session_data:
            if session_id in self.blocks._queue.event_ids_to_events:
                return self._new()
            self.session_data[session_id] = self._new()
        return super().__getitem__(session_id)

    def _new(self) -> SessionState:
        session = copy(self._described)
        session.blocks_config = copy(self.blocks.default_config)
        session.state_data, session._state_ttl = {}, {}
        session.config_values = {
            key: {**config, "props": copy(config["props"])} if config and "props" in config else config
            for key, config in self._described.config_values.items()}
        return session


def use_visitors(blocks: gr.Blocks) -> None:
    """Give a launched page this store."""
    blocks.app.state_holder = Visitors(blocks)
