"""The head of the page: type a sentence, read its translation, and how sure the model was of each token."""

from __future__ import annotations

import gradio as gr

from model.trace.translation import TranslationTrace
from model.translator import Translator
from model.translators import Translators
from viz import assets
from viz.questions.header import SEARCHES, line
from viz.questions.registry import Context
from viz.ui import direction
from viz.ui.component import PRIVATE, add_component
from viz.ui.desk.doubts import doubts
from viz.ui.language import label
from viz.ui.selection import serving
from viz.ui.tours import guide
from viz.wire.summary import inviting
from viz.words import say

SENTENCE, DIRECTION, TRANSLATE = say("Sentence"), say("Direction"), say("Translate")
LABELS = (SENTENCE, DIRECTION, TRANSLATE, *direction.LABELS)


def title(name: str, translators: Translators) -> None:
    """The page's name, what one can do here, and the ways into a tour and a presentation."""
    add_component(
        "title",
        {"heading": name, "text": say("Translate a sentence, then point at its words to see what the model read.")},
        options={"tour": guide.invitation(translators)},
        elem_id="atlas-title",
    )


def build(context: Context) -> TranslationTrace | None:
    """Lay out and wire the header. Returns the translation that the page opens with, of the first example; None where
    there is no example."""
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
        add_component("examples", direction.chosen(translators, default), elem_id="examples")
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
    add_component(
        "languages",
        elem_id="languages",
        visible=any(translator.languages for translator in translators.all),
    )
    result = add_component(
        "translation",
        _shown_first(translators, first) if first else inviting(model),
        events=("fill",),
        options={"searches": SEARCHES},
        elem_id="translation",
    )
    gr.on([text.submit, go.click], None, text, js=calls("submit"), **PRIVATE)
    menu.input(None, menu, js=calls("choose"), **PRIVATE)
    result.fill(None, outputs=[text, menu], js=calls("filled"), **PRIVATE)
    return first


def calls(name: str) -> str:
    """Return a listener that calls this function of viz/web/store/controls.js with the values of its inputs."""
    module = f"{assets.address()}store/controls.js"
    return f'async (...values) => (await import(new URL("{module}", document.baseURI))).{name}(...values)'


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
