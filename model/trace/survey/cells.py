"""Statistics of the attention maps of one sentence: the cells that each counts, and their mean weight."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import normalize_rows
from attention_atlas.model.trace.survey.statistics import OFFSETS, statistics_of
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.words import is_punctuation

BAND = 0.1  # of the sentence, on both sides of the diagonal
SINKS = ("begin", "end", "punctuation")


@dataclass(frozen=True, eq=False)
class CountedCells:
    """The cells that a statistic counts, bool [query, key], and the rows that it is averaged over, bool [query]."""

    cells: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Measurement:
    """A statistic of the maps [..] of one sentence, and its expected value for random rows of the same length."""

    values: np.ndarray
    chance: float


def allowed_cells(kind: AttentionKind, queries: int, keys: int) -> np.ndarray:
    """Return the attention mask of a kind, bool [query, key], True = may attend."""
    return np.tri(queries, keys, dtype=bool) if kind is AttentionKind.DECODER_SELF else np.ones((queries, keys), bool)


def statistic_cells(
    kind: AttentionKind,
    queries: Sequence[str],
    keys: Sequence[str],
    rare: Collection[int] = (),
    links: np.ndarray | None = None,
) -> dict[str, CountedCells]:
    """Return the cells of each statistic of weights that has rows in this sentence, by name.

    rare: positions of the rarest source tokens. links: bool [target token y1 .. yT, source token]; None: unknown.
    The rows of self-attention are those of words; the rows of cross-attention are all, since the row of the begin
    symbol predicts a word.
    """
    allowed = allowed_cells(kind, len(queries), len(keys))
    query_is_word, key_is_word = (np.array([not is_symbol(t) for t in tokens], bool) for tokens in (queries, keys))
    rows = allowed.sum(1) > 1
    if kind is AttentionKind.CROSS:
        cells = _cross_cells(queries, keys, links, key_is_word)
    else:
        rows &= query_is_word
        query, key = np.indices((len(queries), len(keys)))
        text = np.array([str(token) for token in keys])
        cells = {name: (key - query == offset) & query_is_word for name, offset in OFFSETS.items()}
        cells["same_token"] = (text[:, None] == text) & (query != key) & query_is_word
    words = np.flatnonzero(key_is_word)
    first, last = (words[0], words[-1]) if len(words) else (len(keys), len(keys))
    position = np.arange(len(keys))
    for name, columns in (
        ("begin", position < first),
        ("end", position > last),
        ("punctuation", np.array([is_punctuation(token) for token in keys], bool)),
        ("rare_token", np.isin(position, list(rare))),
    ):
        cells[name] = np.broadcast_to(columns, allowed.shape)
    counted = {}
    for name in statistics_of(kind):
        if name in cells:
            allowed_here = cells[name] & allowed
            if (rows_here := allowed_here.any(1) & rows).any():
                counted[name] = CountedCells(allowed_here, rows_here)
    return counted


def _cross_cells(
    queries: Sequence[str], keys: Sequence[str], links: np.ndarray | None, words: np.ndarray
) -> dict[str, np.ndarray]:
    first, count = (int(np.flatnonzero(words)[0]) if words.any() else 0), max(2, int(words.sum()))
    across = (np.arange(len(keys)) - first) / (count - 1)
    down = np.arange(len(queries)) / max(1, len(queries) - 1)
    near = (np.abs(across - down[:, None]) <= max(BAND, 0.5 / (count - 1))) & words
    cells = {"diagonal": near}
    if links is not None:
        for name, rows in (("alignment_read", slice(1, None)), ("alignment_predicted", slice(0, -1))):
            linked = np.zeros_like(near)
            view = linked[rows]
            view[: len(links)] = links[: len(view)]
            cells[name] = linked & ~(linked & near).any(1, keepdims=True)
    return cells


def induction_cells(
    kind: AttentionKind, queries: Sequence[str], keys: Sequence[str], first: int, period: int
) -> CountedCells:
    """Return the cells of induction in a sequence of `period` tokens that is repeated from position `first` on: for
    each row of the second copy, the cell after the same token in the first copy."""
    cells = np.zeros((len(queries), len(keys)), bool)
    for i in range(period - (kind is not AttentionKind.DECODER_SELF)):
        cells[first + period + i, first + i + 1] = True
    return CountedCells(cells, cells.any(1))


def measure_weights(
    weights: np.ndarray, allowed: np.ndarray, counted: Mapping[str, CountedCells]
) -> dict[str, Measurement]:
    """Return the mean weight on each statistic's cells over its rows.

    weights [.., query, key], allowed bool [query, key].
    """
    if not counted:
        return {}
    cells = np.stack([part.cells * part.rows[:, None] / part.rows.sum() for part in counted.values()])
    values = weights.reshape(*weights.shape[:-2], -1).astype(np.float64) @ cells.reshape(len(counted), -1).T
    keys = allowed.sum(1)
    return {
        name: Measurement(values[..., index], float((part.cells.sum(1) / keys)[part.rows].mean()))
        for index, (name, part) in enumerate(counted.items())
    }


def measure_rows(weights: np.ndarray, allowed: np.ndarray) -> dict[str, Measurement]:
    """Return the breadth and the confidence of maps [.., query, key], over the rows with several keys.

    Chance is that of rows from the flat Dirichlet distribution, in which all ways to share 1 among n keys are equally
    likely: their mean entropy is 1/2 + .. + 1/n nats, their mean largest weight (1 + 1/2 + .. + 1/n) / n.
    """
    keys = allowed.sum(1)
    rows = keys > 1
    if not rows.any():
        return {}
    counts, weights = keys[rows], weights[..., rows, :].astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    entropy = -(weights * logs).sum(-1) / np.log(counts)
    harmonic = np.cumsum(1 / np.arange(1, counts.max() + 1))[counts - 1]
    return {
        "breadth": Measurement(entropy.mean(-1), float(((harmonic - 1) / np.log(counts)).mean())),
        "confidence": Measurement(weights.max(-1).mean(-1), float((harmonic / counts).mean())),
    }


def measure(
    kind: AttentionKind,
    weights: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    lengths: np.ndarray | None = None,
    rare: Collection[int] = (),
    links: np.ndarray | None = None,
) -> dict[str, Measurement]:
    """Return all statistics of the maps [.., query, key] of one sentence, by name.

    lengths: the norms of each head's values [.., key], for the shares by length (Kobayashi et al. 2020), which are left
    out without them. rare, links: as in statistic_cells().
    """
    allowed = allowed_cells(kind, len(queries), len(keys))
    counted = statistic_cells(kind, queries, keys, rare, links)
    measurements = {**measure_weights(weights, allowed, counted), **measure_rows(weights, allowed)}
    if lengths is not None:
        by_length = normalize_rows(weights.astype(np.float64) * lengths[..., None, :])
        sinks = {name: part for name, part in counted.items() if name in SINKS}
        measurements |= {f"{name}_norm": value for name, value in measure_weights(by_length, allowed, sinks).items()}
    return measurements
