"""The stepper tab: decode token by token, choose otherwise, and compare what becomes of it (viz/questions/steps.py)."""

from __future__ import annotations

import gradio as gr

from model.trace.address import Address
from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.ui.component import Component
from viz.ui.desk.desk import PRIVATE
from viz.ui.explorer import share_selection
from viz.ui.header import Header
from viz.ui.rpc import Message, told


def build(translators: Translators, header: Header) -> None:
    """Lay out and wire the tab."""
    session = header.session
    # It begins by asking: when the tab is opened the page may be at another sentence than it began with.
    stepper = Component("stepper", told(stale=True), events=("select", "publish"), elem_id="stepper")

    def publish(trace: TranslationTrace | None, event: gr.EventData):
        message = Message.of(event)
        opened = session.traces.find(Address.from_plain(message.data.get("opened")))
        return header.shown(message, opened) if is_of(opened, trace) else [gr.skip()] * 2

    # Queued: an event outside the queue changes a state without telling who listens to it.
    stepper.publish(publish, [session.trace], header.shows, trigger_mode="multiple", **PRIVATE)
    share_selection(stepper, session)


def is_of(opened: TranslationTrace, trace: TranslationTrace | None) -> bool:
    """Whether the other tabs still show the sentence of a branch. Another may have come meanwhile, by a link or typed:
    that one stays."""
    names = ("source_ids", "digest", "direction", "interventions")
    return trace is not None and all(getattr(opened, name) == getattr(trace, name) for name in names)
