"""The visitor's language: that of the browser, if viz/web/words/ has it, else English."""

from __future__ import annotations

import json

import gradio as gr
from gradio.i18n import I18nData

from viz import assets, words
from viz.ui.component import url
from viz.words import Words


def label(english: str) -> I18nData:
    """A label of the section `controls` of the languages' files. For labels, choices, infos and buttons: Gradio 6.31
    translates no placeholders."""
    return I18nData(english)


def drawn(label: I18nData) -> Words:
    """A label's words, where our own scripts draw them."""
    return Words(label.key, {})


def choices(labels: dict[str, I18nData]) -> list[tuple[I18nData, str]]:
    """The choices of a menu: value -> label. No value may be a key of `controls`: Gradio 6.31 translates those, too,
    and then refuses them."""
    return [(text, value) for value, text in labels.items()]


def launch_options() -> dict[str, object]:
    """What the languages need from launch()."""
    return {"i18n": translations()}


def translations() -> gr.I18n:
    """For Gradio's labels. All languages of it go into the page itself, hence the section `controls` alone."""
    controls = {language: words.read(path).get("controls", {}) for language, path in words.files().items()}
    english = {key: key for labels in controls.values() for key in labels}
    return gr.I18n(**{"en": english, **controls})


def head() -> str:
    """For the page's other words: each visitor asks for the file of their own language alone, and does so from the
    page's own head, before any script is there (viz/ui/server/front.py)."""
    addresses = {language: url(path) for language, path in words.files().items()}
    script = assets.LANGUAGE.read_text(encoding="utf-8")
    return f"<script>{script}AttentionAtlas.speak({json.dumps(addresses)});</script>"
