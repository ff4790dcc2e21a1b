"""Read word links off a model's cross-attention, where no hand-made links exist.

links() uses heads chosen by agreement (choose.py); glosses() turns the links into words for the page; word_maps()
gives the maps between words from which the page reads links of single heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
from attention_atlas.model.analysis.survey.batch import value_lengths
from attention_atlas.model.analysis.why.contributions import decoder_contributions
from attention_atlas.model.trace.alignment import RowToken, Voter, content_words, to_word_maps
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE
from attention_atlas.model.translator import Translator

CROSS = AttentionKind.CROSS
Linker = Callable[[Sequence[str], Sequence[str], np.ndarray], np.ndarray]


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


def linker(heads: Sequence[Voter]) -> Linker:
    """Return links() for these heads, as a function of source tokens, target tokens and weights."""
    return lambda source, target, weights: links(source, target, weights, heads)


def links(source: Sequence[str], target: Sequence[str], weights: np.ndarray, heads: Sequence[Voter]) -> np.ndarray:
    """Return the links on which rows and columns of the heads agree, bool [target token, source token].

    target: y1 .. yT; weights: cross-attention [layers, heads, query, key]. Symbols have no links.
    """
    target_words, source_words = content_words(target), content_words(source)
    linked = np.zeros((len(target), len(source)), bool)
    if not target_words or not source_words:
        return linked
    maps = {(row, False): _add_column(to_word_maps(weights, source, target, row)) for row in RowToken}
    scores = sum_heads(maps, heads)
    for source_word, target_word in link_by_rows(scores) & link_by_columns(scores):
        linked[np.ix_(target_words[target_word], source_words[source_word])] = True
    return linked


def _add_column(maps: np.ndarray) -> np.ndarray:
    """Append an empty column of symbols, which sum_heads() leaves out."""
    return np.concatenate([maps, np.zeros((*maps.shape[:-1], 1))], -1)


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
    texts = ["".join(tokens[i] for i in group).replace(SPACE, "") for group in groups]
    return [" ".join(text for text, group in zip(texts, groups) if row[group[0]]) for row in linked]


@dataclass(frozen=True, eq=False)
class WordMaps:
    """The cross-attention of one sentence between words, float64, with one row convention.

    weights        [layers, heads, target word, source word]
    by_length      of the same shape: weights times the lengths of the values (Kobayashi et al. 2020), as shares of a
                   row
    contributions  [layers, target word, source word]: ALTI's shares of the output of each layer's cross-attention
                   block (Ferrando et al. 2022); a row sums to less than 1 because the residual connection has a share
    """

    weights: np.ndarray
    by_length: np.ndarray
    contributions: np.ndarray


def word_maps(translator: Translator, trace: TranslationTrace) -> dict[RowToken, WordMaps]:
    """Compute the maps between words for both row conventions, in one recorded pass. The trace must have words on
    both sides."""
    output = record_pass(translator, trace)
    weights = trace.maps(CROSS).weights.astype(np.float64)
    lengths = np.stack(
        [
            value_lengths(translator.model.attention(CROSS, i), layer.attention(CROSS))[0].cpu().double().numpy()
            for i, layer in enumerate(output.records(CROSS))
        ]
    )  # [layers, heads, key]
    scaled = weights * lengths[:, :, None]
    scaled /= np.maximum(scaled.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
    _, shares = decoder_contributions(translator.model, output)
    return {
        row: WordMaps(
            *(to_word_maps(maps, trace.source_tokens, trace.target_tokens, row) for maps in (weights, scaled, shares))
        )
        for row in RowToken
    }


def mean_map(maps: dict[RowToken, WordMaps], heads: Sequence[Voter]) -> np.ndarray:
    """Average the heads' maps, rows normalised to 1: [target word, source word]."""
    by_voter = {
        (row, by_length): _add_column(word_map.by_length if by_length else word_map.weights)
        for row, word_map in maps.items()
        for by_length in (False, True)
    }
    return sum_heads(by_voter, heads) / len(heads)


def every_head(maps: dict[RowToken, WordMaps]) -> Iterator[tuple[Voter, np.ndarray]]:
    """Yield every voter with its map [target word, source word]."""
    for row, word_map in maps.items():
        for by_length, values in ((False, word_map.weights), (True, word_map.by_length)):
            for layer, head in np.ndindex(values.shape[:2]):
                yield Voter(layer, head, row, by_length), values[layer, head]
