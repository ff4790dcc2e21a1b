"""Links of sentences in pieces, by the heads that agree: what a survey asks where nobody linked words by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from attention_atlas.model.analysis.alignment.choose import (
    Maps,
    best_of_columns,
    best_of_rows,
    choose,
    score_maps,
    summed,
    voters,
)
from attention_atlas.model.analysis.alignment.words import pieces
from attention_atlas.model.trace.alignment.between import between_words, words_of
from attention_atlas.model.trace.alignment.voters import RowToken, Voter
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator

Linker = Callable[[Sequence[str], Sequence[str], np.ndarray], np.ndarray]


def linking_heads(translator: Translator, direction: str, texts: Sequence[str]) -> tuple[Voter, ...]:
    """The heads on whose rows and columns agree most, on these texts with the model's own translations. None where
    neither has words."""
    return best_linking(translator, linking_maps(translator, direction, texts))


def linking_maps(translator: Translator, direction: str, texts: Sequence[str]) -> Maps:
    """The scores by which heads are chosen, of each text that has words, with its translation."""
    translated = translator.translate_batch(texts, direction)
    pairs = [(text.split(), found.split()) for text, found in zip(texts, translated) if text.split() and found.split()]
    return score_maps(translator, [pieces(translator, direction, *pair) for pair in pairs])


def best_linking(translator: Translator, maps: Maps) -> tuple[Voter, ...]:
    """The heads that linking_heads() chooses, by linking_maps()."""
    if not maps:
        return ()
    model = translator.model
    plain = [
        voter
        for voter in voters(model.num_layers[AttentionKind.CROSS], model.num_heads[AttentionKind.CROSS])
        if not voter.by_length
    ]
    return choose(maps, None, among=plain).forward


def linker(chosen: Sequence[Voter]) -> Linker:
    """A function from source tokens, target tokens y1 .. and cross weights [layers, heads, query, key] to links, bool
    [target token, source token]: those on which rows and columns of the chosen heads agree."""
    return lambda source, target, weights: links(source, target, weights, chosen)


def links(source: Sequence[str], target: Sequence[str], weights: np.ndarray, chosen: Sequence[Voter]) -> np.ndarray:
    """bool [target token, source token]; symbols have none."""
    rows, columns = words_of(target), words_of(source)
    found = np.zeros((len(target), len(source)), bool)
    if not rows or not columns:
        return found
    maps = {}
    for row in RowToken:
        own = between_words(weights, source, target, row)
        maps[row, False] = np.concatenate([own, np.zeros((*own.shape[:-1], 1))], -1)  # what symbols got is not asked
    scores = summed(maps, chosen)
    for word, other in best_of_rows(scores) & best_of_columns(scores):
        found[np.ix_(rows[other], columns[word])] = True
    return found
