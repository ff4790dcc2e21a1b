"""One map as comma-separated values, as JSON or as a NumPy archive. (The whole trace is model/trace/storage.py's.)

Spreadsheets run a cell that begins with = + - or @ as a formula, and a text that a stranger wrote may hold one. Labels
that do so get an apostrophe in front, as OWASP advises against CSV injection; from_csv() takes it away.
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

FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")  # how a cell begins that may run, with the apostrophes before it


def to_csv(score_map: ScoreMap) -> str:
    """A map as comma-separated values (RFC 4180): key tokens in the first line, query tokens in the first column.
    Every number reads back as the same float32; a blank row has empty cells."""
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow(["query \\ key", *map(inert, score_map.columns)])
    for label, row in zip(score_map.rows, score_map.values):
        cells = ("" if np.isnan(value) else np.format_float_positional(value, unique=True, trim="0") for value in row)
        label = inert(label).replace('"', '""')
        written.write(f'"{label}",{",".join(cells)}\r\n')
    return written.getvalue()


def from_csv(text: str) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Row labels, column labels and float32 values [row, column] of to_csv()'s text; empty cells are NaN."""
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    values = np.array([[float(cell) if cell else np.nan for cell in line[1:]] for line in lines], np.float32)
    rows, columns = (tuple(map(_as_it_was, labels)) for labels in ([line[0] for line in lines], head[1:]))
    return rows, columns, values.reshape(len(lines), len(head) - 1)


def inert(label: str) -> str:
    """The label as a cell that no spreadsheet runs."""
    return f"'{label}" if FORMULA.match(label) else label


def _as_it_was(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def to_json(trace: TranslationTrace, view: View) -> bytes:
    """Weights [query][key], query_tokens (of the decoder those READ), key_tokens, kind, layer, head of a view."""
    maps = trace.maps(view.kind)
    return json.dumps(
        {
            "kind": view.kind.value,
            "layer": view.layer,
            "head": view.head,
            "weights": maps.weights[view.layer, view.head].tolist(),
            "query_tokens": maps.query_tokens,
            "key_tokens": maps.key_tokens,
        },
        ensure_ascii=False,
    ).encode()


def from_json(data: bytes) -> np.ndarray:
    """The weights float32 [query, key] of to_json()'s bytes."""
    return np.array(json.loads(data)["weights"], np.float32)


def to_npz(trace: TranslationTrace, view: View) -> bytes:
    """The fields of to_json() as arrays. No pickle."""
    written, maps = io.BytesIO(), trace.maps(view.kind)
    np.savez_compressed(
        written,
        weights=maps.weights[view.layer, view.head],
        query_tokens=np.array(maps.query_tokens),
        key_tokens=np.array(maps.key_tokens),
        kind=np.array(view.kind.value),
        layer=view.layer,
        head=view.head,
    )
    return written.getvalue()


def from_npz(data: bytes) -> np.ndarray:
    """The weights float32 [query, key] of to_npz()'s bytes."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return stored["weights"]
