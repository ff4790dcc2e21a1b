"""Read word links off a model's cross-attention, where no hand-made links exist.

links() uses heads chosen by agreement (choose.py); glosses() turns the links into words for the page; word_maps()
gives the maps between words from which the page reads links of single heads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.analysis.alignment.choose import (
    SentenceMaps,
    all_voters,
    choose_heads,
    encode_words,
    link_by_columns,
    link_by_rows,
    score_maps,
    sum_heads,
)
from attention_atlas.model.analysis.rerun import record_pass
from attention_atlas.model.analysis.survey.batch import maps_and_lengths
from attention_atlas.model.analysis.why.contributions import alti_contributions
from attention_atlas.model.trace.alignment import RowToken, Voter, content_words, to_word_maps
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import normalize_rows
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import spell_word
from attention_atlas.model.translator import Translator

CROSS = AttentionKind.CROSS


def find_linking_heads(translator: Translator, direction: str, texts: Sequence[str]) -> tuple[Voter, ...]:
    """Return the heads whose rows and columns agree most on these texts with the model's own translations; none if
    no text or translation has words."""
    return choose_linking_heads(translator, linking_maps(translator, direction, texts))


def linking_maps(translator: Translator, direction: str, texts: Sequence[str]) -> list[SentenceMaps]:
    """Translate texts and return the maps from which heads are chosen, one for each text that has words."""
    translations = translator.translate_batch(texts, direction)
    pairs = [(a.split(), b.split()) for a, b in zip(texts, translations) if a.split() and b.split()]
    return score_maps(translator, [encode_words(translator, direction, *pair) for pair in pairs])


def choose_linking_heads(translator: Translator, maps: Sequence[SentenceMaps]) -> tuple[Voter, ...]:
    """Choose heads from linking_maps(); none if there are no maps."""
    if not maps:
        return ()
    voters = all_voters(translator.model.num_layers[CROSS], translator.model.num_heads[CROSS])
    return choose_heads(maps, None, among=[voter for voter in voters if not voter.by_length]).forward


def links(source: Sequence[str], target: Sequence[str], weights: np.ndarray, heads: Sequence[Voter]) -> np.ndarray:
    """Return the links on which rows and columns of the heads agree, bool [target token, source token].

    target: y1 .. yT; weights: cross-attention [layers, heads, query, key]. Symbols have no links.
    """
    target_words, source_words = content_words(target), content_words(source)
    linked = np.zeros((len(target), len(source)), bool)
    if not target_words or not source_words:
        return linked
    maps = {(row, False): to_word_maps(weights, source, target, row) for row in RowToken}
    scores = sum_heads(maps, heads)
    for source_word, target_word in link_by_rows(scores) & link_by_columns(scores):
        linked[np.ix_(target_words[target_word], source_words[source_word])] = True
    return linked


def glosses(trace: TranslationTrace, heads: Sequence[Voter] = ()) -> tuple[list[str], list[str]]:
    """Return the linked words of each source token and each target token y1 .., "" where a token has no link.

    heads: those chosen by a survey. Without them, all heads of the cross-attention vote, each row standing for the
    token it reads, or the alignment of a recurrent network, whose rows stand for the token they write.
    """
    kind = CROSS if CROSS in trace.kinds else AttentionKind.ALIGNMENT
    weights, source, target = trace.maps(kind).weights, trace.source_tokens, trace.target_tokens
    row = RowToken.READ if kind is CROSS else RowToken.PREDICTED
    voters = heads or [Voter(layer, head, row, False) for layer, head in np.ndindex(*weights.shape[:2])]
    linked = links(source, target, weights, voters)
    return _linked_words(target, linked.T), _linked_words(source, linked)


def _linked_words(tokens: Sequence[str], linked: np.ndarray) -> list[str]:
    """Join the words of `tokens` that each row of linked, bool [row, token], is linked to."""
    groups = content_words(tokens)
    texts = [spell_word(tokens, group) for group in groups]
    return [" ".join(text for text, group in zip(texts, groups) if row[group[0]]) for row in linked]


def word_maps(translator: Translator, trace: TranslationTrace) -> tuple[SentenceMaps, dict[RowToken, np.ndarray]]:
    """Compute the cross-attention between words in one recorded pass. The trace must have words on both sides.

    Return the maps of all heads, where those by length are shares of a row (Kobayashi et al. 2020), and the
    contributions, row convention -> float64 [layers, target word, source word]: ALTI's shares of the output of each
    layer's cross-attention block (Ferrando et al. 2022). A row of these sums to less than 1 because the residual
    connection has a share.
    """
    output = record_pass(translator, trace)
    weights = trace.maps(CROSS).weights.astype(np.float64)
    _, lengths = maps_and_lengths(translator.model, output, CROSS)
    scaled = normalize_rows(weights * lengths[0, :, :, None].astype(np.float64))
    shares = alti_contributions(translator.model, output, CROSS)
    tokens = trace.source_tokens, trace.target_tokens
    maps = {
        (row, by_length): to_word_maps(values, *tokens, row)
        for row in RowToken
        for by_length, values in ((False, weights), (True, scaled))
    }
    return maps, {row: to_word_maps(shares, *tokens, row) for row in RowToken}
