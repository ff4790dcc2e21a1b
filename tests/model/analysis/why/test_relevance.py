"""Tests of AttnLRP against the same rules written differently: each product as the mean of two with one side fixed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attention_atlas.model.analysis.why.methods import relevance
from attention_atlas.model.analysis.why.methods.gradients import compute_gradients, gradient_x_input
from attention_atlas.model.config import Activation
from attention_atlas.model.nets import attention
from attention_atlas.model.nets.layer import ACTIVATIONS, SubLayer
from attention_atlas.model.nets.transformer import Stack
from tests.model.analysis.why.cases import measure_rows
from tests.model.analysis.why.test_gradients import float64_case


@pytest.fixture()
def case(tokenizer, norm_first):
    return float64_case(tokenizer, norm_first)


def halves(a, b):
    return (a @ b.detach() + a.detach() @ b) / 2


def scores(queries, keys, *, scaled=True):
    return halves(queries / queries.shape[-1] ** (0.5 if scaled else 0), keys.transpose(-2, -1))


def dot_product(queries, keys, values, mask=None, *, softmax=True, **others):
    weights = scores(queries, keys)
    if softmax:
        weights = (weights if mask is None else weights.masked_fill(~mask, -torch.inf)).softmax(-1)
    elif mask is not None:
        weights = weights * mask
    return halves(weights, values), weights


def frozen_norm(self, x):
    spread = ((x - x.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True).add(self.eps).sqrt()
    return (x - x.mean(-1, keepdim=True)) / spread.detach() * self.weight + self.bias


@pytest.mark.parametrize("activation", [Activation.RELU, Activation.GELU])
def test_relevance_matches_products_held_fast_on_one_side(case, activation, monkeypatch):
    function = ACTIVATIONS[activation]
    for layer in (*case.model.encoder.layers, *case.model.decoder.layers):
        layer.feed_forward.activation = function
    relevances = relevance.attn_lrp(case).values
    monkeypatch.setattr(attention, "scaled_dot_product", dot_product)
    monkeypatch.setattr(nn.LayerNorm, "forward", frozen_norm)
    for layer in (*case.model.encoder.layers, *case.model.decoder.layers):
        layer.feed_forward.activation = lambda x: x * (function(x) / x).detach()
    np.testing.assert_allclose(relevances, gradient_x_input(case).values, rtol=1e-9, atol=1e-12)


def test_relevance_leaves_the_forward_pass_bit_identical(case):
    plain, *slopes = compute_gradients(case, case.source_rows, case.target_rows)
    with relevance._Rules():
        ruled, *relevances = compute_gradients(case, case.source_rows, case.target_rows)
    assert torch.equal(plain, ruled)
    assert not torch.allclose(slopes[0], relevances[0])


def test_relevance_sums_to_the_metric_of_products_alone(tokenizer, monkeypatch):
    """Without norms, biases, positions and the softmax nothing is lost: the row adds up to the metric."""
    case = float64_case(tokenizer)
    model = case.model
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    for module in model.modules():
        if isinstance(module, (SubLayer, Stack)):
            module.norm = nn.Identity()
    monkeypatch.setattr(model.source_positions, "forward", lambda *_: None)
    monkeypatch.setattr(model.target_positions, "forward", lambda *_: None)
    plain = attention.scaled_dot_product
    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", lambda *given, **options: plain(*given)[0])
    monkeypatch.setattr(attention, "_softmax", lambda scores, mask: scores if mask is None else scores * mask)
    total = relevance.attn_lrp(case).values.sum()
    metric = measure_rows(case, case.source_rows, case.target_rows)
    assert total == pytest.approx(metric, rel=1e-9)
    assert gradient_x_input(case).values.sum() != pytest.approx(metric, rel=0.5)
