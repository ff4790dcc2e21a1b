"""Properties of the Transformer: records, padding, the look-ahead mask, caching, dropout and initialisation.

test_options.py compares whole stacks with torch.nn's layers.
"""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.attention import MultiHeadAttention
from attention_atlas.model.nets.cache import KeyValueCache
from attention_atlas.model.nets.layer import Dropout
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import AttentionKind
from tests.conftest import build_tiny_model

LOGITS, WEIGHTS = {"atol": 1e-4, "rtol": 0}, {"atol": 1e-5, "rtol": 0}
SOURCE, TARGET = [4, 20, 31, 45, 20, 61, 2], [1, 30, 41, 52, 30]


def two_sentences() -> tuple[torch.Tensor, torch.Tensor]:
    return pad([SOURCE, SOURCE[:4]], 0), pad([TARGET[:3], TARGET], 0)


def test_records_have_the_documented_shapes(model):
    output = model(*two_sentences(), record=True)
    assert (len(output.encoder_records), len(output.decoder_records)) == (2, 3)
    assert all(record.cross_attention is None for record in output.encoder_records)
    assert output.weights(AttentionKind.ENCODER_SELF).shape == (2, 2, 4, 7, 7)
    assert output.weights(AttentionKind.DECODER_SELF).shape == (3, 2, 4, 5, 5)
    assert output.weights(AttentionKind.CROSS).shape == (3, 2, 4, 5, 7)
    for record in output.decoder_records:
        assert record.cross_attention.values.shape == (2, 4, 7, 8)
        assert record.activations.shape == (2, 5, 48) and (record.activations >= 0).all()


def test_recording_changes_no_bit(model):
    source, target = two_sentences()
    plain, recorded = model(source, target), model(source, target, record=True)
    assert torch.equal(plain.logits, recorded.logits) and torch.equal(plain.memory, recorded.memory)


def test_records_of_consecutive_layers_join_up_to_the_output(model):
    """Each layer starts from the stream that the one before it left; the last one, normed, is projected."""
    output = model(*two_sentences(), record=True)
    for records, last, norm in (
        (output.encoder_records, output.memory, model.encoder.norm),
        (output.decoder_records, output.hidden, model.decoder.norm),
    ):
        for before, after in pairwise(records):
            assert torch.equal(before.after, after.before)
        assert torch.equal(norm(records[-1].after), last)
    assert torch.equal(model.project(output.hidden), output.logits)


def test_norm_scales_are_the_factors_of_the_norms(model):
    output = model(*two_sentences(), record=True)
    record, sublayer = output.decoder_records[1], model.decoder.layers[1].sublayers[0]
    read = record.before
    if not model.config.norm_first:  # post-norm reads the sum, which the residuals hold only after the norm
        context = (record.self_attention.weights @ record.self_attention.values).transpose(1, 2).flatten(2)
        read = read + model.decoder.layers[1].self_attention.output(context)
    centred = (read - read.mean(-1, keepdim=True)) * record.sublayers[0].norm_scale[..., None]
    torch.testing.assert_close(
        centred * sublayer.norm.weight + sublayer.norm.bias, sublayer.norm(read), atol=1e-5, rtol=1e-5
    )


def test_padding_does_not_change_outputs(model):
    source, target = two_sentences()
    together = model(source, target, record=True)
    for row, (s, t) in enumerate([(7, 3), (4, 5)]):
        alone = model(source[row : row + 1, :s], target[row : row + 1, :t], record=True)
        torch.testing.assert_close(together.logits[row, :t], alone.logits[0], **LOGITS)
        batched, single = (output.weights(AttentionKind.CROSS) for output in (together, alone))
        torch.testing.assert_close(batched[:, row, :, :t, :s], single[:, 0], **WEIGHTS)
        assert (batched[:, row, :, :, s:] == 0).all()


def test_rows_do_not_depend_on_later_tokens(model):
    """Changing token t + 1 leaves the outputs of rows 0 .. t identical, bit for bit."""
    source = torch.tensor([SOURCE])
    plain = model(source, torch.tensor([TARGET])).logits
    for changed in range(1, len(TARGET)):
        other = list(TARGET)
        other[changed] = 77
        logits = model(source, torch.tensor([other])).logits
        assert torch.equal(logits[:, :changed], plain[:, :changed])
        assert not torch.allclose(logits[:, changed], plain[:, changed])


@pytest.mark.parametrize("steps", [(1, 1, 1, 1, 1), (2, 3), (1, 3, 1)])
def test_cached_decoding_equals_the_full_pass(model, steps):
    source, target = two_sentences()
    full = model(source, target, record=True)
    memory, cache, start = model.encode(source), KeyValueCache(3), 0
    for new in steps:
        hidden, records = model.decode(target[:, start : start + new], memory, cache=cache, record=True)
        end = start + new
        torch.testing.assert_close(model.project(hidden), full.logits[:, start:end], **LOGITS)
        for cached, whole in zip(records, full.decoder_records):
            own, cross = whole.self_attention.weights, whole.cross_attention.weights
            torch.testing.assert_close(cached.self_attention.weights, own[:, :, start:end, :end], **WEIGHTS)
            torch.testing.assert_close(cached.cross_attention.weights, cross[:, :, start:end], **WEIGHTS)
            torch.testing.assert_close(cached.after, whole.after[:, start:end], **LOGITS)
        start = end
    assert cache.length == len(TARGET)


def test_cross_attention_is_projected_once(model, monkeypatch):
    source, target = two_sentences()
    memory, cache, calls = model.encode(source), KeyValueCache(3), []
    project = MultiHeadAttention.project_keys_values
    monkeypatch.setattr(
        MultiHeadAttention, "project_keys_values", lambda self, memory: calls.append(self) or project(self, memory)
    )
    for step in range(5):
        model.decode(target[:, step : step + 1], memory, cache=cache)
    model.read(memory, target)
    assert len(calls) == 3  # once a layer
    second = memory.select(torch.tensor([1]))
    for layer in model.decoder.layers:
        for selected, whole in zip(second.keys_values(layer), memory.keys_values(layer)):
            assert torch.equal(selected, whole[1:])
    assert len(calls) == 3


def test_dropout_acts_in_training_only(tokenizer):
    model = build_tiny_model(tokenizer, dropout=0.3, attention_dropout=0.2)
    source, target = two_sentences()
    assert torch.equal(model(source, target).logits, model(source, target).logits)
    model.train()
    torch.manual_seed(1)
    first = model(source, target).logits
    assert not torch.allclose(first, model(source, target).logits)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.999])
def test_dropout_drops_its_rate_and_keeps_the_mean(rate):
    torch.manual_seed(2)
    dropout, x = Dropout(rate), torch.ones(401, 1003)
    dropped = dropout(x)
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=1 / 256)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.05)
    assert torch.equal(dropout.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_dropout_passes_gradients_through_the_remaining_values():
    x = torch.ones(1000, requires_grad=True)
    dropped = Dropout(0.25)(x)
    dropped.sum().backward()
    torch.testing.assert_close(x.grad, dropped.detach())


def test_dropout_is_repeatable_by_seed_and_varies_between_calls():
    dropout, x = Dropout(0.3), torch.ones(1000)
    torch.manual_seed(3)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(3)
    assert torch.equal(dropout(x), first) and not torch.equal(first, second)


def test_each_matrix_is_initialised_by_its_own_fan_in_and_fan_out(tokenizer):
    torch.manual_seed(0)
    model = Transformer(ModelConfig(len(tokenizer), d_model=128, num_heads=8, d_feedforward=384))
    attention = model.encoder.layers[0].self_attention
    for matrix in (*attention.projection.weight.chunk(3), attention.output.weight):
        assert matrix.abs().max() <= math.sqrt(6 / 256)
        assert matrix.std().item() == pytest.approx(math.sqrt(2 / 256), rel=0.05)
    expand = model.encoder.layers[0].feed_forward.expand.weight
    assert expand.std().item() == pytest.approx(math.sqrt(2 / 512), rel=0.05)
    assert model.embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)
