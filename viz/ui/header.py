"""The head of the page: type a sentence, read its translation, and how sure the model was of each token."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from model.trace.translation import TranslationTrace
from model.translator import Translator
from model.translators import Translators
from viz.questions.header import SEARCHES, line
from viz.questions.registry import Context
from viz.ui import direction
from viz.ui.component import PRIVATE, Component
from viz.ui.desk.doubts import doubts
from viz.ui.language import choices, label
from viz.ui.rpc import dispatches, fills
from viz.ui.session import serving
from viz.ui.tours import guide
from viz.wire.summary import inviting
from viz.words import say

SENTENCE, DIRECTION, TRANSLATE, DECODING = say("Sentence"), say("Direction"), say("Translate"), say("Decoding")
LABELS = (SENTENCE, DIRECTION, TRANSLATE, DECODING, *SEARCHES.values(), *direction.LABELS)
DETAILS = "atlas-details"  # the id of what is rarely asked for: how a translation is decoded
ASKED = ("text", "entry", "beam")  # what the controls hold, by the names that questions have for it


@dataclass(frozen=True)
class Header:
    """first: the translation that the page opens with; None where the first direction has no example. result: the line
    that shows a translation. menu: of directions."""

    first: TranslationTrace | None
    result: Component
    menu: gr.Dropdown


def title(name: str, translators: Translators) -> None:
    """The page's name, what one can do here, and the ways into a tour and a presentation."""
    Component(
        "title",
        {"heading": name, "text": say("Translate a sentence, then point at its words to see what the model read.")},
        options={"tour": guide.invitation(translators)},
        elem_id="atlas-title",
    )


def build(context: Context) -> Header:
    """Lay out and wire the header. The page opens with the first example already translated, where there is one."""
    translators = context.translators
    default = translators.routes[0]
    example, model = next(iter(direction.sentences(translators, default)), ""), translators[default.label]
    first = _opening(model, example, default.direction) if example else None
    if first:
        context.traces.add(first)

    with gr.Row(elem_id="atlas-input", equal_height=True):
        text = gr.Textbox(
            example,
            label=label(SENTENCE),
            show_label=False,
            lines=1,
            max_lines=4,
            autofocus=True,
            scale=6,
            min_width=320,
            elem_id="source-text",
            submit_btn=False,
        )
        Component("examples", direction.offer(translators, default), elem_id="examples")
        menu = gr.Dropdown(
            [*direction.entries(translators), (label(direction.YOURS), direction.TOY)],
            value=direction.entry_of(translators, default),
            label=label(DIRECTION),
            show_label=False,
            scale=2,
            min_width=160,
            elem_id="direction",
            filterable=False,
        )
        go = gr.Button(label(TRANSLATE), variant="primary", scale=0, min_width=110, elem_id="translate")
    Component(
        "languages",
        direction.menus(translators, default),
        elem_id="languages",
        visible=any(translator.languages for translator in translators.all),
    )
    result = Component(
        "translation",
        _shown_first(translators, first) if first else inviting(model),
        events=("ask", "fill"),
        options={"details": DETAILS},
        elem_id="translation",
    )
    with gr.Row(elem_id=DETAILS):  # the component above opens it
        search = gr.Dropdown(
            choices(SEARCHES),
            value="1",
            label=label(DECODING),
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
    return Header(first, result, menu)


def _opening(model: Translator, example: str, direction: str) -> TranslationTrace:
    """What the page opens with. ValueError, naming the model and the sentence, if that cannot be translated."""
    try:
        model.translate(example.split()[0], direction)  # a process's first pass loads what all later ones use
        return model.translate(example, direction)
    except ValueError as error:
        raise ValueError(f"the example {example!r} of {model.name}: {error}") from error


def _shown_first(translators: Translators, trace: TranslationTrace) -> dict:
    """With the doubts: nobody waits for those of the first translation."""
    return {**line(translators, trace), "doubts": doubts(trace, serving(translators, trace))}
