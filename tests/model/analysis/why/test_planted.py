"""Tests with a planted head: one cross-attention head copies a source word, and every method must find it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.experiments import heads, patching
from attention_atlas.model.analysis.why.experiments.patching import HeadGrid, PatchMode
from attention_atlas.model.analysis.why.methods import occlusion
from attention_atlas.model.analysis.why.split import split_case
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.why.attribution import Columns
from tests.model.analysis.why.cases import case_of

CROSS = AttentionKind.CROSS
WORDS = range(100, 108)  # each has a direction of its own, the first eight dimensions; no other token has any of them
COLUMNS = Columns(((0,), (1,), (2,), (3,), (4,)), ((0,), (1,)), ("<2en>", "▁a", "▁b", "▁c", "</s>"), ("<s>", "▁d"))


def planted(model: Transformer, layer: int, head: int) -> Case:
    """All other heads speak softly and of other things. The planted one looks for words and says what it found."""
    with torch.no_grad():
        for stack in (model.encoder, model.decoder):
            for part in stack.layers:
                for attention in (part.self_attention, part.cross_attention):
                    if attention is not None:
                        attention.output.weight.mul_(0.1)
                part.feed_forward.contract.weight.mul_(0.1)
        model.embedding.weight[:, :8] = 0
        model.embedding.weight[list(WORDS)] = 0
        model.embedding.weight[list(WORDS), range(8)] = 1.0
        module = model.attention(CROSS, layer)
        rows = [slice(32 * part + 8 * head, 32 * part + 8 * head + 8) for part in range(3)]
        for part in rows:
            module.projection.weight[part], module.projection.bias[part] = 0, 0
        module.projection.bias[rows[0]] = 2.0  # the query: whatever the row, it asks for a word
        module.projection.weight[rows[1], :8] = 0.3  # the key: is it one?
        module.projection.weight[rows[2], :8] = torch.eye(8)  # the value: which one?
        module.output.weight[:, 8 * head : 8 * head + 8] = 0
        module.output.weight[:8, 8 * head : 8 * head + 8] = 3 * torch.eye(8)
    return case_of(model, [4, 20, 103, 21, 2], [1, 30], 103, 105, COLUMNS)


@pytest.mark.parametrize("layer, head", [(1, 2), (2, 0), (0, 3)])
def test_ablation_gradients_and_patching_rank_the_planted_head_first(model, layer, head):
    case = planted(model, layer, head)
    assert case.metric() > 1
    for measure in (heads.measure_all_heads, heads.estimate_heads):
        assert measure(case, heads.zero_values()).ranked()[0][0] == (CROSS, layer, head)
    corrupt = patching.replace_source(case, [4, 20, 105, 21, 2])
    for direction in PatchMode:
        shares = {
            (kind, *place): share
            for kind in (AttentionKind.DECODER_SELF, CROSS)
            for place, share in np.ndenumerate(patching.patch_grid(case, corrupt, HeadGrid(kind), direction).recovered)
        }
        assert max(shares, key=shares.get) == (CROSS, layer, head)


def test_split_and_occlusion_find_the_planted_head_and_word(model):
    case = planted(model, 2, 1)
    parts = split_case(case)
    assert parts.sum.holds
    assert parts.heads(CROSS).argmax() == 2 * 4 + 1 and parts.keys[CROSS][2, 1].argmax() == 2
    for method in (occlusion.MASK, occlusion.MEAN):
        assert method(case).values.argmax() == 2
