"""The visitor's language: that of the browser, if viz/web/words/ has it, else English."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import gradio as gr
from gradio.i18n import I18nData

from viz import assets, words
from viz.ui.component import url
from viz.words import Words

LABEL = re.compile(r'__i18n__({"__type__": "translation_metadata", "key": "(?:[^"\\]|\\.)*"})')  # as text


def label(text: Words | str) -> I18nData | str:
    """Words without values as a component of Gradio takes them: for labels, choices, infos and buttons. Gradio 6.31
    translates no placeholders."""
    return I18nData(text.english) if isinstance(text, Words) else text


def choices(labels: Mapping[str, Words | str]) -> list[tuple[I18nData | str, str]]:
    """The choices of a menu: value -> label. No value may be a label of the page, either: Gradio 6.31 translates those,
    too, and then refuses them."""
    return [(label(text), value) for value, text in labels.items()]


def translations(config: Mapping) -> gr.I18n:
    """What Gradio's labels are in each language. All of it goes into the page itself: hence only the labels that stand
    in its Blocks' config."""
    shown = {english for part in config["components"] for english in _labels(part["props"])}
    own = {
        language: {english: text for english, text in words.read(path).items() if text and english in shown}
        for language, path in words.files().items()
    }
    return gr.I18n(en={english: english for english in sorted(shown)}, **own)


def _labels(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _labels(part)
    elif isinstance(value, (str, I18nData)):
        yield from (json.loads(found)["key"] for found in LABEL.findall(str(value)))


def head() -> str:
    """For the page's other words: each visitor asks for the file of their own language alone, and does so from the
    page's own head, before any module is there (viz/ui/gradio6/preloads.py)."""
    return assets.early({language: url(path) for language, path in words.files().items()})
