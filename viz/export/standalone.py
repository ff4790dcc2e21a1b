"""The explorer with one translation as a single HTML file."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np

from model.trace.kinds import AttentionKind
from model.trace.translation import TranslationTrace
from viz import assets, theme, words
from viz.wire.payload import payload
from viz.wire.readback import payload_maps
from viz.words import for_page


def to_html(trace: TranslationTrace, selection: object = None) -> str:
    """The explorer with this translation as one HTML file: it opens from disk, asks no network for anything, lets one
    browse every head, and carries the exact float32 weights. It speaks every language of the page: who will open it
    nobody knows, there is no server to ask, and beside Plotly.js the words are little."""
    value = for_page(payload(trace, selection, exact=True))
    languages = {language: words.read(path) for language, path in words.files().items()}
    text = f"{trace.source_text} → {trace.translation}"
    return "\n".join((
        "<!doctype html>", f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(text)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{theme.css_variables()}{assets.style('explorer').read_text(encoding='utf-8')}{_PAGE_CSS}</style></head>",
        f'<body><main><h1 dir="auto">{html.escape(text)}</h1>',
        f"<p>{html.escape(f'{trace.direction}, checkpoint {trace.checkpoint} ({trace.digest})')}</p>",
        '<div class="atlas-root atlas-explorer" id="explorer"></div></main>',
        f'<script type="application/json" id="payload">{_json(value)}</script>',
        f'<script type="application/json" id="languages">{_json(languages)}</script>',
        *(f"<script>{_script(path)}</script>"
          for path in (assets.PLOTLY, assets.LANGUAGE, *assets.scripts('explorer'))),
        f"<script>{_START}</script></body></html>"))


def _json(value: object) -> str:
    # "<" could end the script element that holds the data; in JSON it may be written as its code.
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def from_html(text: str) -> dict[AttentionKind, np.ndarray]:
    """The weights [layers, heads, query, key] by kind that to_html()'s page shows. ValueError if it is no such page."""
    data = _DATA.search(text)
    if data is None:
        raise ValueError("not an explorer with a translation in it")
    packed = json.loads(data[1])
    return payload_maps(packed["blocks"], packed["kinds"])


def _script(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    assert "</script" not in text.lower(), f"{path.name} would end its own script element"
    return text


_DATA = re.compile(r'<script type="application/json" id="payload">(.*?)</script>', re.DOTALL)
_PAGE_CSS = """
body { margin: 0; background: var(--atlas-paper); color: var(--atlas-ink); font-family: var(--atlas-font); }
main { max-width: 1360px; margin: 0 auto; padding: 16px; }
main > h1 { font-size: 20px; margin: 0; overflow-wrap: anywhere; }
main > p { color: var(--atlas-muted); font-size: 13px; margin: 2px 0 16px; }
"""
_START = """
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.body.classList.toggle("dark", dark.matches);
follow();
dark.addEventListener("change", follow);
const [json, languages] = ["payload", "languages"].map((id) => document.getElementById(id).textContent);
AttentionAtlas.speak(JSON.parse(languages));
AttentionAtlas.components.explorer(document.getElementById("explorer"),
  { value: () => ({ id: null, at: 0, json }), onValue: () => {}, trigger: () => {}, server: null });
"""
