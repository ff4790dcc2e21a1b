"""The attention of one query a sentence: torch's, whatever lies between the heads."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.nets.lean import attention
from attention_atlas.model.nets.lean.attention import attend


@pytest.mark.parametrize("bags", [True, False])
@pytest.mark.parametrize("batch", [1, 7, 8, 31])
@pytest.mark.parametrize("length", [1, 3, 15, 16, 40])
@torch.inference_mode()
def test_it_is_torchs(batch, length, bags, monkeypatch):
    monkeypatch.setattr(attention, "gains_by_bags", lambda: bags)
    heads, d_head = 3, 4
    queries = torch.randn(batch, 3 * heads * d_head)[:, : heads * d_head].view(batch, heads, 1, d_head)
    hidden = torch.ones(batch, 1, 1, length, dtype=torch.bool)
    hidden[: batch // 2, ..., 1:] = False
    kept = torch.full((batch, heads, length + 9, d_head), float("nan"))  # as a cache holds rows that nobody wrote
    kept[:, :, :length] = torch.randn(batch, heads, length, d_head)
    apart = torch.randn(batch, length, heads, d_head).transpose(1, 2)
    for each in (kept[:, :, :length], apart, apart.contiguous()):
        for mask in (None, hidden, torch.randn(1, heads, 1, length)):
            for scale in (None, 1.0):
                found = attend(queries, each, each.flip(3) if each is apart else each, mask, scale)
                values = each.flip(3) if each is apart else each
                expected = F.scaled_dot_product_attention(queries, each, values, attn_mask=mask, scale=scale)
                torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("bags", [True, False])
@pytest.mark.parametrize(("batch", "length"), [(1, 5), (7, 5), (8, 1), (8, 5), (31, 16), (31, 40)])
@torch.inference_mode()
def test_what_lies_as_steps_read_it_is_the_same(batch, length, bags, monkeypatch):
    monkeypatch.setattr(attention, "gains_by_bags", lambda: bags)
    heads, d_head = 3, 4
    keys, values = torch.randn(2, batch, length, heads, d_head).transpose(2, 3)
    queries, mask = torch.randn(batch, heads, 1, d_head), torch.rand(batch, 1, 1, length) < 0.5
    mask[..., 0] = True
    found = attention.for_steps(keys, values)
    assert torch.equal(found[0], keys) and torch.equal(found[1], values)
    assert length == 1 or (found[0].stride(2) == 1) is (bags and batch >= attention.MANY)
    for sentences in (torch.arange(batch), torch.arange(0, batch, 2), torch.tensor([0])):
        some = attention.of_sentences(*found, sentences)
        assert torch.equal(some[0], keys[sentences]) and torch.equal(some[1], values[sentences])
        for scale in (None, 1.0):
            expected = F.scaled_dot_product_attention(
                queries[sentences], keys[sentences], values[sentences], attn_mask=mask[sentences], scale=scale
            )
            read = attend(queries[sentences], *some, mask[sentences], scale)
            torch.testing.assert_close(read, expected, atol=1e-5, rtol=0)
    if length > 1:
        few = attention.of_sentences(*found, torch.arange(min(batch, attention.MANY - 1)))
        assert few[0].is_contiguous() and few[1].is_contiguous()  # as torch's own kernel reads them


@pytest.mark.parametrize("other", [{"device": "meta"}, {"dtype": torch.float64}, {"dtype": torch.bfloat16}], ids=str)
def test_what_no_bag_reads_lies_as_torchs_own_kernels_read_it(other, monkeypatch):
    monkeypatch.setattr(attention, "gains_by_bags", lambda: True)
    found = attention.for_steps(*torch.empty(2, 8, 5, 3, 4, **other).transpose(2, 3))
    assert all(each.is_contiguous() for each in found)


@torch.inference_mode()
def test_many_sentences_are_summed_by_bags(monkeypatch):
    monkeypatch.setattr(attention, "gains_by_bags", lambda: True)
    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", None)
    attend(torch.randn(8, 2, 1, 4), torch.randn(8, 2, 5, 4), torch.randn(8, 2, 5, 4), None, None)
    for values in (torch.randn(8, 5, 2, 4).transpose(1, 2), torch.randn(8, 2, 5, 4).double()):
        with pytest.raises(TypeError):
            attend(torch.randn(8, 2, 1, 4), torch.randn(8, 2, 5, 4), values, None, None)
