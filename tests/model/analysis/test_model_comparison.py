"""Comparisons of two models: kernel alignment, assignment (scipy), and models with permuted heads."""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from attention_atlas.model.analysis.model_comparison import (
    assign,
    can_compare_rows,
    cka,
    cka_of_products,
    compare_models,
    row_similarity,
)
from attention_atlas.model.analysis.survey.batch import similarity
from attention_atlas.model.analysis.survey.corpus import Corpus
from attention_atlas.model.analysis.survey.run import SurveyRun
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.survey.survey import comparable_statistics, head_distances, match_heads
from tests.conftest import SENTENCES

ORDER = (2, 0, 3, 1)  # head i of the permuted model is head ORDER[i] of the original


@pytest.fixture(scope="module")
def permuted(tiny_translator):
    """The tiny translator with its heads in another order: the same function."""
    translator = copy(tiny_translator)
    translator.model, translator.digest = deepcopy(tiny_translator.model), "1" * 16
    size = translator.config.d_model // translator.config.num_heads
    rows = torch.cat([torch.arange(head * size, (head + 1) * size) for head in ORDER])
    with torch.no_grad():
        for kind, layers in translator.model.num_layers.items():
            for layer in range(layers):
                attention = translator.model.attention(kind, layer)
                attention.output.weight.copy_(attention.output.weight[:, rows])
                all_rows = torch.cat([rows + part * len(rows) for part in range(3)])  # of queries, keys and values
                for parameter in attention.projection.parameters():
                    parameter.copy_(parameter[all_rows])
    return translator


def test_cka_is_1_for_rotations_and_0_for_noise():
    random = np.random.default_rng(0)
    x = random.normal(size=(12, 30))
    rotation = np.linalg.qr(random.normal(size=(30, 30)))[0]
    assert cka(x, x @ rotation) == pytest.approx(1.0) == cka(x, 3 * x + 5)
    noise = [cka(random.normal(size=(12, 30)), random.normal(size=(12, 40))) for _ in range(200)]
    assert abs(np.mean(noise)) < 0.05, "the estimate is biased"
    assert cka(x, x @ rotation + random.normal(size=x.shape)) < 0.95


def test_cka_over_sentences_is_1_for_rescaled_states_and_0_for_noise():
    random = np.random.default_rng(0)

    def products(width: int) -> list[np.ndarray]:
        return [c @ c.T for c in (x - x.mean(0) for x in random.normal(size=(6, 5, width)))]

    x = products(30)
    assert cka_of_products([*zip(x, x)]) == pytest.approx(1.0) == cka_of_products([*zip(x, [3 * p for p in x])])
    noise = [cka_of_products([*zip(products(30), products(40))]) for _ in range(200)]
    assert abs(np.mean(noise)) < 0.03 and np.std(noise) < 0.2  # for one sentence of five words: twice as much


@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (4, 9), (9, 4), (32, 32)])
def test_assignment_equals_scipys(shape):
    values = np.random.default_rng(sum(shape)).random(shape)
    pairs = assign(values)
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs) == min(shape)
    assert sum(values[pair] for pair in pairs) == pytest.approx(values[linear_sum_assignment(-values)].sum())
    assert [values[pair] for pair in pairs] == sorted((values[pair] for pair in pairs), reverse=True)


def test_a_model_equals_itself_and_a_permuted_copy(tiny_translator, permuted):
    trace = tiny_translator.trace(SENTENCES[0], target=SENTENCES[1])
    same = compare_models((tiny_translator, trace), (tiny_translator, trace))
    assert same.log_probability[0] == pytest.approx(same.log_probability[1])
    for kind in trace.kinds:
        assert assign(same.head_similarity[kind])[0] == (0, 0) or same.head_similarity[
            kind
        ].diagonal() == pytest.approx(1.0)
        assert {a == b for a, b in assign(same.head_similarity[kind])} == {True}
    for side in Side:
        assert np.diag(same.layer_similarity[side]) == pytest.approx(1.0)
    assert sum(same.log_probability[0]) == pytest.approx(trace.log_probability[:-1].sum(), abs=1e-4)
    permuted_trace = permuted.trace(SENTENCES[0], target=SENTENCES[1])
    comparison = compare_models((tiny_translator, trace), (permuted, permuted_trace))
    partners = dict(assign(comparison.head_similarity[AttentionKind.ENCODER_SELF]))
    assert [partners[head] for head in range(4)] == [ORDER.index(head) for head in range(4)]
    assert comparison.log_probability[0] == pytest.approx(comparison.log_probability[1], abs=1e-4)


def test_traces_with_different_words_are_refused(tiny_translator):
    first, second = (tiny_translator.trace(SENTENCES[0], target=text) for text in (SENTENCES[1], "One two"))
    with pytest.raises(Refusal, match="different words"):
        compare_models((tiny_translator, first), (tiny_translator, second))


def test_statistics_of_surveys_match_permuted_heads(tiny_translator, permuted):
    corpus = Corpus("few", lambda: ((line, "") for line in SENTENCES[0:10:2]), own=True)
    runs = [SurveyRun(translator, "de-en", corpus) for translator in (tiny_translator, permuted)]
    first, second = (run.result(run.work()).kinds for run in runs)
    for kind, survey in first.items():
        apart = head_distances(survey, second[kind])
        names = comparable_statistics(survey, second[kind])
        both = np.stack(
            [np.concatenate([s.statistics[name].value.reshape(-1) for s in (survey, second[kind])]) for name in names],
            -1,
        )
        scaled = (both - both.mean(0)) / both.std(0)
        heads = len(survey.similarity)
        np.testing.assert_allclose(apart, cdist(scaled[:heads], scaled[heads:]) / np.sqrt(len(names)), atol=1e-6)
        for pair in match_heads(apart):
            layer, head = divmod(pair.head, 4)
            assert pair.other == layer * 4 + ORDER.index(head) and pair.mutual and pair.distance < 1e-3
            assert pair.nearness == pytest.approx(1, abs=1e-3)
    pairs = match_heads(np.array([[1.0, 4.0], [3.0, 4.0]]))
    assert [(pair.head, pair.other, pair.mutual, pair.nearness) for pair in pairs] == [
        (0, 0, True, 1 - 1 / 3),
        (1, 0, False, 0.0),
    ]


def test_rows_match_permuted_heads(tiny_translator, permuted):
    assert can_compare_rows(tiny_translator, permuted, "de-en")
    assert not can_compare_rows(tiny_translator, permuted, "fr-en")
    for kind, layers in tiny_translator.model.num_layers.items():
        values = row_similarity(tiny_translator, permuted, "de-en", SENTENCES[0:6:2], kind)
        partners = [layer * 4 + ORDER.index(head) for layer in range(layers) for head in range(4)]
        np.testing.assert_array_equal(values.argmax(1), partners)
        np.testing.assert_allclose(values[np.arange(len(partners)), partners], 1, atol=1e-5)


def test_similarity_to_other_maps_equals_similarity_among_all():
    random = np.random.default_rng(2)
    weights = np.tril(random.dirichlet(np.ones(6), (5, 6)))
    weights /= weights.sum(-1, keepdims=True)
    allowed = np.tri(6, dtype=bool)
    together = similarity(weights, allowed)
    np.testing.assert_allclose(similarity(weights[:2], allowed, weights[2:]), together[:2, 2:], atol=1e-12)
    np.testing.assert_allclose(np.diag(similarity(weights, allowed, weights)), 1, atol=1e-12)
    assert similarity(weights, np.eye(6, dtype=bool), weights[:3]).shape == (5, 3)  # no row has a choice
