"""One map as CSV, JSON or NPZ. Files of whole traces are written by model/trace/storage.py.

Spreadsheets run cells that begin with = + - or @ as formulas. As OWASP advises against CSV injection, to_csv() puts an
apostrophe before such labels, and from_csv() removes it.
"""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np

from attention_atlas.model.trace.scores import ScoreMap
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.maps.reduce import View

FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")  # the start of a formula, after any apostrophes


def to_csv(score_map: ScoreMap) -> str:
    """Write a map as CSV (RFC 4180): key tokens in the first line, query tokens in the first column.

    Every number reads back as the same float32; blank rows have empty cells.
    """
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerow(["query \\ key", *map(escape_formula, score_map.columns)])
    for label, row in zip(score_map.rows, score_map.values):
        cells = ("" if np.isnan(value) else np.format_float_positional(value, unique=True, trim="0") for value in row)
        label = escape_formula(label).replace('"', '""')
        file.write(f'"{label}",{",".join(cells)}\r\n')
    return file.getvalue()


def from_csv(text: str) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Read the result of to_csv(): row labels, column labels and values, float32 [row, column], NaN for empty cells."""
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    values = np.array([[float(cell) if cell else np.nan for cell in line[1:]] for line in lines], np.float32)
    rows, columns = (tuple(map(_unescape_formula, labels)) for labels in ([line[0] for line in lines], head[1:]))
    return rows, columns, values.reshape(len(lines), len(head) - 1)


def escape_formula(label: str) -> str:
    """Return the label as a cell that no spreadsheet runs as a formula."""
    return f"'{label}" if FORMULA.match(label) else label


def _unescape_formula(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def to_json(trace: TranslationTrace, view: View) -> bytes:
    """Write the map of a view: kind, layer, head, weights [query][key], query_tokens (those read), key_tokens."""
    fields = _fields(trace, view)
    return json.dumps({**fields, "weights": fields["weights"].tolist()}, ensure_ascii=False).encode()


def from_json(data: bytes) -> np.ndarray:
    """Read the weights of a result of to_json(), float32 [query, key]."""
    return np.array(json.loads(data)["weights"], np.float32)


def to_npz(trace: TranslationTrace, view: View) -> bytes:
    """Write the fields of to_json() as arrays, without pickle."""
    file = io.BytesIO()
    np.savez_compressed(file, **_fields(trace, view))
    return file.getvalue()


def from_npz(data: bytes) -> np.ndarray:
    """Read the weights of a result of to_npz(), float32 [query, key]."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return stored["weights"]


def _fields(trace: TranslationTrace, view: View) -> dict:
    maps = trace.maps(view.kind)
    return {
        "kind": view.kind.value,
        "layer": view.layer,
        "head": view.head,
        "weights": maps.weights[view.layer, view.head],
        "query_tokens": maps.query_tokens,
        "key_tokens": maps.key_tokens,
    }
