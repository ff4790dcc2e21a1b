"""Folded heads against model.nets.attention, and inputs of different widths against torch.nn.MultiheadAttention."""

from __future__ import annotations

import pytest
import torch

from attention_atlas.model.nets.attention import MultiHeadAttention
from attention_atlas.model.nets.heads import (
    AdditiveScores,
    FoldedAttention,
    cosine_scores,
    fold_heads,
    gaussian_scores,
    unfold_heads,
)

BATCH, HEADS, QUERIES, KEYS, WIDTH, KEY_WIDTH, VALUE_WIDTH = 2, 4, 5, 7, 24, 10, 6


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    shapes = (QUERIES, WIDTH), (KEYS, KEY_WIDTH), (KEYS, VALUE_WIDTH)
    return tuple(torch.randn(BATCH, *shape) for shape in shapes)


def test_folding_makes_each_head_a_row_and_is_undone():
    x = torch.randn(BATCH, QUERIES, WIDTH)
    folded, split = fold_heads(x, HEADS), MultiHeadAttention(WIDTH, HEADS).split_heads(x)
    assert folded.shape == (BATCH * HEADS, QUERIES, WIDTH // HEADS)
    assert torch.equal(folded, split.flatten(0, 1)) and torch.equal(unfold_heads(folded, HEADS), x)


@pytest.mark.parametrize("masked", [False, True])
def test_inputs_of_different_widths_equal_torchs(masked):
    ours = FoldedAttention(WIDTH, HEADS, key_width=KEY_WIDTH, value_width=VALUE_WIDTH)
    theirs = torch.nn.MultiheadAttention(WIDTH, HEADS, kdim=KEY_WIDTH, vdim=VALUE_WIDTH, batch_first=True)
    theirs.in_proj_bias.data.normal_()
    with torch.no_grad():
        projections = (ours.queries, ours.keys, ours.values)
        weights = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
        for module, weight, bias in zip(projections, weights, theirs.in_proj_bias.chunk(3)):
            module.weight.copy_(weight), module.bias.copy_(bias)
        ours.output.load_state_dict(theirs.out_proj.state_dict())
    is_token = torch.arange(KEYS) < torch.tensor([[KEYS], [3]])
    mask = is_token[:, None, None] if masked else None
    output, weights = ours(*inputs(), mask)
    padding = ~is_token if masked else None
    expected = theirs(*inputs(), key_padding_mask=padding, average_attn_weights=False)
    torch.testing.assert_close((output, weights), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("score", [cosine_scores, gaussian_scores, AdditiveScores(WIDTH // HEADS)])
def test_any_score_is_computed_for_each_query_key_and_head(score):
    ours = FoldedAttention(WIDTH, HEADS, key_width=KEY_WIDTH, value_width=VALUE_WIDTH, score=score).eval()
    queries, keys, values = inputs()
    _, weights = ours(queries, keys, values)
    torch.testing.assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, QUERIES))
    heads = [fold_heads(project(x), HEADS)[6] for project, x in ((ours.queries, queries), (ours.keys, keys))]
    query, rows = heads[0][3], heads[1]  # sentence 2, head 3, query 4
    by_hand = {
        cosine_scores: lambda: torch.nn.functional.cosine_similarity(query[None], rows),
        gaussian_scores: lambda: -((rows - query) ** 2).sum(-1) / (2 * len(query) ** 0.5),
    }.get(score, lambda: torch.tanh(score.of_query(query) + score.of_key(rows)) @ score.vector.weight[0])
    torch.testing.assert_close(weights[1, 2, 3], by_hand().softmax(-1), atol=1e-5, rtol=1e-5)


def test_a_width_that_the_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="25 is not a multiple of the 4 heads"):
        FoldedAttention(25, 4)
