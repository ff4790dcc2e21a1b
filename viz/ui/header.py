"""The head of the page: type a sentence, read its translation, and how sure the model was of each token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import gradio as gr

from model.trace import interventions_file
from model.trace.directions import Route
from model.trace.interventions import Interventions
from model.trace.language import Refusal, words_of
from model.trace.translation import TranslationTrace
from model.translator import Translator
from model.translators import Translators
from viz.questions.traces import Traces
from viz.ui import direction
from viz.ui.component import Component
from viz.ui.desk.desk import PRIVATE, Desk
from viz.ui.desk.doubts import doubtful, doubts
from viz.ui.desk.sent import sent
from viz.ui.lab import registry
from viz.ui.language import choices, label
from viz.ui.rpc import Message, dispatches, fills, told
from viz.ui.session import TRANSLATES, Selection, Session, most_telling, serving, turns_for
from viz.ui.tours import guide
from viz.wire.summary import inviting, summarise
from viz.words import say

DETAILS = "atlas-details"  # the id of what is rarely asked for: how a translation is decoded
SEARCHES = {"1": say("greedy"), "5": say("beam 5")}  # how a translation is decoded: the beam's width -> label
ASKED = ("text", "entry", "beam")  # what the controls hold, by the names that questions have for it


@dataclass(frozen=True)
class Header:
    """first: what the page opens with; None where the first direction has no example."""

    session: Session
    first: TranslationTrace | None
    first_selection: Selection
    result: Component
    menu: gr.Dropdown  # of directions
    showing: Callable[[TranslationTrace], dict]  # another trace as `result` is told of it

    @property
    def shows(self) -> list[gr.components.Component]:
        """What another trace is told to."""
        return [self.session.trace, self.result]

    def shown(self, message: Message, trace: TranslationTrace, **more: object) -> tuple[object, dict]:
        """For whoever changes the session's trace in answer to a question: what `shows` is told."""
        return message.state(trace), message.tells(**self.showing(trace), **more)


def title(name: str, translators: Translators) -> None:
    """The page's name, what one can do here, and the ways into a tour and a presentation."""
    Component(
        "title",
        {"heading": name, "text": say("Translate a sentence, then point at its words to see what the model read.")},
        options={"tour": guide.invitation(translators)},
        elem_id="atlas-title",
    )


def build(translators: Translators, traces: Traces) -> Header:
    """Lay out and wire the header. The page opens with the first example already translated, where there is one.
    traces: that the page's questions are about."""
    do, default = _Handlers(translators, traces), translators.routes[0]
    example, model = next(iter(direction.sentences(translators, default)), ""), translators[default.label]
    first = _opening(model, example, default.direction) if example else None
    selection = most_telling(first) if first else Selection()
    trace_state, selection_state = gr.State(first), gr.State(selection)

    with gr.Row(elem_id="atlas-input", equal_height=True):
        text = gr.Textbox(
            example,
            label=label(say("Sentence")),
            show_label=False,
            lines=1,
            max_lines=4,
            autofocus=True,
            scale=6,
            min_width=320,
            elem_id="source-text",
            submit_btn=False,
        )
        Component("examples", told(**direction.offer(translators, default)), elem_id="examples")
        menu = gr.Dropdown(
            direction.entries(translators),
            value=direction.entry_of(translators, default),
            label=label(say("Direction")),
            show_label=False,
            scale=2,
            min_width=160,
            elem_id="direction",
            filterable=False,
        )
        go = gr.Button(label(say("Translate")), variant="primary", scale=0, min_width=110, elem_id="translate")
    Component(
        "languages",
        direction.menus(translators, default),
        elem_id="languages",
        visible=any(translator.languages for translator in translators.all),
    )
    result = Component(
        "translation",
        told(**(do.opening(first) if first else inviting(model))),
        events=("translate", "ask", "fill", "pin", "open"),
        options={"details": DETAILS},
        elem_id="translation",
    )
    with gr.Row(elem_id=DETAILS):  # the component above opens it
        search = gr.Dropdown(
            choices(SEARCHES),
            value="1",
            label=label(say("Decoding")),
            scale=0,
            min_width=150,
            elem_id="decoding",
            filterable=False,
        )
    # What is asked is what the controls hold when it is asked. The page's scripts ask it, with a number.
    controls = [text, menu, search]
    gr.on([text.submit, go.click], None, controls, js=dispatches("atlas-ask", *ASKED), **PRIVATE)
    result.ask(None, controls, js=dispatches("atlas-ask-given", *ASKED), **PRIVATE)
    menu.input(None, menu, js=dispatches("atlas-choose", "entry"), **PRIVATE)
    result.fill(None, outputs=controls, js=fills("atlas-fill", *ASKED), **PRIVATE)
    session = Session(trace_state, selection_state, traces, turns_for(translators))
    desk = Desk(result, session)
    asked = desk.answers("translate", do.translate, [selection_state], [trace_state], **TRANSLATES)
    asked.then(None, js=dispatches("atlas-ended"), **PRIVATE)
    asked.failure(None, js=dispatches("atlas-failed"), **PRIVATE)
    return Header(session, first, selection, result, menu, do.showing)


def _opening(model: Translator, example: str, direction: str) -> TranslationTrace:
    """What the page opens with. ValueError, naming the model and the sentence, if that cannot be translated."""
    try:
        model.translate(example.split()[0], direction)  # a process's first pass loads what all later ones use
        return model.translate(example, direction)
    except ValueError as error:
        raise ValueError(f"the example {example!r} of {model.name}: {error}") from error


def asked_of(translators: Translators, data: Mapping[str, object]) -> Route:
    """Which model is asked, for which direction: as a link says, {direction, checkpoint}, or as the menus do. The first
    of all where neither says one that is served."""
    code, checkpoint, entry, pair = (str(data.get(name) or "") for name in ("direction", "checkpoint", "entry", "pair"))
    if code or not entry:
        return translators.find(code, checkpoint) or translators.routes[0]
    return direction.route_of(translators, entry, pair)


def beam_of(data: Mapping[str, object]) -> str:
    """The width that is asked for, of those that the menu has."""
    beam = str(data.get("beam") or "")
    return beam if beam in SEARCHES else "1"


def translated(translators: Translators, route: Route, data: Mapping[str, object]) -> TranslationTrace:
    """What is asked for, {text, beam, interventions}. ValueError, in words, for what cannot be translated."""
    text, changes = (str(data.get(name) or "") for name in ("text", "interventions"))
    return translators[route.label].translate(
        text, route.direction, beam=int(beam_of(data)), interventions=_linked(changes)
    )


def _linked(changes: str) -> Interventions:
    try:
        return interventions_file.from_text(changes)
    except ValueError as error:
        raise Refusal("The change to the model in this link cannot be read: {why}.", why=str(error)) from error


class _Handlers:
    """What the header answers."""

    def __init__(self, translators: Translators, traces: Traces) -> None:
        self.translators, self.traces = translators, traces

    def translate(self, message: Message, selection: Selection) -> dict | tuple[dict, object]:
        """Translate a text as the menus say, {text, entry, pair, beam} (viz/ui/direction.py; pair: of a model of many
        languages), or as a link does, {text, direction, checkpoint, beam, interventions}. The menus follow a link, and
        a question that {fills}: of a page that loaded itself anew."""
        route, data = asked_of(self.translators, message.data), message.data
        follows = data.get("direction") or data.get("fills") or not data.get("entry")
        fill = {"beam": beam_of(data), **direction.chosen(self.translators, route)} if follows else None
        try:
            trace = translated(self.translators, route, data)
        except ValueError as error:
            return {"error": words_of(error), "fill": fill}
        return {**self.showing(trace, selection), "fill": fill}, message.state(trace)

    def showing(self, trace: TranslationTrace, selection: Selection | None = None) -> dict:
        """With what the explorer draws: an event of its own would take longer than the drawing."""
        self.traces.add(trace)
        return {**self.line(trace), "map": sent(self.translators, trace, selection)}

    def line(self, trace: TranslationTrace) -> dict:
        translator = serving(self.translators, trace)
        found = summarise(trace, translator, registry.lacking(trace, translator))
        return {
            **found,
            "doubtful": doubtful(trace, translator),
            "mismatch": direction.mismatch(self.translators, trace),
        }

    def opening(self, trace: TranslationTrace) -> dict:
        """Of what the page opens with nobody waits for the doubts."""
        self.traces.add(trace)
        return {**self.line(trace), "doubts": doubts(trace, serving(self.translators, trace))}
