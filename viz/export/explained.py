"""An answer of the tab "Why" as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from attention_atlas.model.trace.why.attribution import Why
from attention_atlas.model.trace.why.evidence import to_jsonable
from attention_atlas.model.trace.why.parts import Parts
from attention_atlas.viz.export.table import inert

HEAD = ("row", "evidence", "unit")


@dataclass(frozen=True, eq=False)
class Explained:
    """fields   JSON-ready: "columns", and "rows" with what names them, then evidence, unit, and values, null for none
    arrays   what an archive holds besides
    """

    fields: Mapping[str, object]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, why: Why, parts: Parts) -> Explained:
        """The tokens' matrix and the parts of the decoder, both about one question."""
        arrays = {f"parts.{kind.value}": keys for kind, keys in parts.keys.items()}
        return cls(
            {**to_jsonable(why), "parts": to_jsonable(parts)},
            {"special": why.columns.special, **arrays, "parts.feed_forward": parts.feed_forward},
        )

    @property
    def values(self) -> np.ndarray:
        """float64 [row, column], NaN where there is nothing."""
        return _values(self.fields)

    def heads(self) -> list[tuple[str, str, str]]:
        """Of every row its name, evidence and unit."""
        return [
            (" ".join(str(row[name]) for name in takewhile("evidence".__ne__, row)), row["evidence"], row["unit"])
            for row in self.fields["rows"]
        ]


def to_csv(found: Explained) -> bytes:
    """The rows (RFC 4180): a line each, with its evidence and unit. Every number reads back as the same float64; where
    there is none, the cell is empty. No label is run as a formula (viz.export.table)."""
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    writer.writerow([*HEAD, *map(inert, found.fields["columns"])])
    for head, values in zip(found.heads(), found.values, strict=True):
        writer.writerow([*map(inert, head), *("" if np.isnan(value) else repr(float(value)) for value in values)])
    return written.getvalue().encode()


def from_csv(data: bytes) -> np.ndarray:
    """The values of to_csv()'s bytes."""
    _, *lines = csv.reader(io.StringIO(data.decode(), newline=""))
    return np.array([[float(cell) if cell else np.nan for cell in line[len(HEAD) :]] for line in lines], np.float64)


def to_json(found: Explained) -> bytes:
    """The fields, as the API answers."""
    return json.dumps(found.fields, ensure_ascii=False).encode()


def from_json(data: bytes) -> np.ndarray:
    """The values of to_json()'s bytes."""
    return _values(json.loads(data))


def to_npz(found: Explained) -> bytes:
    """Values [row, column], rows (names), evidence, units, columns, arrays, and all fields as JSON text. No pickle."""
    written, heads = io.BytesIO(), np.array(found.heads()).T
    np.savez_compressed(
        written,
        values=found.values,
        **dict(zip(("rows", "evidence", "units"), heads)),
        columns=np.array(found.fields["columns"]),
        **found.arrays,
        fields=np.array(to_json(found).decode()),
    )
    return written.getvalue()


def from_npz(data: bytes) -> np.ndarray:
    """The values of to_npz()'s bytes."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return stored["values"]


def _values(fields: Mapping[str, object]) -> np.ndarray:
    return np.array(
        [[np.nan if value is None else value for value in row["values"]] for row in fields["rows"]], np.float64
    )
