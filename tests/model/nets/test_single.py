"""An encoder that classifies and a decoder that writes: padding, causality, the cache, and torch's encoder."""

from __future__ import annotations

import math

import pytest
import torch

from attention_atlas.model.checks.oracle import torch_attention
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.decode.steps import StepDecoder, greedy
from attention_atlas.model.nets.single import DecoderOnly, EncoderOnly
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind

SHAPE = {"d_model": 32, "num_heads": 4, "num_encoder_layers": 2, "d_feedforward": 48, "max_length": 16}


@pytest.fixture()
def classifier() -> EncoderOnly:
    torch.manual_seed(0)
    config = ModelConfig(20, **SHAPE, shared_embeddings=False, target_vocabulary_size=5)
    return EncoderOnly(config).eval()


@pytest.fixture()
def writer() -> DecoderOnly:
    torch.manual_seed(1)
    return DecoderOnly(ModelConfig(20, **SHAPE)).eval()


def test_a_class_does_not_depend_on_padding_and_is_no_symbol(classifier):
    alone, padded = torch.tensor([[1, 5, 6, 2]]), torch.tensor([[1, 5, 6, 2, 0, 0]])
    begin = torch.tensor([[1]])
    with torch.inference_mode():
        logits = classifier(alone, begin).logits
        torch.testing.assert_close(classifier(padded, begin).logits, logits)
        assert logits.shape == (1, 1, 5) and (logits[..., :3] == -math.inf).all() and logits[..., 3:].isfinite().all()
        output = classifier(alone, begin, record=True)
        memory = classifier.encode(alone)
        written_ids = greedy(classifier, memory, [1], begin_id=1, end_id=2)
    assert output.kinds == (AttentionKind.ENCODER_SELF,)
    assert output.weights(AttentionKind.ENCODER_SELF).shape == (2, 1, 4, 4, 4)
    assert written_ids == [[int(logits.argmax())]]


def test_its_layers_are_those_of_torch(classifier):
    layer, config = classifier.stack.layers[0], classifier.config
    theirs = torch.nn.TransformerEncoderLayer(32, 4, 48, 0.0, norm_first=True, batch_first=True).eval()
    theirs.self_attn = torch_attention(layer.self_attention)
    for ours, norm in zip(layer.sublayers, (theirs.norm1, theirs.norm2)):
        norm.load_state_dict(ours.norm.state_dict())
    theirs.linear1.load_state_dict(layer.feed_forward.expand.state_dict())
    theirs.linear2.load_state_dict(layer.feed_forward.contract.state_dict())
    x = torch.randn(2, 5, config.d_model)
    with torch.no_grad():
        torch.testing.assert_close(layer(x, None)[0], theirs(x), atol=1e-5, rtol=1e-5)


def test_no_row_reads_later_tokens_and_the_cached_step_agrees(writer):
    ids, other = torch.tensor([[1, 7, 8, 9, 4]]), torch.tensor([[1, 7, 8, 3, 5]])
    with torch.inference_mode():
        output = writer(ids[:, :0], ids, record=True)
        torch.testing.assert_close(writer(ids[:, :0], other).logits[:, :3], output.logits[:, :3])
        assert output.kinds == (AttentionKind.DECODER_SELF,)
        weights = output.weights(AttentionKind.DECODER_SELF)
        assert weights.shape == (2, 1, 4, 5, 5) and (weights.triu(1) == 0).all()
        decoder = StepDecoder(writer, writer.encode(ids), ids[:, :2], record=True)
        for step in range(2, 5):
            torch.testing.assert_close(decoder.logits, output.logits[:, step - 1], atol=1e-5, rtol=1e-5)
            decoder.append(ids[:, step])


def test_interventions_are_refused(classifier):
    with pytest.raises(ValueError, match="not a Transformer"):
        classifier.check(Interventions(heads_off={("cross", 0, 0)}), batch=1)
