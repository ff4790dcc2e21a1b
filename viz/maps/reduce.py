"""Attention maps -> the one map a person looks at: heads combined, words merged, special tokens hidden, rollout.

The explorer's page computes the same in viz/web/explorer/model.js; tests/page/explorer/test_parity.py holds the two
equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from attention_atlas.model.trace import check_integer
from attention_atlas.model.trace.flow import decoder_rollout, rollout
from attention_atlas.model.trace.kinds import AttentionKind, Kind
from attention_atlas.model.trace.scores import Groups, ScoreMap
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.translation import TranslationTrace, check_trace
from attention_atlas.model.trace.words import word_groups
from attention_atlas.viz.maps import labels

__all__ = ["Combine", "Special", "View", "score_map"]

THUMBNAIL = 40  # cells a side of the thumbnails that stand in for layers not sent yet


class Combine(str, Enum):
    """How several heads become one map."""

    SINGLE = "single"
    MEAN = "mean"
    MAX = "max"
    ROLLOUT = "rollout"


class Special(str, Enum):
    """What happens to the language symbol and the begin and end tokens."""

    SHOW = "show"
    HIDE = "hide"
    RENORMALISE = "renormalise"


@dataclass(frozen=True)
class View:
    """Which map of a trace to look at, and how. Layers and heads count from 0.

    heads      (layer, head) pairs for MEAN and MAX, and for lines in several colours; empty: all heads of `layer`
    combine    SINGLE shows (layer, head) alone; ROLLOUT covers all heads from the input up to `layer`
    words      merge subwords into whole words
    special    show, hide, or hide and renormalise the rows
    predicted  name (and merge, and hide) decoder rows by the token they predict instead of the one they read
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
        for name, type_ in (("kind", AttentionKind), ("combine", Combine), ("special", Special)):
            object.__setattr__(self, name, type_(getattr(self, name)))  # "cross" will do
        object.__setattr__(self, "layer", check_integer("layer", self.layer))
        object.__setattr__(self, "head", check_integer("head", self.head))
        try:
            heads = tuple((check_integer("layer", layer), check_integer("head", head)) for layer, head in self.heads)
        except TypeError as error:
            raise ValueError(f"heads are pairs (layer, head), found {self.heads!r:.80}") from error
        object.__setattr__(self, "heads", heads)

    @classmethod
    def meant(cls, view: View | Kind | None) -> View:
        """The view itself, or the first head of a kind; None: of cross-attention."""
        return view if isinstance(view, View) else cls() if view is None else cls(view)

    @classmethod
    def of(cls, found: Any) -> View:
        """The view that a JSON object of these fields stands for. ValueError for anything else."""
        try:
            return cls(
                found["kind"],
                found["layer"],
                found["head"],
                found["heads"],
                found["combine"],
                bool(found["words"]),
                found["special"],
                bool(found["predicted"]),
            )
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a view of a map: {found!r}") from error

    def used_heads(self, trace: TranslationTrace) -> tuple[tuple[int, int], ...]:
        """The (layer, head) pairs that are combined. ValueError if one does not exist in this trace."""
        maps = check_trace(trace).maps(self.kind)
        if self.combine == Combine.SINGLE:
            used = ((self.layer, self.head),)
        elif self.combine == Combine.ROLLOUT or not self.heads:
            used = tuple((self.layer, head) for head in range(maps.num_heads))
        else:
            used = tuple(self.heads)
        self._check(trace, used)
        return used

    def apart(self, trace: TranslationTrace) -> list[View]:
        """With SINGLE and `heads`, a view of each; else this one alone. ValueError for a head that does not exist."""
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
    """Sum over a word's keys, mean over its queries, so that rows still sum to 1; of a score that is not additive the
    one furthest from 0 over both, since a sum of maxima is neither. values [row, column]; a blank row (NaN) counts for
    nothing, and a word whose rows are all blank is blank."""
    over_keys, over_queries = (np.sum, np.mean) if additive else (_furthest, _furthest)
    merged = np.stack([over_keys(values[:, list(group)], axis=1) for group in columns], axis=1)
    result = np.full((len(rows), len(columns)), np.nan)
    for i, group in enumerate(rows):
        present = merged[list(group)]
        present = present[~np.isnan(present).any(axis=1)]
        if len(present):
            result[i] = over_queries(present, axis=0)
    return result


def hide(values: np.ndarray, rows: Sequence[int], columns: Sequence[int], *, renormalise: bool) -> np.ndarray:
    """Keep these rows and columns of values [row, column], renormalised or not. A row with nothing left is NaN."""
    left = values[np.ix_(list(rows), list(columns))].astype(np.float64)
    total = left.sum(axis=1, keepdims=True)
    left = np.where(total > 0, left, np.nan)
    return left / np.where(total > 0, total, 1.0) if renormalise else left


def _furthest(values: np.ndarray, axis: int) -> np.ndarray:
    at = np.abs(values).argmax(axis, keepdims=True)
    return np.take_along_axis(values, at, axis).squeeze(axis)


def pool(weights: np.ndarray, size: int = THUMBNAIL) -> np.ndarray:
    """Pool weights [.., query, key] to at most size x size cells, each the largest weight of its block."""
    for axis in (-2, -1):
        length = weights.shape[axis]
        if length > size:
            starts = np.arange(size) * length // size
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights


def score_map(trace: TranslationTrace, view: View) -> ScoreMap:
    """The map that a view shows: heads combined, then special tokens hidden, then words merged."""
    used = view.used_heads(trace)
    found = labelled(_combined(trace, view, used), trace, view, _unit(view, used))
    return arranged(replace(found, attention=view.combine != Combine.MAX), trace, view)


def named_by_both(found: ScoreMap, trace: TranslationTrace, view: View) -> ScoreMap:
    """The same map, with a decoder's rows named by the token that each reads and the one that it writes, as the page
    names them: "I → like". Whole words keep their names."""
    if view.words:
        return found
    names = labels.row_names(trace, view.kind)
    return replace(found, rows=tuple(names[at] for (at,) in found.row_positions))


def labelled(values: np.ndarray, trace: TranslationTrace, view: View, unit: str) -> ScoreMap:
    """A score for each query token and each key token of the view's kind, or each of source and prefix side by side:
    values [query, key], with the tokens' names. Attention only once the caller says so."""
    queries, keys, joint = _tokens(trace, view, values.shape[1])
    return ScoreMap(
        values,
        tuple(map(labels.display, queries)),
        tuple(map(labels.display, keys)),
        _singles(len(queries)),
        _singles(len(keys)),
        unit,
        False,
        labels.row_title(view.kind, predicted=view.predicted),
        labels.key_title(view.kind, joint=joint),
    )


def _tokens(trace: TranslationTrace, view: View, columns: int) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """The tokens of the rows and of so many columns, and whether these are source and prefix side by side."""
    queries, keys = labels.row_tokens(trace, view.kind, predicted=view.predicted), trace.maps(view.kind).key_tokens
    joint = columns > len(keys)
    return queries, (*trace.source_tokens, *trace.decoder_inputs) if joint else keys, joint


def arranged(found: ScoreMap, trace: TranslationTrace, view: View) -> ScoreMap:
    """A map as labelled() makes it, the way a view asks for it: special tokens hidden, then words merged."""
    queries, keys, joint = _tokens(trace, view, len(found.columns))
    result = found
    if view.special != Special.SHOW:
        result = _without_special(result, queries, keys, view.special)
    if view.words:
        groups = word_groups(trace.source_tokens)
        if joint:
            offset = len(trace.source_tokens)
            groups += tuple(tuple(i + offset for i in g) for g in word_groups(trace.decoder_inputs))
        elif view.kind == AttentionKind.DECODER_SELF:
            groups = word_groups(keys)
        result = _in_words(result, (queries, word_groups(queries)), (keys, groups))
    return replace(result, values=result.values.astype(np.float32))


def _combined(trace: TranslationTrace, view: View, used: tuple[tuple[int, int], ...]) -> np.ndarray:
    if view.combine == Combine.ROLLOUT:
        encoder = rollout(trace.encoder_self.weights)
        if view.kind == AttentionKind.ENCODER_SELF:
            return encoder[view.layer]
        return decoder_rollout(trace.decoder_self.weights, trace.cross.weights, encoder[-1])[view.layer]
    weights = trace.maps(view.kind).weights
    chosen = np.stack([weights[layer, head] for layer, head in used])  # [chosen, query, key]
    return chosen.max(axis=0) if view.combine == Combine.MAX else chosen.mean(axis=0, dtype=np.float64)


def _unit(view: View, used: tuple[tuple[int, int], ...]) -> str:
    if view.combine == Combine.ROLLOUT:
        return f"attention rollout, input to layer {view.layer + 1}"
    if view.combine == Combine.SINGLE or len(used) == 1:
        return "attention weight"
    if view.combine == Combine.MAX:
        return f"largest weight of {len(used)} heads (a score, not attention)"
    return f"mean attention weight of {len(used)} heads"


def _without_special(found: ScoreMap, queries: Sequence[str], keys: Sequence[str], special: Special) -> ScoreMap:
    rows = [i for i, token in enumerate(queries) if not is_symbol(token)]
    columns = [i for i, token in enumerate(keys) if not is_symbol(token)]
    # Renormalising a maximum would pass for attention what is none; differences have no mass that could be gone.
    values = (
        found.values[np.ix_(rows, columns)]
        if found.signed
        else hide(found.values, rows, columns, renormalise=special == Special.RENORMALISE and found.attention)
    )
    hidden = None
    if found.attention and rows:
        everything = found.values[rows].sum(axis=1, dtype=np.float64)
        shown = found.values[np.ix_(rows, columns)].sum(axis=1, dtype=np.float64)
        hidden = float(np.mean(1.0 - shown / everything))
    return replace(
        found,
        values=values,
        hidden=hidden,
        rows=tuple(found.rows[i] for i in rows),
        columns=tuple(found.columns[i] for i in columns),
        row_positions=tuple((i,) for i in rows),
        column_positions=tuple((i,) for i in columns),
    )


def _in_words(found: ScoreMap, rows: tuple[Sequence[str], Groups], columns: tuple[Sequence[str], Groups]) -> ScoreMap:
    row_labels, row_words, row_groups = _shown_words(*rows, found.row_positions)
    column_labels, column_words, column_groups = _shown_words(*columns, found.column_positions)
    return replace(
        found,
        values=merge_words(found.values, row_groups, column_groups, additive=found.attention or found.additive),
        rows=row_labels,
        columns=column_labels,
        row_positions=row_words,
        column_positions=column_words,
    )


def _shown_words(tokens: Sequence[str], groups: Groups, shown: Groups) -> tuple[tuple[str, ...], Groups, Groups]:
    """Of words as groups of token positions, those still shown: labels, token positions, places among the shown."""
    place = {positions[0]: i for i, positions in enumerate(shown)}
    kept = tuple(group for group in groups if group[0] in place)  # a special symbol is a word of its own
    texts = tuple(labels.word_label([tokens[i] for i in group]) for group in kept)
    return texts, kept, tuple(tuple(place[i] for i in group) for group in kept)


def _singles(length: int) -> Groups:
    return tuple((i,) for i in range(length))
