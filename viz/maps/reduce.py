"""From the attention maps of a trace to the one map that a view shows: combine heads, hide special tokens, merge words.

The page computes the same in viz/web/explorer/model.js; tests/page/explorer/test_parity.py compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from attention_atlas.model.trace import check_integer
from attention_atlas.model.trace.flow import decoder_rollout, rollout
from attention_atlas.model.trace.kinds import AttentionKind, Kind, NamedEnum, coerce_enums, coerce_integers
from attention_atlas.model.trace.scores import Groups, ScoreMap
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace, check_trace
from attention_atlas.model.trace.words import word_groups
from attention_atlas.viz.maps import labels

__all__ = ["Combine", "Special", "View", "score_map"]

THUMBNAIL = 40  # cells on a side of the thumbnails of layers that are not sent yet


class Combine(NamedEnum):
    """How several heads become one map."""

    SINGLE = "single"
    MEAN = "mean"
    MAX = "max"
    ROLLOUT = "rollout"


class Special(NamedEnum):
    """Whether special tokens (language symbol, begin, end) are shown."""

    SHOW = "show"
    HIDE = "hide"
    RENORMALISE = "renormalise"


@dataclass(frozen=True)
class View:
    """Which map of a trace to show, and how. Layers and heads count from 0.

    heads      (layer, head) pairs for MEAN and MAX, and for lines in several colours; empty: all heads of `layer`
    combine    SINGLE shows (layer, head) alone; ROLLOUT covers all heads from the input up to `layer`
    words      merge subwords into words
    special    show special tokens, hide them, or hide them and renormalise the rows
    predicted  label (and merge and hide) decoder rows by the token that they predict instead of the one they read
    """

    kind: Kind = AttentionKind.CROSS
    layer: int = 0
    head: int = 0
    heads: Sequence[tuple[int, int]] = ()
    combine: Combine | Any = Combine.SINGLE
    words: bool = False
    special: Special | Any = Special.SHOW
    predicted: bool = False

    def __post_init__(self) -> None:
        coerce_enums(self, kind=AttentionKind, combine=Combine, special=Special)
        coerce_integers(self, "layer", "head")
        try:
            heads = tuple((check_integer("layer", layer), check_integer("head", head)) for layer, head in self.heads)
        except TypeError as error:
            raise ValueError(f"heads are pairs (layer, head), found {self.heads!r:.80}") from error
        object.__setattr__(self, "heads", heads)

    @classmethod
    def coerce(cls, view: View | Kind | None) -> View:
        """Return the view, or the view of the first head of a kind; None: of cross-attention."""
        return view if isinstance(view, View) else cls() if view is None else cls(view)

    @classmethod
    def from_plain(cls, data: Any) -> View:
        """Read a JSON object with these fields. ValueError for anything else."""
        try:
            values = {field.name: data[field.name] for field in fields(cls)}
            values.update((name, bool(values[name])) for name in ("words", "predicted"))
            return cls(**values)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a view of a map: {data!r}") from error

    def used_heads(self, trace: TranslationTrace) -> tuple[tuple[int, int], ...]:
        """Return the (layer, head) pairs that are combined. ValueError if the trace lacks one."""
        maps = check_trace(trace).maps(self.kind)
        if self.combine == Combine.SINGLE:
            used = ((self.layer, self.head),)
        elif self.combine == Combine.ROLLOUT or not self.heads:
            used = tuple((self.layer, head) for head in range(maps.num_heads))
        else:
            used = tuple(self.heads)
        self._check(trace, used)
        return used

    def split(self, trace: TranslationTrace) -> list[Self]:
        """Return a view of each head if SINGLE has `heads`, else this view. ValueError if the trace lacks a head."""
        self._check(trace, self.heads)
        if self.combine != Combine.SINGLE or not self.heads:
            return [self]
        return [replace(self, layer=layer, head=head, heads=()) for layer, head in self.heads]

    def _check(self, trace: TranslationTrace, heads: Sequence[tuple[int, int]]) -> None:
        maps = check_trace(trace).maps(self.kind)
        for layer, head in heads:
            if not (0 <= layer < maps.num_layers and 0 <= head < maps.num_heads):
                raise ValueError(
                    f"{self.kind.value} has layers 0 to {maps.num_layers - 1} and heads 0 to "
                    f"{maps.num_heads - 1}, found layer {layer}, head {head}"
                )


def merge_words(values: np.ndarray, rows: Groups, columns: Groups, *, additive: bool = True) -> np.ndarray:
    """Merge values [row, column] of tokens into those of words.

    Values are summed over a word's keys and averaged over its queries, so that rows still sum to 1. A score that is not
    additive keeps the value furthest from 0. Blank rows (NaN) are ignored; a word with only blank rows is blank.
    """
    over_keys, over_queries = (np.sum, np.mean) if additive else (_furthest, _furthest)
    merged = np.stack([over_keys(values[:, list(group)], axis=1) for group in columns], axis=1)
    values = np.full((len(rows), len(columns)), np.nan)
    for i, group in enumerate(rows):
        present = merged[list(group)]
        present = present[~np.isnan(present).any(axis=1)]
        if len(present):
            values[i] = over_queries(present, axis=0)
    return values


def hide(values: np.ndarray, rows: Sequence[int], columns: Sequence[int], *, renormalise: bool) -> np.ndarray:
    """Keep these rows and columns of values [row, column]. Rows without mass become NaN."""
    remaining = values[np.ix_(list(rows), list(columns))].astype(np.float64)
    total = remaining.sum(axis=1, keepdims=True)
    remaining = np.where(total > 0, remaining, np.nan)
    return remaining / np.where(total > 0, total, 1.0) if renormalise else remaining


def _furthest(values: np.ndarray, axis: int) -> np.ndarray:
    at = np.abs(values).argmax(axis, keepdims=True)
    return np.take_along_axis(values, at, axis).squeeze(axis)


def pool(weights: np.ndarray, size: int = THUMBNAIL) -> np.ndarray:
    """Pool weights [.., query, key] to at most size x size cells, the largest weight of each block."""
    for axis in (-2, -1):
        length = weights.shape[axis]
        if length > size:
            starts = np.arange(size) * length // size
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights


def score_map(trace: TranslationTrace, view: View) -> ScoreMap:
    """Return the map that a view shows: combine heads, then hide special tokens, then merge words."""
    used = view.used_heads(trace)
    combined = label_scores(_combine_heads(trace, view, used), trace, view, _unit(view, used))
    return arrange(replace(combined, attention=view.combine != Combine.MAX), trace, view)


def label_rows_by_both(score_map: ScoreMap, trace: TranslationTrace, view: View) -> ScoreMap:
    """Label decoder rows by the token that they read and the one that they write, as the page does: "I → like".

    Rows of whole words keep their labels.
    """
    if view.words:
        return score_map
    names = labels.row_names(trace, view.kind)
    return replace(score_map, rows=tuple(names[position] for (position,) in score_map.row_positions))


def label_scores(values: np.ndarray, trace: TranslationTrace, view: View, unit: str) -> ScoreMap:
    """Make a ScoreMap of values [query, key] for the tokens of the view's kind.

    The keys may also be those of source and prefix side by side. The caller sets `attention`.
    """
    queries, keys, joint = _tokens(trace, view, values.shape[1])
    return ScoreMap(
        values,
        tuple(map(labels.display, queries)),
        tuple(map(labels.display, keys)),
        tuple((i,) for i in range(len(queries))),
        tuple((i,) for i in range(len(keys))),
        unit,
        False,
        labels.row_title(view.kind, predicted=view.predicted),
        labels.key_title(view.kind, joint=joint),
    )


def _tokens(trace: TranslationTrace, view: View, columns: int) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return the tokens of the rows and of the columns, and whether the columns are source and prefix side by side."""
    queries, keys = labels.row_tokens(trace, view.kind, predicted=view.predicted), trace.maps(view.kind).key_tokens
    joint = columns > len(keys)
    return queries, (*trace.source_tokens, *trace.decoder_inputs) if joint else keys, joint


def arrange(score_map: ScoreMap, trace: TranslationTrace, view: View) -> ScoreMap:
    """Hide special tokens and merge words of a result of label_scores(), as the view says."""
    queries, keys, joint = _tokens(trace, view, len(score_map.columns))
    if view.special != Special.SHOW:
        score_map = _hide_special(score_map, queries, keys, view.special)
    if view.words:
        groups = word_groups(trace.source_tokens)
        if joint:
            offset = len(trace.source_tokens)
            groups += tuple(tuple(i + offset for i in g) for g in word_groups(trace.decoder_inputs))
        elif view.kind == AttentionKind.DECODER_SELF:
            groups = word_groups(keys)
        score_map = _merge_map(score_map, (queries, word_groups(queries)), (keys, groups))
    return replace(score_map, values=score_map.values.astype(np.float32))


def _combine_heads(trace: TranslationTrace, view: View, used: tuple[tuple[int, int], ...]) -> np.ndarray:
    if view.combine == Combine.ROLLOUT:
        encoder = rollout(trace.encoder_self.weights)
        if view.kind == AttentionKind.ENCODER_SELF:
            return encoder[view.layer]
        return decoder_rollout(trace.decoder_self.weights, trace.cross.weights, encoder[-1])[view.layer]
    weights = trace.maps(view.kind).weights
    maps = np.stack([weights[layer, head] for layer, head in used])  # [head, query, key]
    return maps.max(axis=0) if view.combine == Combine.MAX else maps.mean(axis=0, dtype=np.float64)


def _unit(view: View, used: tuple[tuple[int, int], ...]) -> str:
    if view.combine == Combine.ROLLOUT:
        return f"attention rollout, input to layer {view.layer + 1}"
    if view.combine == Combine.SINGLE or len(used) == 1:
        return "attention weight"
    if view.combine == Combine.MAX:
        return f"largest weight of {len(used)} heads (a score, not attention)"
    return f"mean attention weight of {len(used)} heads"


def _hide_special(score_map: ScoreMap, queries: Sequence[str], keys: Sequence[str], special: Special) -> ScoreMap:
    rows = [i for i, token in enumerate(queries) if not is_symbol(token)]
    columns = [i for i, token in enumerate(keys) if not is_symbol(token)]
    # Only attention is renormalised; signed scores have no mass.
    values = (
        score_map.values[np.ix_(rows, columns)]
        if score_map.signed
        else hide(score_map.values, rows, columns, renormalise=special == Special.RENORMALISE and score_map.attention)
    )
    hidden = None
    if score_map.attention and rows:
        total = score_map.values[rows].sum(axis=1, dtype=np.float64)
        remaining = score_map.values[np.ix_(rows, columns)].sum(axis=1, dtype=np.float64)
        hidden = float(np.mean(1.0 - remaining / total))
    return replace(
        score_map,
        values=values,
        hidden=hidden,
        rows=tuple(score_map.rows[i] for i in rows),
        columns=tuple(score_map.columns[i] for i in columns),
        row_positions=tuple((i,) for i in rows),
        column_positions=tuple((i,) for i in columns),
    )


def _merge_map(
    score_map: ScoreMap, rows: tuple[Sequence[str], Groups], columns: tuple[Sequence[str], Groups]
) -> ScoreMap:
    row_labels, row_words, row_groups = _remaining_words(*rows, score_map.row_positions)
    column_labels, column_words, column_groups = _remaining_words(*columns, score_map.column_positions)
    return replace(
        score_map,
        values=merge_words(
            score_map.values, row_groups, column_groups, additive=score_map.attention or score_map.additive
        ),
        rows=row_labels,
        columns=column_labels,
        row_positions=row_words,
        column_positions=column_words,
    )


def _remaining_words(
    tokens: Sequence[str], groups: Groups, remaining: Groups
) -> tuple[tuple[str, ...], Groups, Groups]:
    """Return the words that are not hidden: their labels, their token positions, and their indices in `remaining`."""
    index = {positions[0]: i for i, positions in enumerate(remaining)}
    words = tuple(group for group in groups if group[0] in index)  # a special symbol is a word of its own
    texts = tuple(labels.word_label([tokens[i] for i in group]) for group in words)
    return texts, words, tuple(tuple(index[i] for i in group) for group in words)
