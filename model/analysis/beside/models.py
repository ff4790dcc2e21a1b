"""Two models on one sentence: which head is which, how alike the layers are, and what each thinks of every word.

Whatever their tokenizers, both sentences are the same words: maps are pooled to those (summed over a key's pieces, a
mean over a query's), and so are states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.again import recorded
from attention_atlas.model.analysis.survey.batch import similarity
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.scores import Groups
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE
from attention_atlas.model.translator import Translator

LEAST = 4  # words, below which no debiased kernel alignment is defined


@dataclass(frozen=True, eq=False)
class Twins:
    """words: of the target. log_probability float64 [2, words]: natural, of each word, its pieces summed, by either
    model. alike: kind -> float64 [heads, the other's heads], 1 less the Jensen–Shannon divergence of their rows in
    bits; pairs: kind -> the assignment of largest sum. layers: side -> debiased linear CKA [layers, the other's
    layers], where both are Transformers and there are words enough."""

    words: tuple[str, ...]
    log_probability: np.ndarray
    alike: dict[AttentionKind, np.ndarray]
    pairs: dict[AttentionKind, list[tuple[int, int]]]
    layers: dict[Side, np.ndarray]


def twins(one: tuple[Translator, TranslationTrace], other: tuple[Translator, TranslationTrace]) -> Twins:
    """Of two models' traces of the same source and target. ValueError where their words differ."""
    (first, mine), (second, theirs) = one, other
    groups = [[content_words(tokens) for tokens in (t.source_tokens, t.target_tokens)] for t in (mine, theirs)]
    if any(len(a) != len(b) for a, b in zip(*groups)):
        raise Refusal("The two models split this sentence into different words.")
    alike = {}
    for kind in mine.kinds:
        if kind in theirs.kinds:
            maps = (between(t.maps(kind).weights, kind, t.source_tokens, t.target_tokens) for t in (mine, theirs))
            alike[kind] = heads_alike([tuple(maps)])
    layers = {}
    if isinstance(first.model, Transformer) and isinstance(second.model, Transformer):
        outputs = [recorded(translator, trace) for translator, trace in (one, other)]
        for side, at in ((Side.ENCODER, 0), (Side.DECODER, 1)):
            states = [
                [_pooled(record.after[0].double().cpu().numpy(), own[at]) for record in output.layers(side)]
                for output, own in zip(outputs, groups)
            ]
            if len(groups[0][at]) >= LEAST:
                layers[side] = np.array([[cka(a, b) for b in states[1]] for a in states[0]])
    return Twins(
        tuple("".join(mine.target_tokens[i] for i in group).replace(SPACE, "") for group in groups[0][1]),
        np.array([[t.log_probability[list(g)].sum() for g in own[1]] for t, own in zip((mine, theirs), groups)], float),
        alike,
        {kind: assigned(values) for kind, values in alike.items()},
        layers,
    )


def _pooled(states: np.ndarray, groups: Groups) -> np.ndarray:
    return np.stack([states[list(group)].mean(0) for group in groups])


def between(weights: np.ndarray, kind: AttentionKind, source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    """Every head's map [layers, heads, query, key] between words, rows summing to 1: [heads of all layers, query word,
    key word]. target: y1 .. yT. A row of the decoder stands for the word that it writes; symbols are left out but for
    the one that the decoder begins with."""
    weights, keys = weights.astype(np.float64), content_words(source)
    if kind is AttentionKind.DECODER_SELF:  # its position t reads the token before the one that it writes
        last = weights.shape[-1] - 1
        keys = ((0,), *(tuple({min(i + 1, last) for i in group}) for group in content_words(target)))
    queries = content_words(source if kind.side is Side.ENCODER else target)
    across = np.stack([weights[..., list(group)].sum(-1) for group in keys], -1)
    pooled = np.stack([across[:, :, list(group)].mean(-2) for group in queries], -2)
    pooled = pooled.reshape(-1, *pooled.shape[2:])
    return pooled / np.maximum(pooled.sum(-1, keepdims=True), np.finfo(np.float64).tiny)


def heads_alike(sentences: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """How alike each head of one model is to each of another, [heads, the other's heads], by the maps of both for some
    sentences, as between() gives them: a mean over all rows."""
    found = [similarity(one, np.ones(one.shape[1:], bool), other) for one, other in sentences]
    return np.average(found, axis=0, weights=[one.shape[1] for one, _ in sentences])


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Linear centred kernel alignment of states [n, d] and [n, e] of the same n things, at least 4: from unbiased
    estimates, so that few things in many dimensions look no more alike than they are (Kornblith et al. 2019; Song et
    al. 2012, equation 5). 1 for x and x Q with orthogonal Q; about 0 for what has nothing to do with each other."""
    x, y = x - x.mean(0), y - y.mean(0)
    return aligned([(x @ x.T, y @ y.T)])


def aligned(products: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """cka() of centred states' inner products [n, n], by either model, for some sentences: their estimates summed
    before they are divided (Nguyen et al. 2021, equation 3)."""
    both, one, other = (sum(_independence(pair[a], pair[b]) for pair in products) for a, b in ((0, 1), (0, 0), (1, 1)))
    return float(both / np.sqrt(one * other)) if one > 0 and other > 0 else 0.0


def _independence(k: np.ndarray, m: np.ndarray) -> float:
    n = len(k)
    k, m = (values * (1.0 - np.eye(n)) for values in (k, m))
    both = (k * m).sum() + k.sum() * m.sum() / ((n - 1) * (n - 2)) - 2 * k.sum(0) @ m.sum(1) / (n - 2)
    return float(both / (n * (n - 3)))


def assigned(values: np.ndarray) -> list[tuple[int, int]]:
    """Each row with a column of its own (or each column with a row), so that the sum of values [row, column] is the
    largest there is, best pairs first (Kuhn 1955; by shortest augmenting paths, Jonker and Volgenant 1987)."""
    flipped = values.shape[0] > values.shape[1]
    cost = -(values.T if flipped else values)
    rows, columns = cost.shape
    by_row, by_column = np.zeros(rows + 1), np.zeros(columns + 1)
    owner = np.zeros(columns + 1, int)  # the row of each column, from 1; column 0 holds the row that seeks one
    for row in range(1, rows + 1):
        owner[0], at = row, 0
        least, came, done = np.full(columns + 1, np.inf), np.zeros(columns + 1, int), np.zeros(columns + 1, bool)
        while owner[at]:
            done[at] = True
            reduced = cost[owner[at] - 1] - by_row[owner[at]] - by_column[1:]
            better = ~done[1:] & (reduced < least[1:])
            least[1:][better], came[1:][better] = reduced[better], at
            following = int(np.where(done, np.inf, least)[1:].argmin()) + 1
            step = least[following]
            by_row[owner[done]] += step
            by_column[done] -= step
            least[~done] -= step
            at = following
        while at:
            owner[at], at = owner[came[at]], came[at]
    pairs = [(int(owner[column]) - 1, column - 1) for column in range(1, columns + 1) if owner[column]]
    pairs = [(b, a) if flipped else (a, b) for a, b in pairs]
    return sorted(pairs, key=lambda pair: -values[pair])
