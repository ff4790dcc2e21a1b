"""The answer of the tab "Why" as a file: the tokens' matrix, and the parts of the decoder."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass

import numpy as np

from model.trace.why.parts import Parts
from model.trace.why.rows import Why
from viz.wire.why import parts_dict, why_dict

HEAD = ("method", "evidence", "unit")


@dataclass(frozen=True, eq=False)
class Explained:
    """Both are about one question."""

    why: Why
    parts: Parts

    @property
    def values(self) -> np.ndarray:
        """float64 [method, column], NaN where a method says nothing."""
        return np.stack([row.values for row in self.why.rows])


def to_csv(found: Explained) -> bytes:
    """The matrix (RFC 4180): a line a method, with its evidence and unit, a column a word. Every number reads back as
    the same float64; where a method says nothing, the cell is empty."""
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow([*HEAD, *found.why.columns.labels])
    for row in found.why.rows:
        values = ("" if np.isnan(value) else repr(float(value)) for value in row.values)
        writer.writerow([row.method, row.evidence.value, row.unit.value, *values])
    return written.getvalue().encode()


def from_csv(data: bytes) -> np.ndarray:
    """The values of to_csv()'s bytes."""
    _, *lines = csv.reader(io.StringIO(data.decode(), newline=""))
    return np.array([[float(cell) if cell else np.nan for cell in line[len(HEAD):]] for line in lines], np.float64)


def to_json(found: Explained) -> bytes:
    """The fields of the API's /why: the question, the matrix with its sums and notes, the parts."""
    return json.dumps({**why_dict(found.why), "parts": parts_dict(found.parts)}, ensure_ascii=False).encode()


def from_json(data: bytes) -> np.ndarray:
    """The values of to_json()'s bytes."""
    rows = json.loads(data)["rows"]
    return np.array([[np.nan if value is None else value for value in row["values"]] for row in rows], np.float64)


def to_npz(found: Explained) -> bytes:
    """values [method, column], methods, evidence, units, columns, special; of the parts each head by key and the
    feed-forwards; all else as JSON text under "fields". No pickle."""
    written, why, parts = io.BytesIO(), found.why, found.parts
    arrays = {f"parts.{kind.value}": keys for kind, keys in parts.keys.items()}
    np.savez_compressed(
        written, values=found.values, methods=np.array([str(row.method) for row in why.rows]),
        evidence=np.array([row.evidence.value for row in why.rows]),
        units=np.array([row.unit.value for row in why.rows]),
        columns=np.array(why.columns.labels), special=why.columns.special, **arrays,
        **{"parts.feed_forward": parts.feed_forward}, fields=np.array(to_json(found).decode()))
    return written.getvalue()


def from_npz(data: bytes) -> np.ndarray:
    """The values of to_npz()'s bytes."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return stored["values"]
