"""The explorer outside the app: a single HTML file, or an iframe's document that uses the scripts of another."""

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

# Shown before the scripts, and with them the other translations, are loaded.
WAITING = say("This explorer's scripts are in the first explorer of this notebook. Run that cell, or this one again.")


_DATA = re.compile(r'<script type="application/json" class="payload">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Bundle:
    """The scripts, styles and words of an explorer outside the app.

    text   JSON of style, modules (name -> text) and languages, which viz/web/explorer/alone.js reads
    words  the translations of every language: code -> English -> text
    """

    text: str
    words: Mapping[str, Mapping[str, str]]

    @cached_property
    def name(self) -> str:
        """The name under which other explorers of a notebook find it; equal for equal scripts."""
        return f"attention-atlas-{hashlib.sha256(self.text.encode()).hexdigest()[:16]}"

    @cached_property
    def packed(self) -> str:
        """base64(gzip(text)): 2 MB instead of 6."""
        return base64.b64encode(gzip.compress(self.text.encode(), compresslevel=6, mtime=0)).decode("ascii")


@lru_cache(maxsize=1)
def bundle_of(digest: str) -> Bundle:
    """Return the bundle of the installed files, with all languages of the page. It takes a second, so it is cached.

    digest: assets.digest(), the key of the cache.
    """
    modules = assets.modules(assets.module("explorer"))
    languages = {language: words.read(path) for language, path in words.files().items()}
    styles = (assets.PICTURE_STYLE, *assets.styles("explorer"))
    return Bundle(
        json.dumps(
            {
                "style": theme.css_variables() + "".join(path.read_text(encoding="utf-8") for path in styles),
                "modules": {assets.name(path): assets.with_names(path) for path in modules},
                "languages": languages,
            },
            ensure_ascii=False,
        ),
        languages,
    )


def to_html(trace: TranslationTrace, opens: object = None) -> str:
    """Return the explorer of a translation as one HTML file that works offline and contains the exact float32 weights.

    opens: what it opens with: a viz.panels.scene.Selection, or the text of a link, which includes colours and the view.
    """
    link = {"link": opens} if isinstance(opens, str) else {}
    data = payload(trace, None if link else opens, exact=True) | link
    return document([trace], [for_page(data)], heading=True)


def document(
    traces: Sequence[TranslationTrace], payloads: Sequence[dict], *, heading: bool = False, alone: bool = True
) -> str:
    """Return an HTML page with the explorer of these traces, which shows the last.

    payloads  of the traces (viz/wire/payload.py), converted by for_page()
    heading   show the sentences above the explorer
    alone     include the scripts; otherwise another frame on the page has them
    """
    bundle = bundle_of(assets.digest())
    waiting = {language: texts.get(WAITING.english) or WAITING.english for language, texts in bundle.words.items()}
    lines = [f"{trace.source_text} → {trace.translation}" for trace in traces]
    waiting_json = html.escape(json.dumps(waiting, ensure_ascii=False))
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
            f'<p class="waiting" hidden data-words="{waiting_json}">{html.escape(WAITING.english)}</p>',
            "</div></main>",
            *(f'<script type="application/json" class="payload">{_script_json(value)}</script>' for value in payloads),
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


def _script_json(value: object) -> str:
    # An unescaped "<" could end the script element.
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def from_html(text: str) -> dict[AttentionKind, np.ndarray]:
    """Read the weights [layers, heads, query, key] by kind of a result of to_html(). ValueError for any other text."""
    match = _DATA.search(text)
    if match is None:
        raise ValueError("not an explorer with a translation in it")
    data = json.loads(match[1])
    return payload_maps(data["blocks"], data["kinds"])
