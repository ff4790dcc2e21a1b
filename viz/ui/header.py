"""The head of the page: type a sentence, read its translation, and how sure the model was of each token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gradio as gr

from model.trace.language import words_of
from model.trace.translation import TranslationTrace
from model.translator import Translator
from model.translators import Translators
from viz.ui import direction
from viz.ui.component import Component
from viz.ui.lab import registry
from viz.ui.language import choices, label
from viz.ui.session import TRANSLATES, Selection, Session, most_telling, serving, turns_for
from viz.ui.tours import guide
from viz.wire.summary import inviting, summarise
from viz.words import say

DETAILS = "atlas-details"  # the id of what is rarely asked for: how a translation is decoded
SEARCHES = {"1": say("greedy"), "5": say("beam 5")}  # how a translation is decoded: the beam's width -> label


@dataclass(frozen=True)
class Header:
    """first: what the page opens with; None where the first direction has no example."""

    session: Session
    first: TranslationTrace | None
    first_selection: Selection
    result: Component
    examples: Component
    restore: Callable  # handler of an event that names a translation: -> values of `restored`
    restored: tuple[gr.components.Component, ...]
    showing: Callable[[TranslationTrace], dict]  # a trace as `result` shows it: for who changes the session's trace


def title(name: str, translators: Translators) -> None:
    """The page's name, what one can do here, and the ways into a tour and a presentation."""
    Component(
        "title",
        {"heading": name, "text": say("See every attention head, replay each decision, test every claim.")},
        options={"tour": guide.invitation(translators)},
        elem_id="atlas-title",
    )


def build(translators: Translators) -> Header:
    """Lay out and wire the header. The page opens with the first example already translated, where there is one."""
    default = translators.routes[0]
    example, model = next(iter(direction.sentences(translators, default)), ""), translators[default.label]
    first = _opening(model, example, default.direction) if example else None
    selection = most_telling(first) if first else Selection()
    trace_state, selection_state, pair = gr.State(first), gr.State(selection), gr.State("")

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
        examples = Component(
            "examples",
            direction.offer(translators, default),
            events=("pick",),
            elem_id="examples",
        )
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
    languages = Component(
        "languages",
        direction.menus(translators, default),
        events=("choose",),
        elem_id="languages",
        visible=any(translator.languages for translator in translators.all),
    )
    result = Component(
        "translation",
        summarise(first, model, registry.lacking(first, model)) if first else inviting(model),
        events=("pin", "open"),
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
    do = _Handlers(translators)
    private = {"api_visibility": "private", "show_progress": "hidden", **TRANSLATES}
    at_once = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    how = [menu, pair, search]
    for begins in (text.submit, go.click, examples.pick):  # Gradio calls the first listener first, and waits for it
        begins(None, js=_translating("true"), **at_once)
    asked = gr.on([text.submit, go.click], do.translate, [text, *how], [result, trace_state], **private)
    picked = examples.pick(do.pick, how, [text, result, trace_state], **private)
    for answered in (asked, picked):
        answered.then(None, js=_translating("false"), **at_once)
    menu.input(do.choose_model, menu, [languages, pair, examples], **at_once)
    languages.choose(do.choose_pair, menu, [pair, examples], **at_once)
    session = Session(trace_state, selection_state, turns_for(translators))
    return Header(
        session,
        first,
        selection,
        result,
        examples,
        do.restore,
        (text, menu, languages, pair, search, result, trace_state),
        do.showing,
    )


def _translating(under_way: str) -> str:
    """What the page itself does when a translation is asked for, and when it has come or failed."""
    return f'() => document.dispatchEvent(new CustomEvent("atlas-translating", {{ detail: {under_way} }}))'


def _opening(model: Translator, example: str, direction: str) -> TranslationTrace:
    """What the page opens with. ValueError, naming the model and the sentence, if that cannot be translated."""
    try:
        model.translate(example.split()[0], direction)  # a process's first pass loads what all later ones use
        return model.translate(example, direction)
    except ValueError as error:
        raise ValueError(f"the example {example!r} of {model.name}: {error}") from error


class _Handlers:
    """What the header does. menu, pair: which direction (viz/ui/direction.py); width: of the beam, as text."""

    def __init__(self, translators: Translators) -> None:
        self.translators = translators

    def translate(self, text: str, menu: str, pair: str, width: str):
        try:
            route = direction.route_of(self.translators, menu, pair)
            translator = self.translators[route.label]
            trace = translator.translate(text or "", route.direction, beam=int(width or 1))
        except ValueError as error:
            return {"error": words_of(error)}, gr.skip()
        return self.showing(trace), trace

    def showing(self, trace: TranslationTrace) -> dict:
        translator = serving(self.translators, trace)
        return summarise(trace, translator, registry.lacking(trace, translator))

    def pick(self, menu: str, pair: str, width: str, event: gr.EventData):
        text = str(event._data.get("text", ""))
        return text, *self.translate(text, menu, pair, width)

    def choose_model(self, menu: str):
        route = self.translators.route(menu)
        return direction.menus(self.translators, route), "", direction.offer(self.translators, route)

    def choose_pair(self, menu: str, event: gr.EventData):
        route = direction.route_of(self.translators, menu, str(event._data.get("direction", "")))
        return route.direction, direction.offer(self.translators, route)

    def restore(self, event: gr.EventData):
        text, *wanted = (str(event._data.get(field, "")) for field in ("text", "direction", "checkpoint"))
        route = self.translators.find(*wanted) or self.translators.routes[0]
        width = str(event._data.get("beam", 1))
        menu, width = direction.entry_of(self.translators, route), width if width in SEARCHES else "1"
        return (
            text,
            menu,
            direction.menus(self.translators, route),
            route.direction,
            width,
            *self.translate(text, menu, route.direction, width),
        )
