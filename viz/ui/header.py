"""The head of the page: type a sentence, read its translation, and how sure the model was of each token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gradio as gr
from gradio.i18n import I18nData

from model.trace.translation import TranslationTrace
from model.translator import Translators
from viz.ui.component import Component
from viz.ui.language import label
from viz.ui.session import TRANSLATES, Selection, Session, most_telling, turns_for
from viz.wire.summary import inviting, summarise
from viz.words import known, say

DIRECTIONS = {"de-en": label("German → English"), "en-de": label("English → German"),
              "en-fr": label("English → French")}


@dataclass(frozen=True)
class Header:
    """first: what the page opens with; None where the first direction has no example."""

    session: Session
    first: TranslationTrace | None
    first_selection: Selection
    result: Component
    restore: Callable  # handler of an event with text and direction: -> text, direction, result, session.trace


def label_of(direction: str) -> I18nData | str:
    """ "de-en" -> "German → English"; a checkpoint's name in brackets stays."""
    codes, _, rest = direction.partition(" ")
    name = DIRECTIONS.get(codes, codes.replace("-", " → "))
    return f"{name} {rest}" if rest else name


def title(name: str) -> None:
    """The page's name and what one can do here."""
    Component("prose", {"heading": name, "text": say(
        "A Transformer translates your sentence. Look at every attention head it has, step through its choices, and "
        "check each claim.")}, elem_id="atlas-title")


def build(translators: Translators) -> Header:
    """Lay out and wire the header. The page opens with the first example already translated, where there is one."""
    def examples_for(direction: str) -> list[str]:
        return [example.text for example in translators[direction].examples.get(direction.split(" ")[0], ())]

    default = next(iter(translators))
    example = next(iter(examples_for(default)), "")
    first = translators[default].translate(example, default.split(" ")[0]) if example else None
    selection = most_telling(first) if first else Selection()
    trace_state, selection_state = gr.State(first), gr.State(selection)

    with gr.Row(elem_id="atlas-input", equal_height=True):
        text = gr.Textbox(
            example, label=label("Sentence"), lines=1, max_lines=4, autofocus=True, scale=6, elem_id="source-text",
            submit_btn=False)
        direction = gr.Dropdown(
            [(label_of(d), d) for d in translators], value=default, label=label("Direction"), scale=2, min_width=170,
            elem_id="direction", filterable=False)
        go = gr.Button(label("Translate"), variant="primary", scale=1, min_width=110, elem_id="translate")
    examples = Component("examples", examples_for(default), events=("pick",), elem_id="examples")
    model = translators[default]
    result = Component("translation", summarise(first, model) if first else inviting(model), elem_id="translation")

    def translate(text: str, direction: str):
        try:
            translator = translators[direction]
            trace = translator.translate(text or "", direction.split(" ")[0])
        except ValueError as error:
            return {"error": known(str(error))}, gr.skip()
        return summarise(trace, translator), trace

    def pick(direction: str, event: gr.EventData):
        text = str(event._data.get("text", ""))
        return text, *translate(text, direction)

    def restore(event: gr.EventData):
        direction, name = (str(event._data.get(field, "")) for field in ("direction", "checkpoint"))
        wanted = next((x for x in (f"{direction} ({name})", direction) if x in translators), default)
        text = str(event._data.get("text", ""))
        return text, wanted, *translate(text, wanted)

    private = {"api_visibility": "private", "show_progress": "hidden", **TRANSLATES}
    gr.on([text.submit, go.click], translate, [text, direction], [result, trace_state], **private)
    examples.pick(pick, [direction], [text, result, trace_state], **private)
    direction.input(examples_for, [direction], [examples], api_visibility="private",
                    queue=False, show_progress="hidden")
    session = Session(trace_state, selection_state, text, direction, turns_for(translators))
    return Header(session, first, selection, result, restore)
