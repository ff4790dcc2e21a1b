"""Attention against its definition and against torch.nn.MultiheadAttention with the same weights."""

from __future__ import annotations

import math

import pytest
import torch

from attention_atlas.model.nets.attention import (
    MultiHeadAttention,
    attention_weights,
    edges_mask,
    scaled_dot_product,
)
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


def oracle_of(ours: MultiHeadAttention) -> torch.nn.MultiheadAttention:
    oracle = torch.nn.MultiheadAttention(ours.d_model, ours.num_heads, batch_first=True).eval()
    with torch.no_grad():
        oracle.in_proj_weight.copy_(ours.projection.weight)
        oracle.in_proj_bias.copy_(ours.projection.bias)
    oracle.out_proj.load_state_dict(ours.output.state_dict())
    return oracle


def attend(ours: MultiHeadAttention, x: torch.Tensor, memory: torch.Tensor, mask=None, **options):
    keys, values = ours.project_keys_values(memory)
    return ours(ours.project_queries(x), keys, values, mask, **options)


def random_heads(*lengths: int) -> list[torch.Tensor]:
    torch.manual_seed(3)
    return [torch.randn(BATCH, HEADS, length, 8) for length in lengths]


def test_weights_are_the_softmax_of_scaled_scores_row_by_row():
    queries, keys = random_heads(QUERIES, KEYS)
    weights = attention_weights(queries, keys)
    for b, h, q in [(0, 0, 0), (1, 3, 4), (0, 2, 1)]:
        scores = [
            math.exp(sum(a * c for a, c in zip(queries[b, h, q].tolist(), key)) / math.sqrt(8))
            for key in keys[b, h].tolist()
        ]
        expected = torch.tensor([s / sum(scores) for s in scores])
        torch.testing.assert_close(weights[b, h, q], expected, atol=1e-6, rtol=1e-5)


def test_attention_equals_a_loop_over_heads(ours):
    torch.manual_seed(1)
    x, memory = torch.randn(BATCH, QUERIES, D_MODEL), torch.randn(BATCH, KEYS, D_MODEL)
    output, weights = attend(ours, x, memory)
    w_q, w_k, w_v = ours.projection.weight.chunk(3)
    b_q, b_k, b_v = ours.projection.bias.chunk(3)
    expected = ours.output.bias.expand(BATCH, QUERIES, D_MODEL).clone()
    for head in range(HEADS):
        rows = slice(head * 8, head * 8 + 8)
        query = x @ w_q[rows].T + b_q[rows]
        key, value = memory @ w_k[rows].T + b_k[rows], memory @ w_v[rows].T + b_v[rows]
        head_weights = (query @ key.transpose(1, 2) / math.sqrt(8)).softmax(-1)
        torch.testing.assert_close(weights[:, head], head_weights, atol=1e-5, rtol=0)
        expected = expected + head_weights @ value @ ours.output.weight[:, rows].T
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("masked", ["nothing", "padding", "causal"])
@torch.no_grad()
def test_fused_attention_has_the_same_output(masked, scaled):
    mask = {"nothing": None, "padding": (torch.arange(KEYS) < 4).view(1, 1, 1, KEYS), "causal": causal_mask(KEYS)}[
        masked
    ]
    attention = MultiHeadAttention(D_MODEL, HEADS, scaled=scaled).eval()
    inputs = random_heads(KEYS, KEYS, KEYS)
    plain, _ = attention(*inputs, mask)
    fused, weights = attention(*inputs, mask, exact=False)
    assert weights is None
    torch.testing.assert_close(fused, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("masked", ["nothing", "padding", "causal", "both"])
def test_equals_torch_multihead_attention(ours, masked):
    torch.manual_seed(2)
    x = torch.randn(BATCH, KEYS, D_MODEL)
    real = torch.ones(BATCH, KEYS, dtype=torch.bool)
    real[1, 4:] = False
    look_back = causal_mask(KEYS)
    mask = {
        "nothing": None,
        "padding": real[:, None, None],
        "causal": look_back,
        "both": look_back & real[:, None, None],
    }[masked]
    output, weights = ours(*ours.project(x), mask)
    expected, expected_weights = oracle_of(ours)(
        x,
        x,
        x,
        average_attn_weights=False,
        key_padding_mask=~real if masked in ("padding", "both") else None,
        attn_mask=~look_back[0, 0] if masked in ("causal", "both") else None,
    )
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=0)


def test_cross_attention_equals_torch(ours):
    torch.manual_seed(4)
    x, memory = torch.randn(BATCH, QUERIES, D_MODEL), torch.randn(BATCH, KEYS, D_MODEL)
    output, weights = attend(ours, x, memory)
    expected, expected_weights = oracle_of(ours)(x, memory, memory, average_attn_weights=False)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=0)
    assert weights.shape == (BATCH, HEADS, QUERIES, KEYS)


def test_gradients_equal_torch(ours):
    torch.manual_seed(5)
    x, oracle = torch.randn(BATCH, KEYS, D_MODEL), oracle_of(ours)
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


def test_keep_zeroes_weights_without_renormalising():
    queries, keys, values = random_heads(QUERIES, KEYS, KEYS)
    keep = edges_mask(((2, 3, None), (1, 0, 2)), (HEADS, QUERIES, KEYS))
    output, weights = scaled_dot_product(queries, keys, values, keep=keep)
    used = weights.clone()
    used[:, :, 2, 3] = 0
    used[:, 2, 1, 0] = 0
    torch.testing.assert_close(output, used @ values)
    assert (weights[:, :, 2, 3] > 0).all()


def test_a_head_off_equals_a_zero_slice_of_the_output_matrix(ours):
    torch.manual_seed(6)
    x, memory = torch.randn(BATCH, QUERIES, D_MODEL), torch.randn(BATCH, KEYS, D_MODEL)
    output, weights = attend(ours, x, memory, edit=AttentionEdit(LayerEdit(heads_off=(1, 3))))
    plain, plain_weights = attend(ours, x, memory)
    with torch.no_grad():
        for head in (1, 3):
            ours.output.weight[:, head * 8 : head * 8 + 8] = 0
    expected, _ = attend(ours, x, memory)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=1e-6)
    assert torch.equal(weights, plain_weights)  # the map stays visible
    assert not torch.allclose(output, plain)


def test_cut_edges_renormalise_the_row(ours):
    torch.manual_seed(7)
    x, memory = torch.randn(BATCH, QUERIES, D_MODEL), torch.randn(BATCH, KEYS, D_MODEL)
    _, plain = attend(ours, x, memory)
    _, cut = attend(ours, x, memory, edit=AttentionEdit(LayerEdit(cut=((1, 2, 0), (3, 0, None)))))
    expected = plain.clone()
    expected[:, 0, 1, 2] = 0
    expected[:, :, 3, 0] = 0
    expected /= expected.sum(-1, keepdim=True)
    torch.testing.assert_close(cut, expected, atol=1e-6, rtol=1e-5)


def test_cutting_every_edge_of_a_row_raises_an_error_with_its_position(ours):
    x = torch.randn(1, 1, D_MODEL)
    edges = tuple((4, key, None) for key in range(3))
    with pytest.raises(ValueError, match="query position 4"):
        attend(ours, x, torch.randn(1, 3, D_MODEL), edit=AttentionEdit(LayerEdit(cut=edges)), first_query=4)


def test_padding_mask_marks_tokens_and_leaves_no_row_empty():
    mask = padding_mask(torch.tensor([[5, 9, 0], [0, 0, 0]]), 0)
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, False, False]]


def test_causal_mask_allows_earlier_positions_and_the_row_itself():
    full = causal_mask(4)[0, 0]
    assert all(full[q, k].item() == (k <= q) for q in range(4) for k in range(4))
    assert torch.equal(causal_mask(4, first_query=2)[0, 0], full[2:])


def test_the_cache_returns_all_rows_after_it_has_grown():
    torch.manual_seed(8)
    rows = torch.randn(BATCH, HEADS, 70, 8)
    layer = KeyValueCache(1).layers[0]
    start = 0
    for end in (1, 2, 31, 33, 64, 70):
        keys, values = layer.extend(start, rows[:, :, start:end], -rows[:, :, start:end])
        assert torch.equal(keys, rows[:, :, :end]) and torch.equal(values, -rows[:, :, :end])
        start = end


def test_reorder_selects_rows_of_the_cache():
    cache = KeyValueCache(1)
    layer = cache.layers[0]
    layer.extend(0, torch.arange(2.0).view(2, 1, 1, 1), -torch.arange(2.0).view(2, 1, 1, 1))
    cache.length = 1
    cache.reorder(torch.tensor([1, 1, 0]))
    assert layer.keys[:, 0, 0, 0].tolist() == [1, 1, 0] and layer.values[:, 0, 0, 0].tolist() == [-1, -1, 0]
