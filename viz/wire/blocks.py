"""What a lab panel is made of, as plain JSON-ready values; viz/web/lab/panel.js draws them.

A panel is a list of blocks: text, formula, facts, cards, row, stack, folded, slot, table, figure, flow, maps, bars,
marked, links; other modules here add some. A table's cell is a string, or one of the cell functions below. Text is
text: the page never reads it as markup.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.io.json import to_json_plotly

from attention_atlas.viz.words import Words, for_page

THOUSANDS = "\u202f"  # between them: a narrow space that does not break, as in viz/web/core/language.js


def text(words: str, *, tone: str = "plain") -> dict:
    """A paragraph. tone: "plain", "note" (quieter), "good" or "bad" (a finding, coloured)."""
    return {"type": "text", "text": words, "tone": tone}


def paragraph(english: str, /, **values: object) -> dict:
    """A paragraph of the page's own words, as say() takes them."""
    return text(Words(english, values))


def note(english: str, /, **values: object) -> dict:
    """The same, quieter."""
    return text(Words(english, values), tone="note")


def links(source: Sequence[str], target: Sequence[str], scores: np.ndarray, chosen: Sequence[tuple[int, int]]) -> dict:
    """Word links. scores [target word, source word], shares of 1; chosen: (source word, target word)."""
    return {
        "type": "links",
        "words": {"source": list(map(token, source)), "target": list(map(token, target))},
        "scores": np.round(scores, 3).tolist(),
        "links": [list(map(int, link)) for link in chosen],
    }


def formula(symbols: str, source: str = "") -> dict:
    """A formula in plain Unicode, and where it stands."""
    return {"type": "formula", "text": symbols, "source": source}


def facts(*items: tuple[str, str, str]) -> dict:
    """Numbers set large: (what it is, the number, a word on it)."""
    return {"type": "facts", "items": [list(item) for item in items]}


def cards(*items: tuple[str, str, str]) -> dict:
    """Short texts side by side: (title, text, note)."""
    return {"type": "cards", "items": [list(item) for item in items]}


def row(*blocks: dict) -> dict:
    """Blocks side by side, where the page is wide enough."""
    return {"type": "row", "blocks": list(blocks)}


def stack(*blocks: dict) -> dict:
    """Blocks one below the other, as one part of a row."""
    return {"type": "stack", "blocks": list(blocks)}


def folded(title: str, *blocks: dict) -> dict:
    """Blocks behind a title that opens."""
    return {"type": "folded", "title": title, "blocks": list(blocks)}


def action(words: str, to: dict) -> dict:
    """A button. to: where it leads, to_head(), to_panel() or to_act()."""
    return {"type": "action", "text": words, "to": to}


def translate(words: str, **data: object) -> dict:
    """A button that shows in every tab what the panel translates (Panel.translate) when it is told this data."""
    return {"type": "action", "text": words, "event": "translate", "data": data}


def slot(name: str, *blocks: dict) -> dict:
    """Where the answer to an act of the panel (viz.panels.panel) is put; until then, these blocks."""
    return {"type": "slot", "slot": name, "blocks": list(blocks)}


def headings(*english: str) -> tuple[Words, ...]:
    """Column headings in the page's own words."""
    return tuple(Words(one, {}) for one in english)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence],
    *,
    caption: str = "",
    marked: Sequence[int] = (),
    foot: Sequence | None = None,
) -> dict:
    """A table. The first cell of a row is its heading; marked: rows set apart by colour; foot: a row of sums."""
    rows = [list(row) for row in rows]
    for row in [*rows, *([foot] if foot else [])]:
        assert len(row) == len(columns), f"{len(row)} cells under {len(columns)} headings"
    return {
        "type": "table",
        "columns": list(columns),
        "rows": rows,
        "caption": caption,
        "marked": list(marked),
        "foot": list(foot) if foot else None,
    }


def figure(
    picture: go.Figure,
    *,
    height: int,
    label: str,
    width: int = 0,
    rows: Sequence[str] = (),
    clicks: Mapping[str, dict] = {},
    upright: int = 0,
) -> dict:
    """A Plotly figure of this height in pixels, at most `width` wide (0: as wide as the page); label: what it shows,
    for those who do not see it; rows: words in place of the vertical axis' labels; clicks: where a click on a point
    leads, by its id: to_head(), to_panel() or to_act(), which is asked for when one rests on it; upright: the height of
    what is drawn from top to bottom on a narrow page; 0: it is not."""
    drawn = json.loads(to_json_plotly(for_page(picture.to_dict())))  # its own texts may be words, too
    about = {"height": height, "width": width, "label": label, "upright": upright}
    return {"type": "figure", "figure": drawn, "rows": list(rows), "clicks": dict(clicks), **about}


def to_head(kind: str, layer: int, head: int, cell: tuple[int, int]) -> dict:
    """Where a click leads: to a head's map in the explorer, with a cell (query, key) pinned."""
    return {"look": {"kind": kind, "layer": layer, "head": head, "query": cell[0], "key": cell[1]}}


def to_panel(tab: str, panel: str, **controls: object) -> dict:
    """Where a click leads: to a panel, with its named controls set."""
    return {"open": {"tab": tab, "panel": panel, **controls}}


def to_act(act: str, slot: str, **data: object) -> dict:
    """Where a click leads: to an act of the panel, whose answer takes a slot's place."""
    return {"act": act, "slot": slot, "data": data}


def to_question(step: int, token: int) -> dict:
    """Where a click leads: the tab "Why" asks about the token of this step, rather than the one with this id."""
    return {"ask": {"step": step, "token": token}}


def flow(stacks: Sequence[dict]) -> dict:
    """Figure 1: stacks side by side, of model.analysis.architecture, each {title, words, entry, layers, shown, link,
    sublayers, exit} with boxes {name, shape, axes, link, maps}; a click on a box opens its link."""
    return {"type": "flow", "stacks": list(stacks)}


def bars(*charts: dict, legend: Sequence[str] = ()) -> dict:
    """Charts of bars side by side, each a chart(). legend: what the bars of a row are, where there are several."""
    return {"type": "bars", "charts": list(charts), "legend": list(legend)}


def chart(title: str, rows: Iterable[tuple[str, Sequence[float]]], *, note: str = "", marked: bool = False) -> dict:
    """A bar from 0 to 1, or several, for each row (label, shares). marked: set apart from the other charts."""
    found = [[label, list(map(_short, shares)), [bar(one)["text"] for one in shares]] for label, shares in rows]
    return {"title": title, "note": note, "rows": found, "marked": marked}


def frames(of: Sequence[Sequence[dict]], name: str) -> dict:
    """Blocks one after the other in one place, to be played or moved through: for each frame its blocks, none of them a
    figure. name: what a frame is, such as a record."""
    return {"type": "frames", "frames": [list(blocks) for blocks in of], "name": name}


def maps(*heatmaps: dict) -> dict:
    """Small matrices side by side, each a heatmap()."""
    return {"type": "maps", "maps": list(heatmaps)}


def heatmap(
    values: np.ndarray,
    title: str,
    *,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    note: str = "",
    limit: float | None = None,
    signed: bool = True,
    said: Sequence[str] = (),
    frame: tuple[int, int, int, int] | None = None,
) -> dict:
    """A matrix [row, column] drawn small, every number under the pointer or the arrow keys; where a number is not
    finite there is none. rows, columns: names of tokens (none: counted from 0). limit: the value at full colour (None:
    the largest here); said: words in place of the numbers 0, 1 ..; frame: rows and columns set apart, as first row,
    first column, number of rows, of columns."""
    values = np.asarray(values, np.float32)
    finite = values[np.isfinite(values)]
    limit = float(np.abs(finite).max(initial=0.0)) if limit is None else float(limit)
    return {
        "title": title,
        "shape": list(values.shape),
        "rows": list(rows),
        "columns": list(columns),
        "note": note,
        "data": base64.b64encode(np.where(np.isfinite(values), values, np.nan).astype("<f4").tobytes()).decode(),
        "limit": limit or 1.0,
        "signed": signed,
        "said": list(said),
        "frame": list(frame) if frame else None,
    }


def marked(*texts: tuple[str, Sequence[tuple[str, int]], str]) -> dict:
    """Sentences whose words are marked as strongly as their number, 0 (not at all) to 4: (title, words, note)."""
    found = [{"title": title, "words": list(map(list, words)), "note": note} for title, words, note in texts]
    return {"type": "marked", "texts": found}


def number(value: float, digits: int = 3) -> dict:
    """A number, set right, in as few characters as its size allows."""
    return {"cell": "number", "text": compact(value, digits)}


def symbols(formula: str) -> dict:
    """A formula in plain Unicode, as a cell."""
    return {"cell": "symbols", "text": formula}


def strip(values: np.ndarray, *, limit: float | None = None, name: str = "") -> dict:
    """A row of numbers as coloured cells. limit: the value at full colour (None: the largest here)."""
    values = np.asarray(values, np.float64)
    limit = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) if limit is None else float(limit)
    shown = list(map(_short, values))
    return {"cell": "strip", "values": shown, "limit": limit or 1.0, "signed": True, "name": name}


def bar(share: float, words: str = "") -> dict:
    """A bar from 0 to 1 with its number."""
    least = "<0.001" if 0 < share < 0.0005 else f"{share:.3f}"
    return {"cell": "bar", "share": _short(share), "text": words or least}


def shade(share: float, words: str, *, framed: bool = False) -> dict:
    """A number or words on a background as dark as share, 0 to 1. framed: set apart from the others."""
    return {"cell": "shade", "share": _short(share), "text": words, "framed": framed}


def verdict(passed: bool | None, words: str = "") -> dict:
    """Yes or no (None: waiting), and why in small letters."""
    return {"cell": "verdict", "passed": passed, "text": words}


def dot(passed: bool, words: str) -> dict:
    """Yes or no as a full or an empty circle; words: why, where it is pointed at."""
    return {"cell": "dot", "passed": passed, "text": words}


def token(words: str) -> dict:
    """A token, in its own type."""
    return {"cell": "token", "text": words}


def button(words: str, to: dict) -> dict:
    """A cell to press. to: where that leads, to_head(), to_panel() or to_act()."""
    return {"cell": "button", "text": words, "to": to}


def compact(value: float, digits: int = 3) -> str:
    """A number for a table: 3 significant digits, powers of ten written as people do, minus signs as minus signs,
    thousands apart by a narrow space, which no language reads as a decimal point (ISO 80000-1)."""
    if isinstance(value, (int, np.integer)):
        return _grouped(f"{value:,}")
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e5:
        first = math.floor(math.log10(float(f"{size:.{digits - 1}e}")))  # 0.09999 is written as 0.100
        return _grouped(f"{value:,.{max(0, digits - 1 - first)}f}")
    mantissa, exponent = f"{value:.1e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{power}".replace("-", "−")


def _grouped(written: str) -> str:
    return written.replace(",", THOUSANDS).replace("-", "−")


def _short(value: float) -> float | None:
    """Four significant digits; None where there is no number (a masked cell)."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
