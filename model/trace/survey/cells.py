"""Statistics of attention maps of one sentence: which cells each counts, and what maps have there. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.statistics import OFFSETS, of_kind
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.words import is_punctuation

BAND = 0.1  # of the sentence, on both sides of the diagonal
SINKS = ("begin", "end", "punctuation")


@dataclass(frozen=True, eq=False)
class Facts:
    """What a sentence's tokens do not say themselves. rare: positions of the rarest source tokens, empty where none is
    rare. links: bool [target token y1 .. yT, source token], or None where nobody knows them."""

    rare: frozenset[int] = frozenset()
    links: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Place:
    """The cells that a statistic counts, bool [query, key], and the rows that it is a mean over, bool [query]."""

    cells: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Found:
    """A statistic of some maps [..] of one sentence, and what rows of the same length would have on average whose
    weights were drawn at random, any key like any other."""

    values: np.ndarray
    chance: float


def allowed_cells(kind: AttentionKind, queries: int, keys: int) -> np.ndarray:
    """bool [query, key]: what may be attended to."""
    return np.tri(queries, keys, dtype=bool) if kind is AttentionKind.DECODER_SELF else np.ones((queries, keys), bool)


def places(
    kind: AttentionKind, queries: Sequence[str], keys: Sequence[str], facts: Facts = Facts()
) -> dict[str, Place]:
    """The statistics of weights on cells that this sentence has rows for. Self-attention's rows are those of words;
    cross-attention's are all, since the begin symbol's predicts a word."""
    allowed = allowed_cells(kind, len(queries), len(keys))
    own, columns = (np.array([not is_symbol(token) for token in tokens], bool) for tokens in (queries, keys))
    choice = allowed.sum(1) > 1
    rows = choice if kind is AttentionKind.CROSS else choice & own
    found = _cross(queries, keys, facts, columns) if kind is AttentionKind.CROSS else _itself(queries, keys, own)
    words = np.flatnonzero(columns)
    first, last = (words[0], words[-1]) if len(words) else (len(keys), len(keys))
    at = np.arange(len(keys))
    for name, named in (
        ("begin", at < first),
        ("end", at > last),
        ("punctuation", _punctuation(keys)),
        ("rare_token", np.isin(at, list(facts.rare))),
    ):
        found[name] = np.broadcast_to(named, allowed.shape)
    result = {}
    for name in of_kind(kind):
        cells = found[name] & allowed if name in found else None
        if cells is not None and (counted := cells.any(1) & rows).any():
            result[name] = Place(cells, counted)
    return result


def _punctuation(keys: Sequence[str]) -> np.ndarray:
    return np.array([is_punctuation(token) for token in keys], bool)


def _itself(queries: Sequence[str], keys: Sequence[str], words: np.ndarray) -> dict[str, np.ndarray]:
    query, key = np.indices((len(queries), len(keys)))
    text = np.array([str(token) for token in keys])
    found = {name: (key - query == offset) & words for name, offset in OFFSETS.items()}
    found["same_token"] = (text[:, None] == text) & (query != key) & words
    return found


def _cross(queries: Sequence[str], keys: Sequence[str], facts: Facts, words: np.ndarray) -> dict[str, np.ndarray]:
    first, count = (int(np.flatnonzero(words)[0]) if words.any() else 0), max(2, int(words.sum()))
    across = (np.arange(len(keys)) - first) / (count - 1)
    down = np.arange(len(queries)) / max(1, len(queries) - 1)
    near = (np.abs(across - down[:, None]) <= max(BAND, 0.5 / (count - 1))) & words
    found = {"diagonal": near}
    if facts.links is not None:
        for name, rows in (("alignment_read", slice(1, None)), ("alignment_predicted", slice(0, -1))):
            linked = np.zeros_like(near)
            given = linked[rows]
            given[: len(facts.links)] = facts.links[: len(given)]
            found[name] = linked & ~(linked & near).any(1, keepdims=True)
    return found


def induction(kind: AttentionKind, queries: Sequence[str], keys: Sequence[str], first: int, period: int) -> Place:
    """Rows of the second copy of a sequence of `period` tokens from position `first` on, and the cell after the same
    token of the first copy."""
    cells = np.zeros((len(queries), len(keys)), bool)
    for at in range(period - (kind is not AttentionKind.DECODER_SELF)):
        cells[first + period + at, first + at + 1] = True
    return Place(cells, cells.any(1))


def measured(weights: np.ndarray, allowed: np.ndarray, found: Mapping[str, Place]) -> dict[str, Found]:
    """Mean weight on each statistic's cells over its rows. weights [.., query, key], allowed bool [query, key]."""
    if not found:
        return {}
    cells = np.stack([place.cells * place.rows[:, None] / place.rows.sum() for place in found.values()])
    values = weights.reshape(*weights.shape[:-2], -1).astype(np.float64) @ cells.reshape(len(found), -1).T
    keys = allowed.sum(1)
    return {
        name: Found(values[..., index], float((place.cells.sum(1) / keys)[place.rows].mean()))
        for index, (name, place) in enumerate(found.items())
    }


def shape(weights: np.ndarray, allowed: np.ndarray) -> dict[str, Found]:
    """Breadth and confidence of maps [.., query, key], over the rows that have a choice. Chance is that of rows drawn
    from the flat Dirichlet distribution: every way to share 1 among n keys is as likely as any other. Their mean
    entropy is 1/2 + .. + 1/n nats, and their mean largest weight (1 + 1/2 + .. + 1/n) / n."""
    keys = allowed.sum(1)
    rows = keys > 1
    if not rows.any():
        return {}
    counts, chosen = keys[rows], weights[..., rows, :].astype(np.float64)
    logs = np.log(chosen, out=np.zeros_like(chosen), where=chosen > 0)
    entropy = -(chosen * logs).sum(-1) / np.log(counts)
    harmonic = np.cumsum(1 / np.arange(1, counts.max() + 1))[counts - 1]
    return {
        "breadth": Found(entropy.mean(-1), float(((harmonic - 1) / np.log(counts)).mean())),
        "confidence": Found(chosen.max(-1).mean(-1), float((harmonic / counts).mean())),
    }


def statistics(
    kind: AttentionKind,
    weights: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    lengths: np.ndarray | None = None,
    facts: Facts = Facts(),
) -> dict[str, Found]:
    """All statistics of maps [.., query, key] of one sentence. lengths [.., key]: of each head's values, for the shares
    by length (Kobayashi et al. 2020); without, those are absent. Six parameters: the maps with their two axes' tokens,
    and what else is known of them."""
    allowed = allowed_cells(kind, len(queries), len(keys))
    found = places(kind, queries, keys, facts)
    result = {**measured(weights, allowed, found), **shape(weights, allowed)}
    if lengths is not None:
        by_length = weights.astype(np.float64) * lengths[..., None, :]
        by_length = by_length / np.maximum(by_length.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
        sinks = {name: place for name, place in found.items() if name in SINKS}
        result |= {f"{name}_norm": value for name, value in measured(by_length, allowed, sinks).items()}
    return result
