"""A map derived from attention: combined, hidden, merged, attributed. Never presented as attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["ScoreMap"]

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A map derived from attention, ready to draw.

    values        float32 [row, column]; NaN where a row is blank
    rows, columns        what each is called (display text, not escaped)
    row_positions, column_positions   the token positions each row and column stands for
    unit          what a value is, in words; `attention` says whether rows are attention that sums to 1 (blank rows and
                  hidden, unrenormalised mass apart)
    signed        whether 0 is in the middle: a value's sign means something
    additive      whether values may be summed over a word's keys and averaged over its queries, as attention may
    limits        the values at full colour (None: the map's own largest), such as those of all heads, to compare by
    hidden        mean share of a row's mass that lay on hidden keys; None where nothing was hidden or for scores
    row_title, column_title   axis titles
    """

    values: np.ndarray
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_positions: Groups
    column_positions: Groups
    unit: str
    attention: bool
    row_title: str
    column_title: str
    signed: bool = False
    additive: bool = False
    limits: tuple[float, float] | None = None
    hidden: float | None = None

    def __post_init__(self) -> None:
        expected = (len(self.rows), len(self.columns))
        if self.values.shape != expected:
            raise ValueError(f"values are {self.values.shape}, labels {expected} (rows, columns)")
