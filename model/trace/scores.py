"""Score maps: maps derived from attention (combined, hidden, merged, attributed), never presented as attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["ScoreMap"]

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """A map derived from attention, ready to draw.

    values        float32 [row, column]; NaN in blank rows
    rows, columns        their labels (display text, not escaped)
    row_positions, column_positions   the token positions of each row and column
    unit          what a value is, in words
    attention     whether rows are attention that sums to 1 (except for blank rows and hidden mass)
    row_title, column_title   axis titles
    signed        whether the sign of a value has a meaning, so that 0 is in the middle of the colours
    additive      whether values may be summed over a word's keys and averaged over its queries, like attention
    limits        the values at full colour, such as the extremes of all heads; None: the map's own largest
    hidden        the mean share of a row's mass on hidden keys; None if nothing is hidden or for scores
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
