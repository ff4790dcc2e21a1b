"""Tests of the split logit: parts sum to it and are linear in the contrast, and planted errors are detected."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.split import split_case
from attention_atlas.model.config import Activation, PositionCode
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from tests.conftest import build_tiny_model
from tests.model.analysis.why.cases import case_of, random_cases

DECODER, CROSS = AttentionKind.DECODER_SELF, AttentionKind.CROSS
OTHER_FAMILIES = {
    "norm_embedding": True,
    "logits_bias": True,
    "tied_output": False,
    "shared_embeddings": False,
    "scale_embedding": False,
    "activation": Activation.GELU,
    "position_code": PositionCode.LEARNED,
}


FAMILIES = {
    "pre-norm": {},
    "post-norm": {"norm_first": False},
    "pre-norm, all options": OTHER_FAMILIES,
    "a norm before positions": {**OTHER_FAMILIES, "norm_first": False, "norm_before_positions": True},
    "unequal sides": {"decoder_num_heads": 2, "decoder_d_feedforward": 24},
    "post-norm, all options": {**OTHER_FAMILIES, "norm_first": False},
}


@pytest.fixture(scope="module", params=FAMILIES.values(), ids=FAMILIES)
def model(request, tokenizer) -> Transformer:
    return build_tiny_model(tokenizer, **request.param)


@pytest.mark.parametrize("count", [25, pytest.param(100, marks=pytest.mark.endure)])
def test_parts_sum_to_the_models_logits(model, count):
    """Against the logits of the plain pass, at lengths 1 to 40, with and without a contrast."""
    for source, target, token, contrast in random_cases(model, count):
        with torch.inference_mode():
            logits = model(torch.tensor([source]), torch.tensor([target])).logits[0, -1].double()
        for other, expected in ((contrast, logits[token] - logits[contrast]), (None, logits[token] - logits.mean())):
            parts = split_case(case_of(model, source, target, token, other))
            assert parts.sum.found == pytest.approx(float(expected), abs=1e-4)
            assert parts.sum.holds and abs(parts.sum.error) <= 1e-4


@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.endure)])
def test_parts_are_linear_in_the_contrast(model, count):
    for source, target, token, contrast in random_cases(model, count, seed=1):
        of = [
            split_case(case_of(model, source, target, *pair))
            for pair in ((token, None), (contrast, None), (token, contrast))
        ]
        for kind in (DECODER, CROSS):
            np.testing.assert_allclose(of[0].keys[kind] - of[1].keys[kind], of[2].keys[kind], atol=1e-5)
        np.testing.assert_allclose(of[0].feed_forward - of[1].feed_forward, of[2].feed_forward, atol=1e-5)
        assert of[0].token - of[1].token == pytest.approx(of[2].token, abs=1e-5)


def test_head_part_matches_its_slice_of_the_output_matrix(tokenizer):
    """With pre-norm, a head's part is its own output through W_O on the gradient of the logit difference by the
    residual stream, the final norm's scale held: taken here by autograd."""
    model = build_tiny_model(tokenizer).double()
    source, target, token, contrast = next(random_cases(model, 1, seed=5))
    case = case_of(model, source, target, token, contrast)
    parts = split_case(case)
    assert parts.sum.holds
    stream = case.output.decoder_records[-1].after[0, -1].clone().requires_grad_()
    norm = model.decoder.norm
    scale = (stream.detach().var(unbiased=False) + norm.eps).sqrt()
    normed = norm.weight * (stream - stream.mean()) / scale
    weight = model.embedding.weight
    (gradient,) = torch.autograd.grad(normed @ (weight[token] - weight[contrast]), stream)
    for layer, record in enumerate(case.output.decoder_records):
        for kind, attention in ((DECODER, "self_attention"), (CROSS, "cross_attention")):
            recorded = getattr(record, attention)
            context = (recorded.weights @ recorded.values)[0, :, -1]  # [heads, d_head]
            for head in range(4):
                alone = torch.zeros(4, 8, dtype=torch.float64)
                alone[head] = context[head]
                module = getattr(model.decoder.layers[layer], attention).output
                wrote = alone.flatten() @ module.weight.T
                assert parts.heads(kind)[layer, head] == pytest.approx(float(wrote.detach() @ gradient), abs=1e-10)


def test_encoder_heads_have_no_part(model):
    parts = split_case(case_of(model, [4, 20, 2], [1, 30]))
    assert AttentionKind.ENCODER_SELF not in parts.keys
    with pytest.raises(ValueError, match="no direct path"):
        parts.heads(AttentionKind.ENCODER_SELF)
    heads = model.num_heads[CROSS]
    assert parts.keys[DECODER].shape == (3, heads, 2) and parts.keys[CROSS].shape == (3, heads, 3)


def test_ablated_heads_and_edges_have_no_part(tokenizer, norm_first):
    model = build_tiny_model(tokenizer, norm_first=norm_first)
    changes = Interventions(heads_off={(CROSS, 1, 2)}, zeroed_edges={Edge(DECODER, 2, 0, 0, 1)})
    parts = split_case(case_of(model, [4, 20, 31, 2], [1, 30, 41], interventions=changes))
    assert parts.sum.holds
    assert parts.heads(CROSS)[1, 2] == 0 and parts.keys[DECODER][0, 1, 0] == 0
    assert np.count_nonzero(parts.heads(CROSS)) == 11


def mutated(case: Case, change) -> Case:
    """The case read with other weights or another style than those that its pass was computed with."""
    other = copy.deepcopy(case.model)
    with torch.no_grad():
        change(other)
    wrong = replace(case, model=other)
    wrong.__dict__["output"] = case.output
    return wrong


def flip_style(model):
    for layer in model.decoder.layers:
        for sublayer in layer.sublayers:
            sublayer.norm_first = not sublayer.norm_first


MUTATIONS = {
    "norm style": flip_style,
    "output bias of cross-attention": lambda m: m.decoder.layers[1].cross_attention.output.bias.zero_(),
    "feed-forward's bias": lambda m: m.decoder.layers[2].feed_forward.contract.bias.zero_(),
    "norm's bias": lambda m: [norm.bias.zero_() for norm in m.modules() if isinstance(norm, torch.nn.LayerNorm)],
    "norm's gain": lambda m: [norm.weight.fill_(1.0) for norm in m.modules() if isinstance(norm, torch.nn.LayerNorm)],
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_errors_show_in_the_sum(model, name):
    case = case_of(model, [4, 20, 31, 45, 2], [1, 30, 41])
    assert split_case(case).sum.holds
    assert not split_case(mutated(case, MUTATIONS[name])).sum.holds
