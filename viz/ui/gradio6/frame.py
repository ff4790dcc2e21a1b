"""The page's frame, which stands there until Gradio has built the page: its name, what it asks for, its tabs.

Gradio builds a page from a megabyte of scripts, and shows nothing of it before all of them have run. The frame is part
of the HTML itself, made from what the page is made of, and the browser paints it as soon as it has read that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape, unescape

import gradio as gr

from viz import assets, theme, words

NEEDED = ("atlas-title", "source-text", "direction", "translate", "languages", "examples", "translation")
TOLD = "Stronger colour, more probable. Choose a word to follow it in every view."  # below the translation
LABEL = "__i18n__"  # begins a label that Gradio translates: {"key": English}
SAID = re.compile(r"<[^>]* data-say>([^<]*)<")
SHELL = assets.WEB / "shell" / "shell.js"
SLATE = gr.themes.colors.slate
FIELDS = {  # what Gradio's theme gives fields and their labels, on light and on dark pages
    "field": (SLATE.c100, SLATE.c700),
    "text": (SLATE.c800, SLATE.c100),
    "label": (SLATE.c500, SLATE.c200),
}


def shell(config: Mapping) -> str:
    """HTML for the beginning of the body. config: of the page's Blocks. "" of a page that lacks a part of it."""
    found = {part["props"].get("elem_id"): part["props"] for part in config["components"]}
    tabs = [props["label"] for name, props in found.items() if str(name).startswith("tab-")]
    if not tabs or not set(NEEDED) <= set(found):
        return ""
    drawn = "".join(_parts(found, tabs))
    said = {unescape(text) for text in SAID.findall(drawn)}
    own = {
        language: {english: text for english, text in words.read(path).items() if text and english in said}
        for language, path in words.files().items()
    }
    light, dark = ("; ".join(f"--shell-{name}: {pair[i]}" for name, pair in FIELDS.items()) for i in (0, 1))
    colours = f"{theme.css_variables()}.atlas-shell {{ {light} }} .atlas-shell.dark {{ {dark} }}"
    said = escape(json.dumps(own, ensure_ascii=False))
    return (
        f"<style>{colours}{SHELL.with_suffix('.css').read_text(encoding='utf-8')}</style>"
        f'<div class="atlas-shell" aria-hidden="true"><div>{drawn}</div></div>'
        f'<script data-words="{said}">{SHELL.read_text(encoding="utf-8")}</script>'
    )


def _parts(found: Mapping[str, Mapping], tabs: list[str]) -> Iterator[str]:
    title, sentence, menu = json.loads(found["atlas-title"]["value"]), found["source-text"], found["direction"]
    yield f'<div class="name">{_said("h1", title["heading"])}{_said("p", title["text"])}</div>'
    chosen = next(text for text, value in menu["choices"] if value == menu["value"])
    offer, shown = (json.loads(found[name]["value"]) for name in ("examples", "translation"))
    yield (
        '<div class="asked">'
        + "".join(
            (
                _plain("b", sentence["value"] or "", "sentence"),
                _said("u", {"say": "Examples"}) if offer["sentences"] else "",
                _said("b", chosen, "direction"),
                _said("i", found["translate"]["value"]),
            )
        )
        + "</div>"
    )
    # Below stands only what has a known height: menus of languages have none, nor has what a large model costs, nor a
    # page without an example.
    if not found["languages"]["visible"] and not offer["cost"] and shown.get("text") is not None:
        source = "".join(word["gap"] + word["text"] for word in shown["read"])
        yield (
            f'<div class="written"><p>{_plain("span", source)} → {_plain("b", shown["text"])}</p>'
            f"{_said('p', {'say': TOLD})}</div>"
        )
        yield f'<div class="tabs">{"".join(_said("span", tab) for tab in tabs)}</div>'
        yield '<div class="drawn"><i></i><i></i></div>'


def _said(tag: str, value: object, kind: str = "") -> str:
    """An element with a text as a component's properties hold it, marked if the languages have words for it."""
    english = value["say"] if isinstance(value, dict) else _english(str(value))
    name = f' class="{kind}"' if kind else ""
    return _plain(tag, str(value), kind) if english is None else f"<{tag}{name} data-say>{escape(english)}</{tag}>"


def _english(text: str) -> str | None:
    """Of a label that Gradio translates; None: it is none, whatever it begins with (a model's folder has any name)."""
    try:
        label = json.loads(text.removeprefix(LABEL)) if text.startswith(LABEL) else None
    except ValueError:
        return None
    return label["key"] if isinstance(label, dict) and isinstance(label.get("key"), str) else None


def _plain(tag: str, text: str, kind: str = "") -> str:
    """An element with what somebody wrote."""
    name = f' class="{kind}"' if kind else ""
    return f'<{tag}{name} dir="auto">{escape(text)}</{tag}>'
