"""The explorer tab: every head of the model on one screen. The page draws; the server sends a payload a translation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import gradio as gr

from model.trace.address import Address
from model.trace.language import Words
from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.export.formats import FORMATS
from viz.ui import overlays
from viz.ui.asked import Asked, wanted_by
from viz.ui.component import Component
from viz.ui.desk.desk import MODEL, PRIVATE, Desk
from viz.ui.desk.sent import sent
from viz.ui.experiments import beside, cutting
from viz.ui.header import Header, asked_of, translated
from viz.ui.lab.frame import told_of
from viz.ui.rpc import Message, told
from viz.ui.session import TRANSLATES, Selection, Session
from viz.wire.payload import key_of, selection_dict
from viz.wire.summary import INVITATION

EVENTS = ("select", "cut_open", "again")


def build(translators: Translators | None, header: Header) -> None:
    """Lay out and wire the tab. translators: of the models that can be asked; None: the traces are all there is.
    Another sentence's maps come with the header's answer, which hands them on."""
    session = header.session
    first = sent(translators, header.first, header.first_selection) if header.first else {"invitation": INVITATION}
    explorer = component(first, model=translators is not None)
    share_selection(explorer, session)
    session.asked.change(lambda asked: told(**told_of(asked)), [session.asked], [explorer], queue=False, **PRIVATE)
    desk = Desk(explorer, session, translators)

    def uncut(message: Message) -> tuple:
        trace = session.traces.find(Address.from_plain(message.data.get("address")))
        return {}, *header.shown(message, cutting.translated(desk.scene(trace), message.data))

    desk.answers("cut_open", uncut, [], header.shows, refused=not_cut, **TRANSLATES)
    if translators:
        again = resumed(translators)
        # Outside the queue nobody hears that a state has changed: the page shows all of it already.
        states = [session.trace, session.selection, session.asked]
        desk.answers("again", again, [], states, turn=True, queue=False, **MODEL)


def resumed(translators: Translators) -> Callable[[Message], tuple]:
    """What answers a page that goes on here after its own server has ended (viz/web/page/reconnect.js): it says what it
    shows, and these become the visitor's states. Where that is another translation here, the page has to begin anew."""

    def again(message: Message) -> tuple:
        data = message.data
        trace = translated(translators, asked_of(translators, data), data)
        if key_of(trace) != data.get("key"):
            return {"other": True}, *[gr.skip()] * 3
        parts = {name: one if isinstance(one := data.get(name), dict) else {} for name in ("selection", "asked")}
        asked = wanted_by(parts["asked"], trace, Asked())
        found = (trace, chosen(trace, parts["selection"]), asked)
        shown, selection, asked = map(message.state, found)
        return {}, shown, selection, asked

    return again


def component(value: dict, *, model: bool = False) -> Component:
    """The explorer with this payload, told what it can ask of the server. model: also what only a model can answer."""
    return Component(
        "explorer",
        told(**value),
        plotly=True,
        events=EVENTS,
        options={
            "formats": [{"name": name, "about": form.about} for name, form in FORMATS.items()],
            **overlays.options(model=model),
            "pairs": beside.offered() if model else {},
        },
        elem_id="explorer",
    )


def share_selection(component: Component, session: Session) -> None:
    """What is selected in the component is selected on the whole page, and the other way round."""
    session.selection.change(
        lambda selection: told(selection=selection_dict(selection)),
        [session.selection],
        [component],
        queue=False,
        trigger_mode="always_last",
        **PRIVATE,
    )
    # Through the queue: what changes a state outside it does not set off that state's own change event.
    # One by one: of several at once, Gradio would send the first one's data again in place of the last one's.
    component.select(
        choose, [session.trace], [session.selection], trigger_mode="multiple", concurrency_limit=1, **PRIVATE
    )


def choose(trace: TranslationTrace | None, event: gr.EventData) -> object:
    """The selection's state, as the page reports it."""
    message = Message.of(event)
    return message.state(chosen(trace, message.data))


def chosen(trace: TranslationTrace | None, data: Mapping[str, object]) -> Selection:
    """The selection that the page reports, inside the limits of the trace. A Refusal for an unknown kind."""
    found = Selection.from_plain(data)
    return found.fitted(trace) if trace else found


def not_cut(message: Message, words: Words | str) -> dict:
    """It stands where the answer would."""
    return {"cut": {"error": words}}
