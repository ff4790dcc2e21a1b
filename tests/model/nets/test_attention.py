"""Attention against its definition and against torch.nn.MultiheadAttention with the same weights."""

from __future__ import annotations

import pytest
import torch

from attention_atlas.model.checks.oracle import torch_attention
from attention_atlas.model.nets.attention import MultiHeadAttention, attention_weights, scaled_dot_product
from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.masks import causal_mask, padding_mask
from attention_atlas.model.nets.sweep import AttentionEdit
from attention_atlas.model.trace.interventions import LayerEdit

BATCH, HEADS, QUERIES, KEYS, D_MODEL = 2, 4, 5, 7, 32


@pytest.fixture()
def ours() -> MultiHeadAttention:
    torch.manual_seed(0)
    attention = MultiHeadAttention(D_MODEL, HEADS).eval()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return attention


def attend(ours: MultiHeadAttention, x: torch.Tensor, memory: torch.Tensor, mask=None, **options):
    keys, values = ours.project_keys_values(memory)
    return ours(ours.project_queries(x), keys, values, mask, **options)


def random_heads(*lengths: int) -> list[torch.Tensor]:
    torch.manual_seed(3)
    return [torch.randn(BATCH, HEADS, length, 8) for length in lengths]


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("masked", ["nothing", "padding", "causal"])
@torch.no_grad()
def test_fused_attention_has_the_same_output(masked, scaled):
    masks = {"nothing": None, "padding": (torch.arange(KEYS) < 4).view(1, 1, 1, KEYS), "causal": causal_mask(KEYS)}
    attention = MultiHeadAttention(D_MODEL, HEADS, scaled=scaled).eval()
    inputs = random_heads(KEYS, KEYS, KEYS)
    plain, _ = attention(*inputs, masks[masked])
    fused, weights = attention(*inputs, masks[masked], exact=False)
    assert weights is None
    torch.testing.assert_close(fused, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("masked", ["nothing", "padding", "causal", "both"])
def test_equals_torch_multihead_attention(ours, masked):
    torch.manual_seed(2)
    x = torch.randn(BATCH, KEYS, D_MODEL)
    real = torch.ones(BATCH, KEYS, dtype=torch.bool)
    real[1, 4:] = False
    look_back = causal_mask(KEYS)
    padding = real[:, None, None]
    mask = {"nothing": None, "padding": padding, "causal": look_back, "both": look_back & padding}[masked]
    masks = {
        "key_padding_mask": ~real if masked in ("padding", "both") else None,
        "attn_mask": ~look_back[0, 0] if masked in ("causal", "both") else None,
    }
    output, weights = ours(*ours.project(x), mask)
    expected, expected_weights = torch_attention(ours)(x, x, x, average_attn_weights=False, **masks)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=0)


def test_cross_attention_equals_torch(ours):
    torch.manual_seed(4)
    x, memory = torch.randn(BATCH, QUERIES, D_MODEL), torch.randn(BATCH, KEYS, D_MODEL)
    output, weights = attend(ours, x, memory)
    expected, expected_weights = torch_attention(ours)(x, memory, memory, average_attn_weights=False)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=0)
    assert weights.shape == (BATCH, HEADS, QUERIES, KEYS)


def test_gradients_equal_torch(ours):
    torch.manual_seed(5)
    x, oracle = torch.randn(BATCH, KEYS, D_MODEL), torch_attention(ours)
    direction = torch.randn(BATCH, KEYS, D_MODEL)
    (ours(*ours.project(x))[0] * direction).sum().backward()
    (oracle(x, x, x)[0] * direction).sum().backward()
    torch.testing.assert_close(ours.projection.weight.grad, oracle.in_proj_weight.grad, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ours.output.weight.grad, oracle.out_proj.weight.grad, atol=1e-4, rtol=1e-4)


def test_masked_cells_are_exactly_zero_and_rows_sum_to_one():
    queries, keys = random_heads(KEYS, KEYS)
    mask = causal_mask(KEYS) & padding_mask(torch.tensor([[5, 6, 7, 8, 9, 4, 4], [5, 6, 0, 0, 0, 0, 0]]), 0)
    weights = attention_weights(queries, keys, mask)
    assert (weights[~mask.expand_as(weights)] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, KEYS))


def test_dropout_is_applied_after_the_weights_are_taken():
    queries, keys, values = random_heads(QUERIES, KEYS, KEYS)
    plain, weights = scaled_dot_product(queries, keys, values)
    dropped, recorded = scaled_dot_product(queries, keys, values, dropout=0.5)
    assert torch.equal(weights, recorded)
    assert not torch.allclose(plain, dropped)


def test_cutting_every_edge_of_a_row_raises_an_error_with_its_position(ours):
    x = torch.randn(1, 1, D_MODEL)
    edges = tuple((4, key, None) for key in range(3))
    with pytest.raises(ValueError, match="query position 4"):
        attend(ours, x, torch.randn(1, 3, D_MODEL), edit=AttentionEdit(LayerEdit(cut=edges)), first_query=4)


def test_padding_mask_marks_tokens_and_leaves_no_row_empty():
    mask = padding_mask(torch.tensor([[5, 9, 0], [0, 0, 0]]), 0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_the_cache_returns_all_rows_after_it_has_grown():
    torch.manual_seed(8)
    rows = torch.randn(BATCH, HEADS, 70, 8)
    layer = KeyValueCache(1).layers[0]
    start = 0
    for end in (1, 2, 31, 33, 64, 70):
        keys, values = layer.extend(start, rows[:, :, start:end], -rows[:, :, start:end])
        assert torch.equal(keys, rows[:, :, :end]) and torch.equal(values, -rows[:, :, :end])
        start = end
