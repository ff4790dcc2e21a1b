"""What links of one sentence may be read from: weights, weights by the lengths of values, contributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.again import recorded
from attention_atlas.model.analysis.alignment.choose import summed
from attention_atlas.model.analysis.survey.batch import lengths_of_values
from attention_atlas.model.analysis.why.contributions import decoder_contributions
from attention_atlas.model.trace.alignment.between import between_words
from attention_atlas.model.trace.alignment.voters import RowToken, Voter
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator

CROSS = AttentionKind.CROSS


@dataclass(frozen=True, eq=False)
class WordMaps:
    """A sentence's cross-attention between words, float64, all of one row convention. weights, by_length: [layers,
    heads, target word, source word], the second by the lengths of weight times value (Kobayashi et al. 2020), as shares
    of a row; contributions: [layers, target word, source word], ALTI's shares of what each layer's block puts out
    (Ferrando et al. 2022), which lack the residual connection's."""

    weights: np.ndarray
    by_length: np.ndarray
    contributions: np.ndarray


def word_maps(translator: Translator, trace: TranslationTrace) -> dict[RowToken, WordMaps]:
    """By row convention, in one recorded pass. The trace must have words on both sides."""
    output = recorded(translator, trace)
    weights = trace.maps(CROSS).weights.astype(np.float64)
    lengths = np.stack(
        [
            lengths_of_values(translator.model.attention(CROSS, index), layer.attention(CROSS))[0]
            .cpu()
            .double()
            .numpy()
            for index, layer in enumerate(output.records(CROSS))
        ]
    )  # [layers, heads, key]
    scaled = weights * lengths[:, :, None]
    scaled /= np.maximum(scaled.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
    _, shares = decoder_contributions(translator.model, output)
    return {
        row: WordMaps(
            *(between_words(maps, trace.source_tokens, trace.target_tokens, row) for maps in (weights, scaled, shares))
        )
        for row in RowToken
    }


def chosen_map(maps: dict[RowToken, WordMaps], chosen: Sequence[Voter]) -> np.ndarray:
    """[target word, source word]: the mean of the chosen heads' rows, each read by its own row and made to sum to 1."""
    found = {
        (row, by_length): _with_none(one.by_length if by_length else one.weights)
        for row, one in maps.items()
        for by_length in (False, True)
    }
    return summed(found, chosen) / len(chosen)


def _with_none(maps: np.ndarray) -> np.ndarray:
    # summed() leaves the last column out: what symbols got.
    return np.concatenate([maps, np.zeros((*maps.shape[:-1], 1))], -1)


def every_head(maps: dict[RowToken, WordMaps]) -> Iterator[tuple[Voter, np.ndarray]]:
    """Each head read in each way, and its map [target word, source word]."""
    for row, one in maps.items():
        for by_length, values in ((False, one.weights), (True, one.by_length)):
            for layer, head in np.ndindex(values.shape[:2]):
                yield Voter(layer, head, row, by_length), values[layer, head]
