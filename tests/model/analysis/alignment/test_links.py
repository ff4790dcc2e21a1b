"""Links of tokens by agreeing heads, glosses, and maps between words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.alignment.links import find_linking_heads, glosses, links, word_maps
from attention_atlas.model.analysis.why.contributions import alti_contributions
from attention_atlas.model.trace.alignment import RowToken, Voter, content_words, to_word_maps
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.tokens import Token, TokenKind
from tests.conftest import SENTENCES

CROSS = AttentionKind.CROSS
BEGIN, END = Token("<2en>", TokenKind.SYMBOL), Token("</s>", TokenKind.SYMBOL)


@pytest.fixture(scope="module", params=[(), ((CROSS, 1, 2),)], ids=["plain", "a head off"])
def trace(request, tiny_translator):
    return tiny_translator.translate(SENTENCES[0], "de-en", interventions=Interventions(heads_off=request.param))


def test_words_on_which_rows_and_columns_agree_are_linked_token_by_token():
    source = (BEGIN, Token("\u2581ro"), Token("tes"), Token("\u2581Boot"), END)
    target = (Token("\u2581boat"), Token("\u2581re"), Token("d"), END)
    weights = np.full((1, 1, 4, 5), 0.01)
    weights[0, 0, 1, 3] = 0.9  # the row that reads "boat"
    weights[0, 0, 2, 1] = weights[0, 0, 3, 2] = 0.8  # the rows that read "re" and "d"
    weights[0, 0, 0, 4] = 0.9
    head = [Voter(0, 0, RowToken.READ, False)]
    expected = np.zeros((4, 5), bool)
    expected[0, 3] = True
    expected[1:3, 1:3] = True
    np.testing.assert_array_equal(links(source, target, weights, head), expected)
    assert not links((BEGIN, END), target, weights[..., :2], head).any()


def test_a_model_links_its_own_translations(tiny_translator):
    heads = find_linking_heads(tiny_translator, "de-en", SENTENCES[0:4:2])
    trace = tiny_translator.translate(SENTENCES[0], "de-en")
    linked = links(trace.source_tokens, trace.target_tokens, trace.cross.weights, heads)
    assert linked.shape == (len(trace.target_tokens), len(trace.source_tokens))
    assert not linked[:, 0].any() and not linked[:, -1].any() and linked.any()


def test_glosses_are_the_linked_words(shipped_translators):
    """With heads of the survey they equal links(), token by token; without a survey all heads link."""
    for translator in shipped_translators.all:
        for direction in translator.directions:
            text = {"de": "Der alte Mann hat keine Zeit.", "en": "The old man has no time."}[direction[:2]]
            trace = translator.translate(text, direction)
            survey = translator.survey.directions.get(direction) if translator.survey else None
            source, target = glosses(trace, survey.linked_by if survey else ())
            assert (len(source), len(target)) == (len(trace.source_tokens), len(trace.target_tokens))
            assert source[0] == source[-1] == target[-1] == ""  # symbols
            expected = {"de-en": ("old", "man"), "en-de": ("alte", "Mann"), "en-fr": ("vieil", "homme")}[direction]
            assert set(expected) <= set(source), dict(zip(trace.source_tokens, source))
            if survey and survey.linked_by:
                linked = links(trace.source_tokens, trace.target_tokens, trace.cross.weights, survey.linked_by)
                assert [bool(text) for text in source] == linked.any(0).tolist()
                assert [bool(text) for text in target] == linked.any(1).tolist()


@pytest.mark.parametrize("row", RowToken)
def test_maps_between_words_are_sums_of_columns_and_means_of_rows(trace, row):
    pooled = to_word_maps(trace.cross.weights, trace.source_tokens, trace.target_tokens, row)
    for t, target in enumerate(content_words(trace.target_tokens)):
        for s, source in enumerate(content_words(trace.source_tokens)):
            rows = [min(i + (row is RowToken.READ), len(trace.decoder_ids) - 1) for i in target]
            expected = np.mean([trace.cross.weights[:, :, i, list(source)].sum(-1) for i in rows], 0)
            np.testing.assert_allclose(pooled[:, :, t, s], expected, atol=1e-6)


def test_by_length_scales_weights_by_the_lengths_of_the_values(trace, tiny_translator):
    output = tiny_translator.inspect(trace, interventions=trace.interventions)
    by_length = word_maps(tiny_translator, trace)[0][RowToken.READ, True]
    for layer, record in enumerate(output.records(CROSS)):
        attention = tiny_translator.model.attention(CROSS, layer)
        size = attention.output.weight.shape[1] // attention.num_heads
        for head in range(attention.num_heads):
            columns = attention.output.weight[:, head * size : (head + 1) * size].detach()
            vectors = record.attention(CROSS).values[0, head] @ columns.T  # [key, d_model]
            scaled = trace.cross.weights[layer, head] * torch.linalg.vector_norm(vectors, dim=-1).detach().numpy()
            shares = scaled / scaled.sum(-1, keepdims=True)
            expected = to_word_maps(shares, trace.source_tokens, trace.target_tokens, RowToken.READ)
            np.testing.assert_allclose(by_length[layer, head], expected, atol=1e-5)


def test_contributions_are_those_of_the_blocks(trace, tiny_translator):
    output = tiny_translator.inspect(trace, interventions=trace.interventions)
    shares = alti_contributions(tiny_translator.model, output, CROSS)
    for row, contributions in word_maps(tiny_translator, trace)[1].items():
        expected = to_word_maps(shares, trace.source_tokens, trace.target_tokens, row)
        np.testing.assert_allclose(contributions, expected, atol=1e-12)
        assert (contributions.sum(-1) < 1).all()  # the residual connection and symbols have a share
