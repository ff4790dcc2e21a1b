"""An answer of the tab "Why" as CSV, JSON or NPZ."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from attention_atlas.model.trace.why.attribution import Parts, Why
from attention_atlas.model.trace.why.evidence import to_jsonable
from attention_atlas.viz.export.table import escape_formula

HEAD = ("row", "evidence", "unit")


@dataclass(frozen=True, eq=False)
class Explained:
    """An answer ready to be written.

    fields  JSON-ready: "columns", and "rows", each with the fields that name it, evidence, unit and values (null: none)
    arrays  further arrays of an NPZ file
    """

    fields: Mapping[str, object]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, why: Why, parts: Parts) -> Explained:
        """Combine the attributions to tokens and the parts of the decoder, which answer the same question."""
        arrays = {f"parts.{kind.value}": keys for kind, keys in parts.keys.items()}
        return cls(
            {**to_jsonable(why), "parts": to_jsonable(parts)},
            {"special": why.columns.special, **arrays, "parts.feed_forward": parts.feed_forward},
        )

    @property
    def values(self) -> np.ndarray:
        """The values of the rows, float64 [row, column], NaN for none."""
        return np.array([row["values"] for row in self.fields["rows"]], np.float64)

    def headings(self) -> list[tuple[str, str, str]]:
        """Return the name, the evidence and the unit of every row."""
        return [
            (" ".join(str(row[name]) for name in takewhile("evidence".__ne__, row)), row["evidence"], row["unit"])
            for row in self.fields["rows"]
        ]


def to_csv(answer: Explained) -> bytes:
    """Write a line for each row, with its evidence and unit (RFC 4180).

    Every number reads back as the same float64; NaN is an empty cell. Labels are escaped for spreadsheets
    (viz.export.table).
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow([*HEAD, *map(escape_formula, answer.fields["columns"])])
    for heading, values in zip(answer.headings(), answer.values, strict=True):
        writer.writerow(
            [*map(escape_formula, heading), *("" if np.isnan(value) else repr(float(value)) for value in values)]
        )
    return file.getvalue().encode()


def to_json(answer: Explained) -> bytes:
    """Write the fields, as in the API's answer."""
    return json.dumps(answer.fields, ensure_ascii=False).encode()


def to_npz(answer: Explained) -> bytes:
    """Write values [row, column], the names, evidence and units of rows, columns, arrays, and the fields as JSON text,
    without pickle."""
    file, headings = io.BytesIO(), np.array(answer.headings()).T
    np.savez_compressed(
        file,
        values=answer.values,
        **dict(zip(("rows", "evidence", "units"), headings)),
        columns=np.array(answer.fields["columns"]),
        **answer.arrays,
        fields=np.array(to_json(answer).decode()),
    )
    return file.getvalue()
