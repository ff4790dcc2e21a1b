"""The parts of the answers that the picture of the tab Inside is drawn from (viz/web/inside/)."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.words import word_groups
from attention_atlas.viz.maps import labels

MAX_ROWS = 48  # of a side: more words are pooled into rows of several words
MAX_PIECES = 64  # of a side: above, single pieces of a word have no lines of their own
MAX_CELLS = 48  # of a strip
FAINTEST = 0.06  # a smaller pooled weight is not sent: it would not be drawn
_LEVELS = 127  # of a strip's cells


def numbers(values: np.ndarray) -> list:
    """Return an array as nested lists of numbers with eight significant digits."""
    array = np.asarray(values, np.float64)
    if array.ndim > 1:
        return [numbers(row) for row in array]
    return [number(value) for value in array.tolist()]


def number(value: float) -> float:
    """Return a number with eight significant digits: as many as a float32 has, and shorter than its float64."""
    return float(f"{value:.8g}")


def strips(values: np.ndarray, *, max_cells: int = MAX_CELLS, sampled: bool = False) -> dict:
    """Return vectors [row, dimension] as strips of at most `max_cells` cells.

    "data" is base64 of int8 [row, cell]; its unit is "unit". "group" is the number of dimensions of a cell, which holds
    the one of the largest absolute value, or the first one if the strip is sampled: so strips can be added up.
    """
    values = np.asarray(values, np.float32)
    rows, width = values.shape
    group = -(-width // max_cells)
    padded = np.zeros((rows, -(-width // group) * group), np.float32)
    padded[:, :width] = values
    grouped = padded.reshape(rows, -1, group)
    if sampled:
        cells = grouped[..., 0]
    else:
        largest = np.abs(grouped).argmax(-1)[..., None]
        cells = np.take_along_axis(grouped, largest, -1)[..., 0]
    limit = float(np.abs(cells).max(initial=0.0)) or 1.0
    data = np.rint(cells / limit * _LEVELS).astype(np.int8)
    return {
        "cells": cells.shape[1],
        "group": group,
        "unit": limit / _LEVELS,
        "data": base64.b64encode(data.tobytes()).decode("ascii"),
    }


@dataclass(frozen=True)
class Rows:
    """The rows of one side: words, or in a long text several words each.

    groups  the token positions of each row, in order; together all positions
    pooled  whether a row may hold several words
    """

    tokens: Sequence[str]
    groups: tuple[tuple[int, ...], ...]
    pooled: bool

    @classmethod
    def of(cls, tokens: Sequence[str]) -> Rows:
        """Group the tokens of a side."""
        words = word_groups(tokens)
        size = -(-len(words) // MAX_ROWS)
        groups = tuple(sum(words[i : i + size], ()) for i in range(0, len(words), size))
        return cls(tokens, groups, size > 1)

    @property
    def starts(self) -> list[int]:
        """The first position of each row."""
        return [group[0] for group in self.groups]

    @property
    def pieces(self) -> tuple[int, ...]:
        """The positions that are pieces of a word, if their lines are sent."""
        if len(self.tokens) > MAX_PIECES:
            return ()
        return tuple(position for group in self.groups if len(group) > 1 for position in group)

    def payload(self) -> dict:
        """Return the tokens and the rows, JSON-ready."""
        rows = [
            {
                "at": [group[0], group[-1] + 1],
                "label": labels.word_label([self.tokens[i] for i in group]),
                "symbol": all(is_symbol(self.tokens[i]) for i in group),
            }
            for group in self.groups
        ]
        return {"tokens": list(map(labels.text_of, self.tokens)), "rows": rows, "pooled": self.pooled}


def lines(weights: np.ndarray, queries: Rows, keys: Rows) -> dict:
    """Return a head's weights [query, key] between rows: the sum over a row's keys, the mean over its queries.

    "rows" has [query row, key row, weight], "pieces" [query position, key row, weight] of the pieces of words; weights
    below FAINTEST are left out.
    """
    by_key = np.add.reduceat(np.asarray(weights, np.float64), keys.starts, axis=1)
    sizes = np.array([len(group) for group in queries.groups])
    by_row = np.add.reduceat(by_key, queries.starts, axis=0) / sizes[:, None]
    pieces = [[position, *rest] for position in queries.pieces for _, *rest in _strong(by_key[[position]])]
    return {"rows": _strong(by_row), "pieces": pieces}


def _strong(weights: np.ndarray) -> list[list]:
    return [[int(q), int(k), number(weights[q, k])] for q, k in np.argwhere(weights >= FAINTEST)]
