"""Blocks: the JSON-ready parts of a panel, which viz/web/lab/blocks.js draws.

A panel is a list of blocks (text, formula, facts, cards, row, stack, folded, slot, table, figure, flow, maps, bars,
marked, links; other modules of this folder add some). A table's cell is a string or the result of one of the cell
functions below. Text is never read as markup. The functions at the end write numbers for people.
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

THOUSANDS = "\u202f"  # separates thousands: a narrow no-break space, as in viz/web/core/language.js


# The parts of a panel below its lead, in their order: what is chosen there, the pictures, the numbers, the method.
CHOICES = ("take", "pick", "words")
PICTURES = (
    *("figure", "network", "frames", "maps", "bars", "marked", "cards"),
    *("matrix", "heads", "grid", "survey", "links"),
)
METHOD = ("text", "formula", "folded")


def arrange(content: Iterable[dict]) -> list[dict]:
    """Put the blocks of a panel in order: choices, pictures, numbers, method. Rows, stacks and slots stay together."""
    return sorted(content, key=_rank)


def _rank(block: dict) -> int:
    name = block["type"]
    if name in ("row", "stack"):
        return min(map(_rank, block["blocks"]), default=2)
    if name == "slot":  # whose answer has numbers
        return min([2, *map(_rank, block["blocks"])])
    return 0 if name in CHOICES else 1 if name in PICTURES else 3 if name in METHOD else 2


def text(words: str, *, tone: str = "plain") -> dict:
    """A paragraph. tone: "plain", "note" (muted), "good" or "bad" (coloured)."""
    return {"type": "text", "text": words, "tone": tone}


def paragraph(english: str, /, **values: object) -> dict:
    """A paragraph with a translatable message and its values, as in say()."""
    return text(Words(english, values))


def note(english: str, /, **values: object) -> dict:
    """A muted paragraph with a translatable message."""
    return text(Words(english, values), tone="note")


def links(source: Sequence[str], target: Sequence[str], scores: np.ndarray, linked: Sequence[tuple[int, int]]) -> dict:
    """Word links. scores: [target word, source word], shares of 1; linked: (source word, target word) pairs."""
    return {
        "type": "links",
        "words": {"source": list(map(token, source)), "target": list(map(token, target))},
        "scores": np.round(scores, 3).tolist(),
        "links": [list(map(int, link)) for link in linked],
    }


def formula(symbols: str, source: str = "") -> dict:
    """A formula in plain Unicode, and its source in the literature."""
    return {"type": "formula", "text": symbols, "source": source}


def facts(*items: tuple[str, str, str]) -> dict:
    """Large numbers, each with its (name, number, remark), as from fact()."""
    return {"type": "facts", "items": [list(item) for item in items]}


def fact(name: str, value: str | float, remark: str, /, **values: object) -> tuple[Words, str, Words]:
    """An item of facts() with a translatable name and remark. A number becomes compact(); values: of the remark."""
    return Words(name, {}), value if isinstance(value, (str, Words)) else compact(value), Words(remark, values)


def cards(*items: tuple[str, str, str]) -> dict:
    """Short texts side by side: (title, text, note)."""
    return {"type": "cards", "items": [list(item) for item in items]}


def row(*blocks: dict) -> dict:
    """Blocks side by side if the page is wide enough."""
    return {"type": "row", "blocks": list(blocks)}


def stack(*blocks: dict) -> dict:
    """Blocks below each other, as one part of a row."""
    return {"type": "stack", "blocks": list(blocks)}


def folded(title: str, *blocks: dict) -> dict:
    """Blocks that are hidden until the title is clicked."""
    return {"type": "folded", "title": title, "blocks": list(blocks)}


def action(words: str, to: dict) -> dict:
    """A button. to: its target, of to_head(), to_panel(), to_link() or to_act()."""
    return {"type": "action", "text": words, "to": to}


def translate(words: str, **data: object) -> dict:
    """A button that shows in every tab what the panel translates (Panel.translate) when it is told this data."""
    return {"type": "action", "text": words, "event": "translate", "data": data}


def slot(name: str, *blocks: dict) -> dict:
    """A place for the answer to an act of the panel (viz.panels.panel), with these blocks until it comes."""
    return {"type": "slot", "slot": name, "blocks": list(blocks)}


def work(key: str, begin: Words, about: str, /, **values: object) -> dict:
    """A button that starts a long computation (Work).

    key: its key, which the page then sends to the panel as "begun"; begin: the button's text; about, values: the text
    above it, as in paragraph().
    """
    return {"type": "take", "work": key, "begin": begin, "about": Words(about, values)}


def pick(title: Words, options: Sequence[Words], act: str, answer: Iterable[dict]) -> list[dict]:
    """A menu, unless there is but one option, and the slot below it with the answer for the first.

    The number of the selected option goes to the act as "option"; its answer replaces the slot of the same name.
    """
    menu = {"type": "pick", "title": title, "options": list(options), "act": act, "slot": act}
    return [*([menu] if len(options) > 1 else []), slot(act, *answer)]


def headings(*english: str) -> tuple[Words, ...]:
    """Translatable column headings."""
    return tuple(Words(heading, {}) for heading in english)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence],
    *,
    caption: str = "",
    marked: Sequence[int] = (),
    foot: Sequence | None = None,
) -> dict:
    """A table. The first cell of a row is its heading. marked: highlighted rows; foot: a row of sums."""
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


def columns(*pairs: tuple[str, Iterable], **options: object) -> dict:
    """A table() given by its columns: (heading, cells) pairs of equal length. options: as for table()."""
    names, cells = zip(*pairs)
    return table(names, zip(*cells, strict=True), **options)


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
    """A Plotly figure.

    height, width  in pixels; width 0: as wide as the page
    label          a description for screen readers
    rows           texts instead of the vertical axis' labels
    clicks         point id -> the target of a click, of to_head(), to_panel() or to_act(); an act is requested when the
                   pointer rests on the point
    upright        the height of the figure when it is drawn from top to bottom on a narrow page; 0: it is not
    """
    drawn = json.loads(to_json_plotly(for_page(picture.to_dict())))  # its texts may be Words
    about = {"height": height, "width": width, "label": label, "upright": upright}
    return {"type": "figure", "figure": drawn, "rows": list(rows), "clicks": dict(clicks), **about}


def to_head(kind: str, layer: int, head: int, **cell: int) -> dict:
    """A target: a head's map in the explorer. cell: the query and the key that are pinned, if any."""
    return {"look": {"kind": kind, "layer": layer, "head": head, **cell}}


def to_panel(tab: str, panel: str, **controls: object) -> dict:
    """A target: a panel, with these values of its controls."""
    return {"open": {"tab": tab, "panel": panel, **controls}}


def to_link(**fields: str) -> dict:
    """A target: what a link with these fields shows."""
    return {"link": fields}


def to_act(act: str, slot: str, **data: object) -> dict:
    """A target: an act of the panel, whose answer replaces a slot."""
    return {"act": act, "slot": slot, "data": data}


def to_question(step: int, token: int) -> dict:
    """A target: the tab "Why", asking why this step's token was written rather than the token with this id."""
    return {"ask": {"step": step, "token": token}}


def inside(overview: Mapping) -> dict:
    """The picture of the whole model, which opens stage by stage (viz/panels/picture.py)."""
    return {"type": "inside", **overview}


def network(source: int, maps: Sequence[Mapping], opens: Mapping[str, dict]) -> dict:
    """Maps of a recurrent network with the shapes between its parts (viz/web/lab/network.js).

    source  the number of source tokens
    maps    the widths of each network, the fields of model.analysis.gates.Widths
    opens   part -> the target of a click
    """
    return {"type": "network", "source": source, "maps": list(maps), "opens": dict(opens)}


def bars(*charts: dict, legend: Sequence[str] = ()) -> dict:
    """Bar charts side by side, each a chart(). legend: the names of a row's bars if there are several."""
    return {"type": "bars", "charts": list(charts), "legend": list(legend)}


def chart(title: str, rows: Iterable[tuple[str, Sequence[float]]], *, note: str = "", marked: bool = False) -> dict:
    """A chart with one or several bars from 0 to 1 for each row (label, shares). marked: highlighted."""
    bars_of_rows = [
        [label, list(map(_short, shares)), [bar(share)["text"] for share in shares]] for label, shares in rows
    ]
    return {"title": title, "note": note, "rows": bars_of_rows, "marked": marked}


def frames(blocks: Sequence[Sequence[dict]], name: str) -> dict:
    """An animation: the blocks of each frame, none of which is a figure. name: what a frame is, such as a record."""
    return {"type": "frames", "frames": [list(frame) for frame in blocks], "name": name}


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
    """A small matrix [row, column], which shows the number under the pointer or the arrow keys; NaN cells are empty.

    rows, columns  token labels; empty: numbered from 0
    limit          the value at full colour; None: the largest
    said           texts instead of the numbers 0, 1 ..
    frame          a highlighted part: (first row, first column, number of rows, number of columns)
    """
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
    """Sentences with highlighted words: (title, (word, strength from 0 to 4) pairs, note)."""
    return {
        "type": "marked",
        "texts": [{"title": title, "words": list(map(list, words)), "note": note} for title, words, note in texts],
    }


def number(value: float, digits: int = 3) -> dict:
    """A cell: a right-aligned number with `digits` significant digits."""
    return {"cell": "number", "text": compact(value, digits)}


def symbols(formula: str) -> dict:
    """A cell: a formula in plain Unicode."""
    return {"cell": "symbols", "text": formula}


def strip(values: np.ndarray, *, limit: float | None = None, name: str = "") -> dict:
    """A cell: numbers as a coloured strip. limit: the value at full colour; None: the largest."""
    values = np.asarray(values, np.float64)
    limit = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) if limit is None else float(limit)
    return {"cell": "strip", "values": list(map(_short, values)), "limit": limit or 1.0, "signed": True, "name": name}


def strips(rows: np.ndarray, names: Iterable[str] = (), *, limit: float | None = None) -> list[dict]:
    """A column of strips on one scale. rows: [row, number]; names: one per row, or none."""
    limit = float(np.abs(rows).max()) if limit is None else limit
    return [strip(values, limit=limit, name=name) for values, name in zip(rows, names or [""] * len(rows))]


def bar(share: float, words: str = "") -> dict:
    """A cell: a bar from 0 to 1 with its number."""
    least = "<0.001" if 0 < share < 0.0005 else f"{share:.3f}"
    return {"cell": "bar", "share": _short(share), "text": words or least}


def shade(share: float, words: str, *, framed: bool = False) -> dict:
    """A cell: text on a background whose strength is share, 0 to 1. framed: highlighted."""
    return {"cell": "shade", "share": _short(share), "text": words, "framed": framed}


def verdict(passed: bool | None, words: str = "") -> dict:
    """A cell: yes or no (None: waiting), with an explanation in small letters."""
    return {"cell": "verdict", "passed": passed, "text": words}


def dot(passed: bool, words: str) -> dict:
    """A cell: yes or no as a full or an empty circle, with an explanation as a tooltip."""
    return {"cell": "dot", "passed": passed, "text": words}


def token(words: str) -> dict:
    """A cell: a token, in its own typeface."""
    return {"cell": "token", "text": words}


def button(words: str, to: dict) -> dict:
    """A cell: a button. to: its target, of to_head(), to_panel(), to_link() or to_act()."""
    return {"cell": "button", "text": words, "to": to}


def compact(value: float, digits: int = 3) -> str:
    """Format a number for a table, such as "1 234", "0.100" or "1.2·10⁻⁵", with minus signs for hyphens.

    Thousands are separated by a narrow space, which no language reads as a decimal point (ISO 80000-1).
    """
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
        first = math.floor(math.log10(float(f"{size:.{digits - 1}e}")))  # 0.09999 rounds to 0.100
        return _grouped(f"{value:,.{max(0, digits - 1 - first)}f}")
    mantissa, exponent = f"{value:.1e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{power}".replace("-", "−")


def with_minus_sign(text: str) -> str:
    """Replace hyphens in a formatted number by minus signs, or remove them if the number is 0."""
    return text.replace("-", "−" if text.strip("-0.%") else "")


def two_decimals(value: float) -> str:
    """Format a number with two decimals."""
    return with_minus_sign(f"{value:.2f}")


def with_interval(value: float, low: float, high: float) -> str:
    """Format a number and its interval: "0.81 [0.78, 0.84]"."""
    return f"{two_decimals(value)} [{two_decimals(low)}, {two_decimals(high)}]"


def format_effect(value: float) -> str:
    """Format an effect in nats with its sign: "+1.3", "−0.21"; "0" below 0.005."""
    if abs(value) < 0.005:
        return "0"
    return with_minus_sign(f"{value:+.{1 if abs(value) >= 0.995 else 2}f}")


def format_nats(value: float) -> str:
    """Format a number of nats with one decimal, or two below 1."""
    return with_minus_sign(f"{value:.{1 if abs(value) >= 1 else 2}f}")


def format_percent(log_p: float) -> str:
    """Format a log-probability as a percentage."""
    p = float(np.exp(log_p))
    return f"{p:.0%}" if p >= 0.1 else f"{p:.1%}" if p >= 0.001 else "<0.1%"


def _grouped(written: str) -> str:
    return written.replace(",", THOUSANDS).replace("-", "−")


def _short(value: float) -> float | None:
    """Round to four significant digits; None for NaN and infinity."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
