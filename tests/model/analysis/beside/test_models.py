"""Two models on one sentence: kernel alignment's known values, scipy's assignment, and a model beside itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from attention_atlas.model.analysis.beside.models import aligned, assigned, cka, twins
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES


def test_cka_knows_a_rotation_and_sees_nothing_in_noise():
    random = np.random.default_rng(0)
    x = random.normal(size=(12, 30))
    rotation = np.linalg.qr(random.normal(size=(30, 30)))[0]
    assert cka(x, x @ rotation) == pytest.approx(1.0) == cka(x, 3 * x + 5)
    noise = [cka(random.normal(size=(12, 30)), random.normal(size=(12, 40))) for _ in range(200)]
    assert abs(np.mean(noise)) < 0.05, "few things in many dimensions look alike: it is biased"
    assert cka(x, x @ rotation + random.normal(size=x.shape)) < 0.95


def test_sentences_together_are_no_more_alike_than_chance_has_it():
    random = np.random.default_rng(0)

    def products(width: int) -> list[np.ndarray]:
        return [c @ c.T for c in (x - x.mean(0) for x in random.normal(size=(6, 5, width)))]

    x = products(30)
    assert aligned([*zip(x, x)]) == pytest.approx(1.0) == aligned([*zip(x, (3 * one for one in x))])
    noise = [aligned([*zip(products(30), products(40))]) for _ in range(200)]
    assert abs(np.mean(noise)) < 0.03 and np.std(noise) < 0.2  # of one sentence of five words it is twice that


@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (4, 9), (9, 4), (32, 32)])
def test_heads_are_assigned_as_by_scipy(shape):
    values = np.random.default_rng(sum(shape)).random(shape)
    pairs = assigned(values)
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs) == min(shape)
    assert sum(values[pair] for pair in pairs) == pytest.approx(values[linear_sum_assignment(-values)].sum())
    assert [values[pair] for pair in pairs] == sorted((values[pair] for pair in pairs), reverse=True)


def test_a_model_beside_itself_and_beside_a_shuffled_one(tiny_checkpoint, tiny_translator):
    trace = tiny_translator.trace(SENTENCES[0], target=SENTENCES[1])
    same = twins((tiny_translator, trace), (tiny_translator, trace))
    assert same.log_probability[0] == pytest.approx(same.log_probability[1])
    for kind in trace.kinds:
        assert same.pairs[kind][0] == (0, 0) or same.alike[kind].diagonal() == pytest.approx(1.0)
        assert {a == b for a, b in same.pairs[kind]} == {True}
    for side in Side:
        assert np.diag(same.layers[side]) == pytest.approx(1.0)
    assert sum(same.log_probability[0]) == pytest.approx(trace.log_probability[:-1].sum(), abs=1e-4)
    other = Translator.load(tiny_checkpoint, device="cpu")
    attention = other.model.attention(AttentionKind.ENCODER_SELF, 0)
    with torch.no_grad():  # its heads change places: the last one comes first
        for values in (attention.projection.weight, attention.projection.bias):
            values.copy_(values.unflatten(0, (3, 4, -1)).flip(1).flatten(0, 2))
        attention.output.weight.copy_(attention.output.weight.unflatten(1, (4, -1)).flip(1).flatten(1))
    moved = twins((tiny_translator, trace), (other, other.trace(SENTENCES[0], target=SENTENCES[1])))
    found = dict(moved.pairs[AttentionKind.ENCODER_SELF])
    assert [found[head] for head in range(4)] == [3, 2, 1, 0]
    assert moved.log_probability[0] == pytest.approx(moved.log_probability[1], abs=1e-4)


def test_other_words_are_refused(tiny_translator):
    one, two = (tiny_translator.trace(SENTENCES[0], target=text) for text in (SENTENCES[1], "One two"))
    with pytest.raises(Refusal, match="different words"):
        twins((tiny_translator, one), (tiny_translator, replace(two)))
