"""Labels of Gradio's own components, which Gradio shows in the language of the visitor's browser."""

from __future__ import annotations

import gradio as gr
from gradio.i18n import I18nData

from viz.words import LANGUAGES, table


def label(english: str) -> I18nData:
    """A label of the section `controls` of viz/web/words/words.js. For labels, choices, infos and buttons: Gradio 6.31
    translates no placeholders."""
    return I18nData(english)


def choices(labels: dict[str, I18nData]) -> list[tuple[I18nData, str]]:
    """The choices of a menu: value -> label. No value may be a key of the table: Gradio 6.31 translates those, too, and
    then refuses them."""
    return [(words, value) for value, words in labels.items()]


def translations() -> gr.I18n:
    """What launch() needs for the labels. It goes into the page itself, hence the controls' words alone."""
    rows = table()["controls"]
    return gr.I18n(en={english: english for english in rows}, **{
        language: {english: row[i] for english, row in rows.items()} for i, language in enumerate(LANGUAGES)})
