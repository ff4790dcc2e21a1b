"""The explorer outside the app: a single HTML file, or the document of an iframe."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz import assets, theme, words
from attention_atlas.viz.wire.payload import payload
from attention_atlas.viz.wire.readback import payload_maps

_DATA = re.compile(r'<script type="application/json" class="payload">(.*?)</script>', re.DOTALL)


@lru_cache(maxsize=1)
def bundle_of(digest: str) -> str:
    """Return the installed scripts and styles with all languages of the page: base64 of gzip of JSON of style, modules
    (name -> text) and languages, which viz/web/explorer/alone.js reads.

    digest: assets.digest(), the key of the cache.
    """
    modules = assets.modules(assets.module("explorer"))
    styles = (assets.PICTURE_STYLE, *assets.styles("explorer"))
    text = json.dumps(
        {
            "style": theme.css_variables() + "".join(path.read_text(encoding="utf-8") for path in styles),
            "modules": {assets.name(path): assets.with_names(path) for path in modules},
            "languages": {language: words.read(path) for language, path in words.files().items()},
        },
        ensure_ascii=False,
    )
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode("ascii")


def to_html(trace: TranslationTrace, opens: object = None) -> str:
    """Return the explorer of a translation as one HTML file that works offline and contains the exact float32 weights.

    opens: what it opens with: a viz.panels.scene.Selection, or the text of a link, which includes colours and the view.
    """
    link = {"link": opens} if isinstance(opens, str) else {}
    data = payload(trace, None if link else opens, exact=True) | link
    return document([trace], [words.for_page(data)], heading=True)


def document(traces: Sequence[TranslationTrace], payloads: Sequence[dict], *, heading: bool = False) -> str:
    """Return an HTML page with the explorer of these traces, which shows the last.

    payloads  of the traces (viz/wire/payload.py), converted by for_page()
    heading   show the sentences above the explorer
    """
    lines = [f"{trace.source_text} → {trace.translation}" for trace in traces]
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
            '<div class="atlas-root atlas-explorer" id="explorer"></div></main>',
            *(f'<script type="application/json" class="payload">{_script_json(value)}</script>' for value in payloads),
            f'<script type="text/plain" id="bundle">{bundle_of(assets.digest())}</script>',
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
