"""What stands above the panels of the tab "Why": the pinned token, its contrast, the answer in one measured sentence.

A pin is a row of the decoder, so it is the explorer's pinned query as well: either follows the other.
"""

from __future__ import annotations

from dataclasses import replace

import gradio as gr

from model.analysis.why import pinned
from model.analysis.why.methods import occlusion
from model.trace.kinds import Side
from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.ui.asked import Asked, name_of, wanted_by
from viz.ui.component import Component
from viz.ui.desk.desk import PRIVATE, Desk
from viz.ui.desk.scene import Scene
from viz.ui.header import Header
from viz.ui.rpc import Message, told
from viz.ui.session import Selection
from viz.wire.address import named
from viz.wire.payload import key_of
from viz.wire.question import exact, headline, picture, question_payload


def build(translators: Translators, header: Header) -> None:
    """Lay out and wire the question."""
    session = header.session
    content = Component("question", told(stale=True), events=("ask",), elem_id="why-question")

    desk = Desk(content, session, translators)

    def ask(message: Message, scene: Scene) -> tuple:
        wanted = wanted_by(message.data, scene.trace, scene.asked)
        wanted.question(scene.translator, scene.trace)  # raises: what was asked before stands
        return told_of(wanted), *states_of(message, wanted, scene.selection)

    def pin(event: gr.EventData, trace: TranslationTrace | None, selection: Selection, asked: Asked):
        if trace is None:
            return gr.skip(), gr.skip()
        message = Message.of(event)
        return states_of(message, wanted_by(message.data, trace, asked), selection)

    def follow(trace: TranslationTrace | None, selection: Selection, asked: Asked):
        step = None if trace is None else selected_step(selection, trace)
        return gr.skip() if step in (None, asked.fitted(trace).step) else wanted_by({"step": step}, trace, asked)

    # Through the queue: what changes a state outside it does not set off that state's own change event. Without the
    # model, so that it waits for no panel.
    asking, states = desk.about(ask)
    desk.answers("ask", asking, states, [session.asked, session.selection])
    header.result.pin(pin, states, [session.asked, session.selection], trigger_mode="multiple", **PRIVATE)
    session.selection.change(follow, states, session.asked, **PRIVATE)
    session.asked.change(lambda asked: told(**told_of(asked)), session.asked, content, **PRIVATE)


def told_of(asked: Asked) -> dict:
    """A question for the page: its name, and the JSON that the page sends with its own questions."""
    return {"asked": name_of(asked), "question": asked.to_plain()}


def answered(scene: Scene) -> dict:
    """What the page draws: the translation's tokens, the question, and the headline; in its place, in words, why it
    cannot be had. most: how many tokens, from the first on, can be asked about: those within the limit; of another
    network, none. ValueError, in words, for what cannot be asked."""
    trace, question = scene.trace, scene.question
    most = scene.askable
    found = {
        "asked": name_of(scene.asked.fitted(trace)),
        "about": key_of(trace),
        **named(trace, trace.decoding),
        **question_payload(trace, question, pinned.contrasts(trace, question.step)),
        "most": most,
        "limit": len(trace.source_ids) + most,
    }
    try:
        case = scene.case
    except Refusal as error:
        return {**found, "refused": error.words, "most": most if question.step >= most else 0}
    lost = occlusion.losses(case)
    tokens = scene.translator.tokenizer.tokens(lost.ids.ravel().tolist())
    return {
        **found,
        "headline": headline(trace, question, lost, case.columns),
        "exact": exact(lost, case.columns),
        "picture": picture(question, lost, case.columns, tokens),
    }


def states_of(message: Message, wanted: Asked, selection: Selection) -> tuple[object, object]:
    """The states of what is asked and of the selection."""
    return message.state(wanted), message.state(selecting(selection, wanted.step))


def selected_step(selection: Selection, trace: TranslationTrace) -> int | None:
    """The step that the page's selection has pinned: a row of one of the decoder's maps. None: no such row."""
    query = selection.query
    return None if selection.kind.side is Side.ENCODER or query is None or query >= len(trace.target_ids) else query


def selecting(selection: Selection, step: int) -> Selection:
    """The selection with this step as its pinned row, where its maps have rows for steps."""
    return selection if selection.kind.side is Side.ENCODER else replace(selection, query=step)
