"""The head of the page: type a sentence, read its translation, and how sure the model was of each token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gradio as gr
from gradio.i18n import I18nData

from model.trace.directions import Route, find_route
from model.trace.language import words_of
from model.trace.translation import TranslationTrace
from model.translator import Translators
from viz.ui.component import Component
from viz.ui.language import label
from viz.ui.session import TRANSLATES, Selection, Session, most_telling, turns_for
from viz.wire.summary import inviting, summarise
from viz.words import say

LANGUAGE_PAIRS = {("de", "en"): label("German → English"), ("en", "de"): label("English → German"),
                  ("en", "fr"): label("English → French")}


@dataclass(frozen=True)
class Header:
    """first: what the page opens with; None where the first direction has no example."""

    session: Session
    first: TranslationTrace | None
    first_selection: Selection
    result: Component
    examples: Component
    examples_for: Callable[[str], list[str]]  # of the route with this label
    choices: list[tuple[I18nData | str, str]]  # of the menu of directions
    restore: Callable  # handler of an event with text and direction: -> text, direction, result, session.trace


def label_of(route: Route) -> I18nData | str:
    """ "German → English", with the checkpoint's name in brackets where others serve the same direction before it."""
    name = LANGUAGE_PAIRS.get((route.source, route.target), f"{route.source} → {route.target}")
    return name if route.is_first else f"{name} ({route.checkpoint})"


def title(name: str) -> None:
    """The page's name and what one can do here."""
    Component("prose", {"heading": name, "text": say(
        "A Transformer translates your sentence. Look at every attention head it has, step through its choices, and "
        "check each claim.")}, elem_id="atlas-title")


def build(translators: Translators) -> Header:
    """Lay out and wire the header. The page opens with the first example already translated, where there is one."""
    def examples_for(label: str) -> list[str]:
        return [e.text for e in translators[label].examples.get(translators.route(label).direction, ())]

    default = translators.routes[0]
    example, model = next(iter(examples_for(default.label)), ""), translators[default.label]
    first = model.translate(example, default.direction) if example else None
    selection = most_telling(first) if first else Selection()
    trace_state, selection_state = gr.State(first), gr.State(selection)

    with gr.Row(elem_id="atlas-input", equal_height=True):
        text = gr.Textbox(
            example, label=label("Sentence"), lines=1, max_lines=4, autofocus=True, scale=6, elem_id="source-text",
            submit_btn=False)
        choices = [(label_of(route), route.label) for route in translators.routes]
        direction = gr.Dropdown(
            choices, value=default.label, label=label("Direction"), scale=2, min_width=170, elem_id="direction",
            filterable=False)
        go = gr.Button(label("Translate"), variant="primary", scale=1, min_width=110, elem_id="translate")
    examples = Component("examples", examples_for(default.label), events=("pick",), elem_id="examples")
    result = Component("translation", summarise(first, model) if first else inviting(model),
                       events=("pin", "open"), elem_id="translation")

    def translate(text: str, label: str):
        try:
            translator = translators[label]
            trace = translator.translate(text or "", translators.route(label).direction)
        except ValueError as error:
            return {"error": words_of(error)}, gr.skip()
        return summarise(trace, translator), trace

    def pick(label: str, event: gr.EventData):
        text = str(event._data.get("text", ""))
        return text, *translate(text, label)

    def restore(event: gr.EventData):
        text, *wanted = (str(event._data.get(field, "")) for field in ("text", "direction", "checkpoint"))
        route = find_route(translators.routes, *wanted) or default
        return text, route.label, *translate(text, route.label)

    private = {"api_visibility": "private", "show_progress": "hidden", **TRANSLATES}
    gr.on([text.submit, go.click], translate, [text, direction], [result, trace_state], **private)
    examples.pick(pick, [direction], [text, result, trace_state], **private)
    direction.input(examples_for, [direction], [examples], api_visibility="private",
                    queue=False, show_progress="hidden")
    session = Session(trace_state, selection_state, text, direction, turns_for(translators))
    return Header(session, first, selection, result, examples, examples_for, choices, restore)
