"""Tests of contributions: they sum to the block's output, ALTI's shares to 1, without future and padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.contributions import (
    alti_contributions,
    alti_flow,
    contribution_vectors,
)
from attention_atlas.model.analysis.why.methods import attention, flow
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.trace.flow import decoder_flow, encoder_flow
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.trace.why.attribution import Columns
from tests.model.analysis.why.cases import CROSS, DECODER, ENCODER, SOURCE, TARGET, case_of, random_cases


def recorded(model, source=SOURCE, target=TARGET):
    with torch.inference_mode():
        return model(torch.tensor([source]), torch.tensor([target]), record=True)


def blocks(model, output):
    for layers, records, kinds in (
        (model.encoder.layers, output.encoder_records, (ENCODER,)),
        (model.decoder.layers, output.decoder_records, (DECODER, CROSS)),
    ):
        for layer, record in zip(layers, records):
            for kind in kinds:
                yield layer, record, kind


def test_contributions_sum_to_the_blocks_output(model):
    """With the residual and the biases: by torch's own layer norm where the block ends in one."""
    for layer, record, kind in blocks(model, recorded(model)):
        index = int(kind is CROSS)
        bias = (layer.cross_attention if index else layer.self_attention).output.bias
        stream, after = record.sublayers[index].before[0], record.sublayers[index].after[0]
        total = contribution_vectors([layer], [record], kind)[0].sum(1)
        if layer.sublayers[0].norm_first:
            output_stream = total + (stream + bias).double()
        else:
            norm = layer.sublayers[index].norm
            x, read = (stream + bias).double(), record.sublayers[index].norm_input[0]
            scale = (read.double().var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
            output_stream = total + norm.weight * (x - x.mean(-1, keepdim=True)) / scale + norm.bias
        np.testing.assert_allclose(output_stream.detach(), after, atol=1e-4)


def plain_share(parts: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Ferrando et al. 2022, written out for one row."""
    nearer = np.array([max(0.0, np.abs(whole).sum() - np.abs(whole - part).sum()) for part in parts])
    return nearer / nearer.sum()


def test_shares_match_the_papers_equations(model):
    output = recorded(model)
    own, cross = (alti_contributions(model, output, kind) for kind in (DECODER, CROSS))
    for layer, record in zip(model.decoder.layers, output.decoder_records):
        for kind, found in ((DECODER, own), (CROSS, cross)):
            index = int(kind is CROSS)
            parts = contribution_vectors([layer], [record], kind)[0].detach().numpy()
            passed = record.sublayers[index]
            stream, whole = (x[0].double().numpy() for x in (passed.before, passed.after))
            if not layer.sublayers[0].norm_first:
                norm, read = layer.sublayers[index].norm, passed.norm_input[0].double().numpy()
                centred = stream - stream.mean(-1, keepdims=True)
                scale = np.sqrt(read.var(-1, keepdims=True) + norm.eps)
                stream = norm.weight.detach().double().numpy() * centred / scale
            for t in range(4):
                rows = list(parts[t])
                if kind is CROSS:
                    rows.append(stream[t])
                else:
                    rows[t] = rows[t] + stream[t]
                expected = plain_share(rows, whole[t])[: found.shape[-1]]
                np.testing.assert_allclose(found[layer.index, t], expected, atol=1e-9)


@pytest.mark.parametrize("count", [10, pytest.param(260, marks=pytest.mark.endure)])
def test_shares_sum_to_one_without_the_future(model, count):
    for source, target, *_ in random_cases(model, count, seed=8):
        output, size = recorded(model, source, target), len(source)
        encoder, own, cross = (alti_contributions(model, output, kind) for kind in TRANSFORMER_KINDS)
        joint = decoder_flow(own, cross, encoder_flow(encoder)[-1])
        np.testing.assert_array_equal(alti_flow(model, output), joint)
        for shares in (encoder, own, joint):
            np.testing.assert_allclose(shares.sum(-1), 1.0, atol=1e-6)
        assert (cross >= 0).all() and (cross.sum(-1) <= 1 + 1e-9).all() and (cross.sum(-1) < 1).any()
        assert (np.triu(own, 1) == 0).all()
        assert (np.triu(joint[..., size:], 1) == 0).all() and (joint >= -1e-12).all()
        assert (joint[..., :size].sum(-1) <= 1 + 1e-6).all()


def test_padding_changes_no_share(model):
    source, target = pad([SOURCE, SOURCE[:3]], 0), pad([TARGET, TARGET[:2]], 0)
    with torch.inference_mode():
        together = model(source.flip(0), target.flip(0), record=True)
    alone = recorded(model, SOURCE[:3], TARGET[:2])
    for kind in TRANSFORMER_KINDS:
        padded, plain = (alti_contributions(model, output, kind) for output in (together, alone))
        _, queries, keys = plain.shape
        np.testing.assert_allclose(padded[:, :queries, :keys], plain, atol=1e-5)
    assert (alti_contributions(model, together, ENCODER)[:, :3, 3:] == 0).all()


def test_chunk_size_changes_nothing(model, monkeypatch):
    output = recorded(model)
    whole = [alti_contributions(model, output, kind) for kind in TRANSFORMER_KINDS]
    monkeypatch.setattr("attention_atlas.model.analysis.why.contributions.CHUNK", 1)
    for kind, shares in zip(TRANSFORMER_KINDS, whole):
        np.testing.assert_allclose(shares, alti_contributions(model, output, kind), atol=1e-12)


@pytest.mark.parametrize("layer", [None, 1])
def test_attention_and_flow_methods_use_the_shares(model, layer):
    columns = Columns(
        ((0,), (1, 2), (3, 4), (5,)),
        ((0,), (1,), (2, 3)),
        ("<2en>", "▁a", "b", "▁c", "▁a", "</s>"),
        ("<s>", "▁x", "▁y", "z"),
    )
    case = case_of(model, SOURCE, TARGET, columns=columns, cross_layer=layer)
    for method in (flow.ALTI, flow.ROLLOUT):
        row = method(case)
        assert row.sum.holds and row.values.sum() == pytest.approx(1.0, abs=1e-6) and row.class_agnostic
    for method in (attention.RAW, attention.NORMS):
        row = method(case)
        assert np.isnan(row.values[4:]).all() and row.values[:4].sum() == pytest.approx(1.0, abs=1e-5)
    weights = torch.stack([r.cross_attention.weights[0, :, -1] for r in case.output.decoder_records]).mean(1)
    row = weights.mean(0) if layer is None else weights[layer]
    expected = [row[list(word)].sum() for word in columns.source]
    np.testing.assert_allclose(attention.RAW(case).values[:4], expected, atol=1e-6)
