"""One method's answer over the columns of the tokens' matrix. Importable without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attention_atlas.model.trace.language import Words
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.why.columns import Columns
from attention_atlas.model.trace.why.evidence import Evidence, Sum, Unit
from attention_atlas.model.trace.why.plain import plain
from attention_atlas.model.trace.why.question import Question

FORMERLY = {  # what files and answers called the methods before they had slugs
    "occlusion by mask": "occlusion_by_mask",
    "occlusion by mean": "occlusion_by_mean",
    "integrated gradients": "integrated_gradients",
    "gradient x input": "gradient_x_input",
    "ALTI+": "alti",
    "norm-based attention": "norm_based_attention",
    "cross-attention": "cross_attention",
    "attention rollout": "attention_rollout",
}


def slug_of(name: str) -> str:
    """The slug of a method that is called by it, or as it was before there were slugs."""
    return FORMERLY.get(name, name)


@dataclass(frozen=True, eq=False)
class Row:
    """values float64 [column], positive: speaks for the token. NaN: the method says nothing of that column.

    method          its slug in the registry; title: what people call it
    class_agnostic  it never looks at which token was written: the same for any contrast
    sum             what the values should add up to, and do; None where nothing is claimed
    notes           in words, what a reader must know of this answer
    """

    method: str
    evidence: Evidence
    unit: Unit
    values: np.ndarray
    class_agnostic: bool = False
    sum: Sum | None = None
    notes: tuple[Words, ...] = ()
    title: str = ""


def by_layer(values: np.ndarray, evidence: Evidence, unit: Unit | str, **names: object) -> list[dict]:
    """Rows of a file, one a layer of values [layers, column]. What stands before the evidence names a row."""
    return [
        {**names, "layer": layer, "evidence": evidence, "unit": unit, "values": row} for layer, row in enumerate(values)
    ]


@dataclass(frozen=True, eq=False)
class Why(Result):
    """The tokens' matrix for one question. metric: the measured value that the question asks about, in nats. agreement:
    method -> rank correlation with occlusion under the other replacement, over columns that are no symbols; None where
    that was not asked for, or fewer than three columns, or all equal, leave nothing to rank."""

    question: Question
    columns: Columns
    metric: float
    rows: tuple[Row, ...]
    agreement: dict[str, float | None]

    def as_plain(self) -> dict[str, Any]:
        """For model.trace.why.plain: of columns the first `source_columns` are the source's."""
        return {
            "question": self.question,
            "metric": self.metric,
            "unit": Unit.NATS,
            "columns": self.columns.labels,
            "source_columns": len(self.columns.source),
            "special": self.columns.special,
            "rows": [{**plain(row), "agreement": self.agreement[row.method]} for row in self.rows],
        }

    def row(self, method: str) -> Row:
        """The row of a method. ValueError if it was not asked for."""
        for row in self.rows:
            if row.method == slug_of(method):
                return row
        raise ValueError(f"no row {method!r}: there are {', '.join(row.method for row in self.rows)}")

    def columns_of_table(self) -> dict[str, Any]:
        """A line for each column of the matrix in its order, so that a word that occurs twice has two; `side` ("source"
        or "prefix"), `word`, `special` (a symbol), and each method's values, NaN where it says nothing."""
        sides = ["source"] * len(self.columns.source) + ["prefix"] * len(self.columns.prefix)
        told = {"side": sides, "word": self.columns.labels, "special": self.columns.special}
        return {**told, **{row.method: row.values for row in self.rows}}

    def about(self) -> str:
        return f"{self.question.in_words}: {self.metric:.3f} nats"
