"""What links are read from: sums over pieces, lengths, contributions, each written out once more."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.alignment.sources import word_maps
from attention_atlas.model.analysis.why.contributions import decoder_contributions
from attention_atlas.model.trace.alignment.between import between_words, words_of
from attention_atlas.model.trace.alignment.voters import RowToken
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from tests.conftest import SENTENCES

CROSS = AttentionKind.CROSS


@pytest.fixture(scope="module", params=[(), ((CROSS, 1, 2),)], ids=["plain", "a head off"])
def trace(request, tiny_translator):
    return tiny_translator.translate(
        SENTENCES[0], "de-en", interventions=Interventions(heads_off=frozenset(request.param))
    )


@pytest.mark.parametrize("row", RowToken)
def test_maps_between_words_are_sums_of_columns_and_means_of_rows(trace, row):
    found = between_words(trace.cross.weights, trace.source_tokens, trace.target_tokens, row)
    for t, target in enumerate(words_of(trace.target_tokens)):
        for s, source in enumerate(words_of(trace.source_tokens)):
            rows = [min(i + (row is RowToken.READ), len(trace.decoder_ids) - 1) for i in target]
            expected = np.mean([trace.cross.weights[:, :, i, list(source)].sum(-1) for i in rows], 0)
            np.testing.assert_allclose(found[:, :, t, s], expected, atol=1e-6)


def test_lengths_are_those_of_each_heads_vectors_written_out(trace, tiny_translator):
    output = tiny_translator.inspect(trace.source_ids, trace.target_ids, interventions=trace.interventions)
    found = word_maps(tiny_translator, trace)[RowToken.READ].by_length
    for layer, record in enumerate(output.records(CROSS)):
        attention = tiny_translator.model.attention(CROSS, layer)
        size = attention.output.weight.shape[1] // attention.num_heads
        for head in range(attention.num_heads):
            columns = attention.output.weight[:, head * size : (head + 1) * size].detach()
            vectors = record.attention(CROSS).values[0, head] @ columns.T  # [key, d_model]
            scaled = trace.cross.weights[layer, head] * torch.linalg.vector_norm(vectors, dim=-1).detach().numpy()
            shares = scaled / scaled.sum(-1, keepdims=True)
            expected = between_words(shares, trace.source_tokens, trace.target_tokens, RowToken.READ)
            np.testing.assert_allclose(found[layer, head], expected, atol=1e-5)


def test_contributions_are_the_blocks_own(trace, tiny_translator):
    output = tiny_translator.inspect(trace.source_ids, trace.target_ids, interventions=trace.interventions)
    _, shares = decoder_contributions(tiny_translator.model, output)
    for row, maps in word_maps(tiny_translator, trace).items():
        expected = between_words(shares, trace.source_tokens, trace.target_tokens, row)
        np.testing.assert_allclose(maps.contributions, expected, atol=1e-12)
        assert (maps.contributions.sum(-1) < 1).all()  # the residual connection's share, and what symbols got
