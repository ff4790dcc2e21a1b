"""The explorer outside the app: as a single HTML file, or as a document that shares its scripts with others."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz import assets, theme, words
from attention_atlas.viz.wire.payload import payload
from attention_atlas.viz.wire.readback import payload_maps
from attention_atlas.viz.words import for_page, say

# Before anything can be drawn, and so beside the words of all else.
WAITING = say("This explorer's scripts are in the first explorer of this notebook. Run that cell, or this one again.")


_DATA = re.compile(r'<script type="application/json" class="payload">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Bundle:
    """The scripts, styles and words of an explorer outside the app.

    text      JSON of style, plotly, modules (name -> text) and languages, which viz/web/explorer/alone.js reads
    words     of every language, by the English ones
    """

    text: str
    words: Mapping[str, Mapping[str, str]]

    @cached_property
    def name(self) -> str:
        """Several explorers in one notebook find it under this name: of the same scripts the same."""
        return f"attention-atlas-{hashlib.sha256(self.text.encode()).hexdigest()[:16]}"

    @cached_property
    def packed(self) -> str:
        """base64(gzip(text)): 2 MB in place of 6."""
        return base64.b64encode(gzip.compress(self.text.encode(), compresslevel=6, mtime=0)).decode("ascii")


@lru_cache(maxsize=1)
def bundle_of(digest: str) -> Bundle:
    """Return the bundle of the installed files, read and packed once: that takes a second. digest: of assets.digest().
    It speaks every language of the page: nobody knows who will open it, and beside Plotly.js the words are small."""
    modules = assets.modules(assets.module("explorer"))
    languages = {language: words.read(path) for language, path in words.files().items()}
    own = (assets.PICTURE_STYLE, *assets.styles("explorer"))
    return Bundle(
        json.dumps(
            {
                "style": theme.css_variables() + "".join(path.read_text(encoding="utf-8") for path in own),
                "plotly": assets.PLOTLY.read_text(encoding="utf-8"),
                "modules": {assets.name(path): assets.with_names(path) for path in modules},
                "languages": languages,
            },
            ensure_ascii=False,
        ),
        languages,
    )


def to_html(trace: TranslationTrace, opens: object = None) -> str:
    """The explorer with this translation as one HTML file: it opens from disk, asks no network for anything, lets one
    browse every head, and carries the exact float32 weights. opens: a selection (viz.panels.scene.Selection), or the
    fields of a link as text, which say all that was chosen: colours, whole words, the view."""
    found = {"link": opens} if isinstance(opens, str) else {}
    packed = payload(trace, None if found else opens, exact=True) | found
    return document([trace], [for_page(packed)], heading=True)


def document(
    traces: Sequence[TranslationTrace], payloads: Sequence[dict], *, heading: bool = False, alone: bool = True
) -> str:
    """A page with the explorer over these payloads (viz/wire/payload.py, ready for the page) of these traces, the last
    one shown. heading: with the sentences above it. alone: with all that it needs; else another frame beside has it."""
    bundle = bundle_of(assets.digest())
    waiting = {language: texts.get(WAITING.english) or WAITING.english for language, texts in bundle.words.items()}
    lines = [f"{trace.source_text} → {trace.translation}" for trace in traces]
    said = html.escape(json.dumps(waiting, ensure_ascii=False))
    title, frame = html.escape(" | ".join(lines)), assets.ALONE.with_suffix(".css").read_text(encoding="utf-8")
    return "\n".join(
        (
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{theme.css_variables()}{frame}</style>",
            assets.early(dict.fromkeys(words.files())),
            "</head>",
            "<body><main>",
            *(_heading(trace, line) for trace, line in zip(traces, lines) if heading),
            f'<div class="atlas-root atlas-explorer" id="explorer" data-bundle="{bundle.name}">',
            f'<p class="waiting" hidden data-words="{said}">{html.escape(WAITING.english)}</p>',
            "</div></main>",
            *(f'<script type="application/json" class="payload">{_json(value)}</script>' for value in payloads),
            *([f'<script type="text/plain" id="bundle">{bundle.packed}</script>'] if alone else []),
            f"<script>{assets.ALONE.read_text(encoding='utf-8')}</script>",
            "</body></html>",
        )
    )


def _heading(trace: TranslationTrace, line: str) -> str:
    return (
        f'<h1 dir="auto">{html.escape(line)}</h1>'
        f"<p>{html.escape(f'{trace.direction}, checkpoint {trace.checkpoint} ({trace.digest})')}</p>"
    )


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
