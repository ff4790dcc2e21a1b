"""Compare two models on the same sentences: their heads, their layers, and the probability of each word.

Tokenizers may differ, so maps and states are pooled to words first: maps are summed over the tokens of a key word and
averaged over those of a query word, states are averaged. compare_models() does all of it for one sentence;
row_similarity() compares the heads of two models with the same tokenizer over many sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.analysis.survey.batch import maps_and_lengths, run, similarity
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.maps import normalize_rows
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import spell_word
from attention_atlas.model.translator import Translator

MIN_WORDS = 4  # the unbiased estimate of kernel alignment is undefined below


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Two models on one sentence pair.

    words             of the target
    log_probability   float64 [2, words]: natural log-probability of each word (sum of its tokens) by either model
    head_similarity   kind -> float64 [heads, heads of the second model]: 1 minus the mean Jensen-Shannon divergence
                      of their rows, in bits
    layer_similarity  side -> debiased linear CKA [layers, layers of the second model]; empty unless both models are
                      Transformers, without a side that has fewer than MIN_WORDS words
    """

    words: tuple[str, ...]
    log_probability: np.ndarray
    head_similarity: dict[AttentionKind, np.ndarray]
    layer_similarity: dict[Side, np.ndarray]


def compare_models(
    first: tuple[Translator, TranslationTrace], second: tuple[Translator, TranslationTrace]
) -> ModelComparison:
    """Compare two models by their traces of the same source and target. Raises a Refusal if the traces have different
    numbers of words."""
    translators, traces = zip(first, second)
    groups = [[content_words(tokens) for tokens in (trace.source_tokens, trace.target_tokens)] for trace in traces]
    if any(len(a) != len(b) for a, b in zip(*groups)):
        raise Refusal("The two models split this sentence into different words.")
    head_similarity = {}
    for kind in traces[0].kinds:
        if kind in traces[1].kinds:
            maps = (pool_heads(t.maps(kind).weights, kind, t.source_tokens, t.target_tokens) for t in traces)
            head_similarity[kind] = compare_heads([tuple(maps)])
    layer_similarity = {}
    if all(isinstance(translator.model, Transformer) for translator in translators):
        outputs = [record_pass(translator, trace) for translator, trace in (first, second)]
        for side, index in ((Side.ENCODER, 0), (Side.DECODER, 1)):
            if len(groups[0][index]) < MIN_WORDS:
                continue
            states = []
            for output, word_groups in zip(outputs, groups):
                layers = (record.after[0].double().cpu().numpy() for record in output.layers(side))
                states.append([np.stack([s[list(g)].mean(0) for g in word_groups[index]]) for s in layers])
            layer_similarity[side] = np.array([[cka(a, b) for b in states[1]] for a in states[0]])
    return ModelComparison(
        tuple(spell_word(traces[0].target_tokens, group) for group in groups[0][1]),
        np.array([[t.log_probability[list(g)].sum() for g in words[1]] for t, words in zip(traces, groups)], float),
        head_similarity,
        layer_similarity,
    )


def pool_heads(weights: np.ndarray, kind: AttentionKind, source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    """Pool weights [layers, heads, query, key] to words, rows summing to 1: [layers * heads, query word, key word].

    target: y1 .. yT. A row of the decoder stands for the word that it writes. Symbols are left out, except the one
    that the decoder begins with.
    """
    weights, keys = weights.astype(np.float64), content_words(source)
    if kind is AttentionKind.DECODER_SELF:  # position t of the decoder reads the token before the one that it writes
        last = weights.shape[-1] - 1
        keys = ((0,), *(tuple({min(i + 1, last) for i in group}) for group in content_words(target)))
    queries = content_words(source if kind.side is Side.ENCODER else target)
    summed = np.stack([weights[..., list(group)].sum(-1) for group in keys], -1)
    pooled = np.stack([summed[:, :, list(group)].mean(-2) for group in queries], -2)
    return normalize_rows(pooled.reshape(-1, *pooled.shape[2:]))


def compare_heads(sentences: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the similarity of each head of one model to each head of another, [heads, heads of the second], as a mean
    over all rows. sentences: the maps of both models for each sentence, as from pool_heads()."""
    similarities = [similarity(first, np.ones(first.shape[1:], bool), second) for first, second in sentences]
    return np.average(similarities, axis=0, weights=[first.shape[1] for first, _ in sentences])


def can_compare_rows(first: Translator, second: Translator, direction: str) -> bool:
    """Return whether both models have the same vocabulary and the second translates the direction."""
    return direction in second.directions and first.tokenizer.pieces == second.tokenizer.pieces


def row_similarity(
    first: Translator, second: Translator, direction: str, texts: Sequence[str], kind: AttentionKind
) -> np.ndarray:
    """Return the similarity of each head of a kind to each head of the second model, float64 [layers * heads, heads of
    the second]: 1 minus the mean Jensen-Shannon divergence of their rows in bits.

    Both models are run on these texts with the first model's translations (can_compare_rows() must hold). Raises
    ValueError for a text that cannot be encoded.
    """
    traces, models = first.trace_batch(texts, direction), (first, second)
    ids = [t.source_ids for t in traces], [t.target_ids for t in traces]
    passes = [run(translator, *ids, slopes=False) for translator in models]
    maps = [maps_and_lengths(t.model, batch_pass.output, kind)[0] for t, batch_pass in zip(models, passes)]
    similarities = []
    for index in range(len(traces)):
        queries, keys = passes[0].axes(kind, index)
        a, b = (part[index, ..., :queries, :keys].reshape(-1, queries, keys) for part in maps)
        similarities.append(similarity(a, cells.allowed_cells(kind, queries, keys), b))
    return np.mean(similarities, axis=0)


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Return the linear centred kernel alignment of states [n, d] and [n, e] of the same n >= 4 words.

    Computed from unbiased estimates, so that few words in many dimensions do not look similar by chance (Kornblith et
    al. 2019; Song et al. 2012, equation 5). 1 for x and x Q with orthogonal Q; about 0 for independent states.
    """
    x, y = x - x.mean(0), y - y.mean(0)
    return cka_of_products([(x @ x.T, y @ y.T)])


def cka_of_products(products: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return cka() over several sentences, from the inner products [n, n] of each one's centred states in either model.
    The estimates are summed before they are divided (Nguyen et al. 2021, equation 3)."""

    def independence(k: np.ndarray, m: np.ndarray) -> float:
        n = len(k)
        k, m = (values * (1.0 - np.eye(n)) for values in (k, m))
        both = (k * m).sum() + k.sum() * m.sum() / ((n - 1) * (n - 2)) - 2 * k.sum(0) @ m.sum(1) / (n - 2)
        return float(both / (n * (n - 3)))

    joint, first, second = (
        sum(independence(pair[a], pair[b]) for pair in products) for a, b in ((0, 1), (0, 0), (1, 1))
    )
    return float(joint / np.sqrt(first * second)) if first > 0 and second > 0 else 0.0


def assign(values: np.ndarray) -> list[tuple[int, int]]:
    """Pair rows with columns one to one so that the sum of values [row, column] is largest; best pairs first.

    The Hungarian method (Kuhn 1955) with shortest augmenting paths (Jonker and Volgenant 1987).
    """
    is_flipped = values.shape[0] > values.shape[1]
    cost = -(values.T if is_flipped else values)
    rows, columns = cost.shape
    row_potential, column_potential = np.zeros(rows + 1), np.zeros(columns + 1)
    owner = np.zeros(columns + 1, int)  # the row of each column, from 1; column 0 holds the row to be placed
    for row in range(1, rows + 1):
        owner[0], column = row, 0
        distance, previous = np.full(columns + 1, np.inf), np.zeros(columns + 1, int)
        visited = np.zeros(columns + 1, bool)
        while owner[column]:
            visited[column] = True
            reduced = cost[owner[column] - 1] - row_potential[owner[column]] - column_potential[1:]
            is_shorter = ~visited[1:] & (reduced < distance[1:])
            distance[1:][is_shorter], previous[1:][is_shorter] = reduced[is_shorter], column
            nearest = int(np.where(visited, np.inf, distance)[1:].argmin()) + 1
            step = distance[nearest]
            row_potential[owner[visited]] += step
            column_potential[visited] -= step
            distance[~visited] -= step
            column = nearest
        while column:
            owner[column], column = owner[previous[column]], previous[column]
    pairs = [(int(owner[column]) - 1, column - 1) for column in range(1, columns + 1) if owner[column]]
    pairs = [(b, a) if is_flipped else (a, b) for a, b in pairs]
    return sorted(pairs, key=lambda pair: -values[pair])
