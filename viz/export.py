"""What people take away: a map as CSV, the explorer with one translation as a single HTML file.

The whole trace as JSON or NPZ is model/trace_file.py's.
"""

from __future__ import annotations

import csv
import html
import io
import json
from pathlib import Path

import numpy as np
import plotly

from model.trace import TranslationTrace
from viz import theme
from viz.payload import payload
from viz.reduce import ScoreMap
from viz.words import for_page

WEB = Path(__file__).resolve().parent / "web"
PLOTLY = Path(plotly.__file__).resolve().parent / "package_data" / "plotly.min.js"
# The explorer's parts in the order in which they need each other; viz/ui/explorer.py loads the same.
EXPLORER_SCRIPTS = tuple(f"explorer-{name}.js" for name in (
    "trace", "model", "state", "words", "controls", "atlas", "frame", "detail", "lines", "text", "compare", "views",
    "picture", "actions", "help", "keys"))


def to_csv(score_map: ScoreMap) -> str:
    """A map as comma-separated values (RFC 4180): key tokens in the first line, query tokens in the first column.
    Every number reads back as the same float32; a blank row has empty cells."""
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["query \\ key", *score_map.columns])
    for label, row in zip(score_map.rows, score_map.values):
        cells = ("" if np.isnan(value) else np.format_float_positional(value, unique=True, trim="0") for value in row)
        written.write(f'{_quoted(label)},{",".join(cells)}\r\n')
    return written.getvalue()


def from_csv(text: str) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Row labels, column labels and float32 values [row, column] of to_csv()'s text; empty cells are NaN."""
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    values = np.array([[float(cell) if cell else np.nan for cell in line[1:]] for line in lines], np.float32)
    return tuple(line[0] for line in lines), tuple(head[1:]), values.reshape(len(lines), len(head) - 1)


def to_html(trace: TranslationTrace, selection: object = None) -> str:
    """The explorer with this translation as one HTML file: it opens from disk, asks no network for anything, lets one
    browse every head, and carries the exact float32 weights."""
    ours = ("shared.js", "words.js", *EXPLORER_SCRIPTS, "explorer.js")
    # "<" could end the script element that holds the data; in JSON it may be written as its code.
    value = for_page(payload(trace, selection, exact=True))
    data = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
    text = f"{trace.source_text} → {trace.translation}"
    return "\n".join((
        "<!doctype html>", f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(text)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{theme.css_variables()}{(WEB / 'explorer.css').read_text(encoding='utf-8')}{_PAGE_CSS}</style></head>",
        f'<body><main><h1 dir="auto">{html.escape(text)}</h1>',
        f"<p>{html.escape(f'{trace.direction}, checkpoint {trace.checkpoint} ({trace.digest})')}</p>",
        '<div class="atlas-root atlas-explorer" id="explorer"></div></main>',
        f'<script type="application/json" id="payload">{data}</script>',
        *(f"<script>{_script(path)}</script>" for path in (PLOTLY, *(WEB / name for name in ours))),
        f"<script>{_START}</script></body></html>"))


def _script(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    assert "</script" not in text.lower(), f"{path.name} would end its own script element"
    return text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


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
const value = JSON.parse(document.getElementById("payload").textContent);
AttentionAtlas.components.explorer(document.getElementById("explorer"),
  { value: () => value, onValue: () => {}, trigger: () => {}, server: null, standalone: true });
"""
