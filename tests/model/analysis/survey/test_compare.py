"""Heads of two models: of a model and the same one with its heads in another order, each finds itself."""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from attention_atlas.model.analysis.survey.batch import similarity
from attention_atlas.model.analysis.survey.compare import comparable, same_rows
from attention_atlas.model.analysis.survey.corpus import Corpus
from attention_atlas.model.analysis.survey.run import SurveyRun
from attention_atlas.model.trace.survey.survey import compared, distances, match
from tests.conftest import SENTENCES

ORDER = (2, 0, 3, 1)  # head i of the other model is head ORDER[i] of the first
TEXTS = SENTENCES[0:6:2]


@pytest.fixture(scope="module")
def turned(tiny_translator):
    """The tiny translator with its heads in another order: the same function."""
    other = copy(tiny_translator)
    other.model, other.digest = deepcopy(tiny_translator.model), "1" * 16
    size = other.config.d_model // other.config.num_heads
    rows = torch.cat([torch.arange(head * size, (head + 1) * size) for head in ORDER])
    with torch.no_grad():
        for kind, layers in other.model.num_layers.items():
            for layer in range(layers):
                attention = other.model.attention(kind, layer)
                attention.output.weight.copy_(attention.output.weight[:, rows])
                three = torch.cat([rows + part * len(rows) for part in range(3)])  # of queries, keys and values
                for parameter in attention.projection.parameters():
                    parameter.copy_(parameter[three])
    return other


def survey(translator):
    return SurveyRun(translator, "de-en", Corpus("few", lambda: ((line, "") for line in SENTENCES[0:10:2]), own=True))


def test_every_head_finds_itself_by_its_statistics(tiny_translator, turned):
    one, two = (run.result(run.work()).kinds for run in map(survey, (tiny_translator, turned)))
    for kind, k in one.items():
        apart = distances(k, two[kind])
        names = compared(k, two[kind])
        both = np.stack(
            [np.concatenate([found.statistics[name].value.reshape(-1) for found in (k, two[kind])]) for name in names],
            -1,
        )
        scaled = (both - both.mean(0)) / both.std(0)
        heads = len(k.similarity)
        np.testing.assert_allclose(apart, cdist(scaled[:heads], scaled[heads:]) / np.sqrt(len(names)), atol=1e-6)
        for pair in match(apart):
            layer, head = divmod(pair.head, 4)
            assert pair.other == layer * 4 + ORDER.index(head) and pair.mutual and pair.distance < 1e-3
            assert pair.nearness == pytest.approx(1, abs=1e-3)
    there = match(np.array([[1.0, 4.0], [3.0, 4.0]]))
    assert [(pair.head, pair.other, pair.mutual, pair.nearness) for pair in there] == [
        (0, 0, True, 1 - 1 / 3),
        (1, 0, False, 0.0),
    ]


def test_every_head_finds_itself_by_its_rows(tiny_translator, turned):
    assert comparable(tiny_translator, turned, "de-en") and not comparable(tiny_translator, turned, "fr-en")
    found = same_rows(tiny_translator, turned, "de-en", TEXTS)
    assert set(found) == set(tiny_translator.model.num_layers)
    for kind, values in found.items():
        layers = tiny_translator.model.num_layers[kind]
        own = [layer * 4 + ORDER.index(head) for layer in range(layers) for head in range(4)]
        np.testing.assert_array_equal(values.argmax(1), own)
        np.testing.assert_allclose(values[np.arange(len(own)), own], 1, atol=1e-5)


def test_maps_beside_others_are_as_alike_as_among_themselves():
    random = np.random.default_rng(2)
    weights = np.tril(random.dirichlet(np.ones(6), (5, 6)))
    weights /= weights.sum(-1, keepdims=True)
    allowed = np.tri(6, dtype=bool)
    together = similarity(weights, allowed)
    np.testing.assert_allclose(similarity(weights[:2], allowed, weights[2:]), together[:2, 2:], atol=1e-12)
    np.testing.assert_allclose(np.diag(similarity(weights, allowed, weights)), 1, atol=1e-12)
    assert similarity(weights, np.eye(6, dtype=bool), weights[:3]).shape == (5, 3)  # no row has a choice
