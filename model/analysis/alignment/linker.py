"""Links of sentences in pieces, by the heads that agree: what a survey asks where nobody linked words by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from model.analysis.alignment.choose import Voter, best_of_columns, best_of_rows, choose, score_maps, summed, voters
from model.analysis.alignment.words import Row, pieces
from model.trace.kinds import AttentionKind
from model.trace.scores import Groups
from model.trace.tokens import is_symbol
from model.trace.words import word_groups
from model.translator import Translator


def linker(translator: Translator, direction: str, texts: Sequence[str]
           ) -> Callable[[Sequence[str], Sequence[str], np.ndarray], np.ndarray]:
    """A function from source tokens, target tokens y1 .. and cross weights [layers, heads, query, key] to links, bool
    [target token, source token]: those on which rows and columns agree, of heads chosen on these texts with the model's
    own translations. ValueError for no text with words."""
    translated = translator.translate_batch(texts, direction)
    pairs = [(text.split(), found.split()) for text, found in zip(texts, translated) if text.split() and found.split()]
    maps = score_maps(translator, [pieces(translator, direction, *pair) for pair in pairs])
    plain = [voter for voter in voters(translator.model.num_layers[AttentionKind.CROSS], translator.config.num_heads)
             if not voter.by_length]
    chosen = choose(maps, None, among=plain).forward
    return lambda source, target, weights: links(source, target, weights, chosen)


def links(source: Sequence[str], target: Sequence[str], weights: np.ndarray, chosen: Sequence[Voter]) -> np.ndarray:
    """bool [target token, source token]; symbols have none."""
    rows, columns = (_words(tokens) for tokens in (target, source))
    found = np.zeros((len(target), len(source)), bool)
    if not rows or not columns:
        return found
    across = np.stack([weights[..., list(group)].sum(-1) for group in columns], -1)
    maps = {}
    for row in Row:
        at = [[min(i + (row is Row.READ), weights.shape[2] - 1) for i in group] for group in rows]
        own = np.stack([across[..., group, :].mean(-2) for group in at], -2)
        maps[row, False] = np.concatenate([own, np.zeros((*own.shape[:-1], 1))], -1)  # what symbols got is not asked
    scores = summed(maps, chosen)
    for word, other in best_of_rows(scores) & best_of_columns(scores):
        found[np.ix_(rows[other], columns[word])] = True
    return found


def _words(tokens: Sequence[str]) -> Groups:
    return tuple(group for group in word_groups(tokens) if not is_symbol(tokens[group[0]]))
