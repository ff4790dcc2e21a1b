"""Components of the page, and translated labels of Gradio's own components.

A component is a gr.HTML whose JavaScript and CSS are files below viz/web/. Labels follow the browser's language if
viz/web/words/ has it, else they are English.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import gradio as gr

from attention_atlas.viz import assets, words
from attention_atlas.viz.words import Words, for_page

_I18N = gr.I18n()

ON_LOAD = """
const web = new URL({web}, document.baseURI);
const [mount, module, ...styles] = ["{mount}", "{module}", ...{styles}].map((name) => new URL(name, web).href);
const context = {{ name: "{name}", events: {events}, options: {options} }};
Promise.all([import(mount), import(module)]).then(([{{ mount }}, component]) =>
  mount(component.default, element, {{ props, trigger, styles, ...context }}));
"""


def add_component(
    name: str,
    value: object = None,
    *,
    events: tuple[str, ...] = (),
    options: object = None,
    elem_id: str | None = None,
    visible: bool = True,
) -> gr.HTML:
    """Add a component drawn by the module that viz/assets.py names for it, and styled by the sheet beside that.

    The module's default export is `(root, api) => ...`; api has value(), trigger(event, data) and options. Values are
    JSON, never markup: the module creates elements with textContent, so typed text is never read as HTML.

    value    the initial value, JSON-ready
    events   names that the module triggers. A Python listener is `component.EVENT(handler)`; Gradio offers it only if
             the script contains the name
    options  constant JSON, api.options
    """
    script = ON_LOAD.format(
        name=name,
        web=json.dumps(assets.address()),
        mount=assets.name(assets.MOUNT),
        module=assets.name(assets.module(name)),
        styles=json.dumps([assets.name(path) for path in assets.styles(name)]),
        events=json.dumps(events),
        options=json.dumps(for_page(options)),
    )
    return gr.HTML(
        # As a string: Gradio's page would wrap every object of a nested value in a proxy.
        json.dumps(for_page(value), allow_nan=False, ensure_ascii=False, separators=(",", ":")),
        html_template=f'<div class="atlas-root atlas-{name}"></div>',
        css_template="",
        js_on_load=script,
        elem_id=elem_id,
        apply_default_css=False,
        visible=visible,
    )


def label(text: Words | str) -> object:
    """Return a label for Gradio's components. Words must have no placeholders and be among those of translations()."""
    return _I18N(text.english) if isinstance(text, Words) else text


def translations(labels: Iterable[Words]) -> gr.I18n:
    """Return these labels in every language, for Blocks.launch()."""
    english = {text.english for text in labels}
    translated = {
        language: {key: text for key, text in words.read(path).items() if text and key in english}
        for language, path in words.files().items()
    }
    return gr.I18n(en={key: key for key in sorted(english)}, **translated)
