"""Labels of Gradio's components in the visitor's language: the browser's, if viz/web/words/ has it, else English."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import gradio as gr

from viz import words
from viz.words import Words

_I18N = gr.I18n()


def label(text: Words | str) -> object:
    """Return a text as a component of Gradio takes it: words without values as a key of translations(). Gradio 6.31
    translates no placeholders."""
    return _I18N(text.english) if isinstance(text, Words) else text


def choices(labels: Mapping[str, Words | str]) -> list[tuple[object, str]]:
    """Return the choices of a menu: value -> label. No value may be a label of the page: Gradio 6.31 translates those,
    too, and then refuses them."""
    return [(label(text), value) for value, text in labels.items()]


def translations(labels: Iterable[Words]) -> gr.I18n:
    """Return these labels in every language, for launch(). All of it goes into the page."""
    english = {text.english for text in labels}
    own = {
        language: {key: text for key, text in words.read(path).items() if text and key in english}
        for language, path in words.files().items()
    }
    return gr.I18n(en={key: key for key in sorted(english)}, **own)
