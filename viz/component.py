"""Components of the page: a gr.HTML whose JavaScript and CSS are files under viz/web/, and labels of Gradio's own
components in the visitor's language (the browser's, if viz/web/words/ has it, else English)."""

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
const told = {{ events: {events}, options: {options}, plotly: {plotly} }};
Promise.all([import(mount), import(module)]).then(([{{ mount }}, component]) =>
  mount(component.default, element, {{ props, trigger, styles, ...told }}));
"""


def add_component(
    name: str,
    value: object = None,
    *,
    plotly: bool = False,
    events: tuple[str, ...] = (),
    options: object = None,
    elem_id: str | None = None,
    visible: bool = True,
) -> gr.HTML:
    """Add a component drawn by the module that viz/assets.py names for it, and styled by the sheet beside that.

    The module's default is `(root, api) => ...`, where api has value(), trigger(event, data) and options. Values are
    JSON, never markup: the module builds the page's elements itself with textContent, so that nothing a person typed is
    ever read as HTML.

    plotly: whether it may ask for Plotly.js. events: names that it triggers; a Python listener is
    `component.EVENT(handler)`, which Gradio offers only if the name stands in the script that it is given. options:
    JSON that does not change, api.options.
    """
    script = ON_LOAD.format(
        web=json.dumps(assets.address()),
        mount=assets.name(assets.MOUNT),
        module=assets.name(assets.module(name)),
        styles=json.dumps([assets.name(path) for path in assets.styles(name)]),
        events=json.dumps(events),
        options=json.dumps(for_page(options)),
        plotly=json.dumps(f"{assets.address()}{assets.PLOTLY.name}" if plotly else None),
    )
    return gr.HTML(
        # As text: of a nested value Gradio's page would make thousands of observed objects first.
        json.dumps(for_page(value), allow_nan=False, ensure_ascii=False, separators=(",", ":")),
        html_template=f'<div class="atlas-root atlas-{name}"></div>',
        css_template="",
        js_on_load=script,
        elem_id=elem_id,
        apply_default_css=False,
        visible=visible,
    )


def label(text: Words | str) -> object:
    """Return a text for Gradio's components: words are a key of translations(), without placeholders."""
    return _I18N(text.english) if isinstance(text, Words) else text


def translations(labels: Iterable[Words]) -> gr.I18n:
    """Return these labels in every language, for launch(). All of it goes into the page."""
    english = {text.english for text in labels}
    own = {
        language: {key: text for key, text in words.read(path).items() if text and key in english}
        for language, path in words.files().items()
    }
    return gr.I18n(en={key: key for key in sorted(english)}, **own)
