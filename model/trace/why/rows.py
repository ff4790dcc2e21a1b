"""One method's answer over the columns of the tokens' matrix. Importable without torch."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.trace.language import Words
from model.trace.why.columns import Columns
from model.trace.why.evidence import Evidence, Sum, Unit
from model.trace.why.question import Question

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Row:
    """values float64 [column], positive: speaks for the token. NaN: the method says nothing of that column.

    method          its name in the registry
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


@dataclass(frozen=True, eq=False)
class Why:
    """The tokens' matrix for one question. metric: the measured value that the question asks about, in nats. agreement:
    method -> rank correlation with occlusion under the other replacement, over columns that are no symbols; None where
    that was not asked for, or fewer than three columns, or all equal, leave nothing to rank."""

    question: Question
    columns: Columns
    metric: float
    rows: tuple[Row, ...]
    agreement: dict[str, float | None]

    def row(self, method: str) -> Row:
        """The row of a method. ValueError if it was not asked for."""
        for row in self.rows:
            if row.method == method:
                return row
        raise ValueError(f"no row {method!r}: there are {', '.join(row.method for row in self.rows)}")

    def to_frame(self) -> pd.DataFrame:
        """A pandas table: a line for each column of the matrix in its order, so that a word that occurs twice has two;
        `side` ("source" or "prefix"), `word`, `special` (a symbol), and each method's values, NaN where it says
        nothing. Needs pandas, which Gradio brings."""
        import pandas as pd  # nothing else here needs it

        sides = ["source"] * len(self.columns.source) + ["prefix"] * len(self.columns.prefix)
        told = {"side": sides, "word": self.columns.labels, "special": self.columns.special}
        return pd.DataFrame({**told, **{str(row.method): row.values for row in self.rows}})

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        token, contrast = html.escape(self.question.token), html.escape(str(self.question.contrast or ""))
        about = f"{token} rather than {contrast}" if contrast else token
        return f"<p>{about}: {self.metric:.3f} nats</p>" + self.to_frame().to_html(float_format="%.3f", na_rep="")
