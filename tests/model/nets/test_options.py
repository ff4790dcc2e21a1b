"""Networks of every family equal torch.nn's layers with the same weights, and codes of positions their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attention_atlas.model.checks.oracle import torch_layer
from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.masks import causal_mask, pad
from attention_atlas.model.nets.positions import (
    ComputedPositions,
    LearnedPositions,
    fairseq_encoding,
    sinusoidal_encoding,
)
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import Positions

SOURCE = pad([[4, 20, 31, 45, 20, 61, 2], [5, 21, 60, 2]], 0)
TARGET = torch.tensor([[1, 30, 41, 52, 30], [1, 33, 44, 12, 31]])
SIZES = {
    "vocabulary_size": 70,
    "d_model": 32,
    "num_heads": 4,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "d_feedforward": 48,
    "max_length": 20,
}
MARIAN = {"norm_first": False, "activation": "silu", "position_code": "halves", "logits_bias": True, "banned_ids": (0,)}
FAMILIES = {
    "pre-norm": {},
    "post-norm": {"norm_first": False},
    "marian": MARIAN,
    "two vocabularies": {**MARIAN, "shared_embeddings": False, "target_vocabulary_size": 61, "activation": "relu"},
    "untied head": {**MARIAN, "tied_output": False},
    "m2m100": {"position_code": "fairseq", "position_offset": 2},
    "mbart": {
        "activation": "gelu",
        "position_code": "learned",
        "position_offset": 2,
        "norm_embedding": True,
        "logits_bias": True,
    },
    "no scale": {"scale_embedding": False},
    "blenderbot-small": {
        "norm_first": False,
        "position_code": "learned",
        "position_offset": 2,
        "norm_embedding": True,
        "norm_before_positions": True,
    },
    "unequal sides": {"decoder_num_heads": 2, "decoder_d_feedforward": 40},
}


@pytest.fixture(params=FAMILIES, ids=str)
def model(request) -> Transformer:
    torch.manual_seed(3)
    built = Transformer(ModelConfig(**SIZES, **FAMILIES[request.param]))
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return built.eval()


def check_steps(model: Transformer, *, record: bool) -> StepDecoder:
    """Assert that steps over the cache give the logits of the full pass. Returns their decoder."""
    whole, decoder = model(SOURCE, TARGET), StepDecoder(model, model.encode(SOURCE), TARGET[:, :1], record=record)
    for step in range(1, 6):
        torch.testing.assert_close(decoder.logits, whole.logits[:, step - 1], atol=1e-4, rtol=0)
        if step < 5:
            decoder.append(TARGET[:, step])
    return decoder


def test_the_whole_model_equals_a_stack_of_torchs_layers(model):
    config, real = model.config, SOURCE != 0
    state = model.state_dict()

    def entered(ids: torch.Tensor, side: str, matrix: torch.Tensor) -> torch.Tensor:
        x = matrix[ids] * (math.sqrt(32) if config.scale_embedding else 1.0)
        stack = "encoder" if side == "source" else "decoder"

        def normed(x: torch.Tensor) -> torch.Tensor:
            weights = (state[f"{stack}.entry.{name}"] for name in ("weight", "bias"))
            return torch.nn.functional.layer_norm(x, (32,), *weights)

        early = config.norm_before_positions and stack == "decoder"
        x = normed(x) if early else x
        if config.position_code is PositionCode.LEARNED:
            x = x + state[f"{side}_positions.weight"][2 : 2 + ids.shape[1]]
        else:
            x = x + model.source_positions.table[: ids.shape[1]]
        return normed(x) if config.norm_embedding and not early else x

    target = state["embedding.weight" if config.shared_embeddings else "target_embedding.weight"]
    head = target if config.tied_output else state["output.weight"]
    memory = entered(SOURCE, "source", state["embedding.weight"])
    for layer in model.encoder.layers:
        memory = torch_layer(layer, config)(memory, src_key_padding_mask=~real)
    memory, x = model.encoder.norm(memory), entered(TARGET, "target", target)
    for layer in model.decoder.layers:
        x = torch_layer(layer, config)(x, memory, tgt_mask=~causal_mask(5)[0, 0], memory_key_padding_mask=~real)
    logits = model.decoder.norm(x) @ head.T + (state["output_bias"] if config.logits_bias else 0.0)
    torch.testing.assert_close(model(SOURCE, TARGET).logits, logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("record", [False, True])
def test_cached_decoding_equals_the_full_pass_with_every_option(model, record):
    check_steps(model, record=record)


def test_every_parameter_has_a_gradient_and_options_add_their_own(model):
    model(SOURCE, TARGET).logits.square().mean().backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None]
    assert not idle
    config = model.config
    assert ("target_embedding.weight" in model.state_dict()) is not config.shared_embeddings
    assert ("output.weight" in model.state_dict()) is not config.tied_output
    assert ("output_bias" in model.state_dict()) is config.logits_bias
    tables = 2 if config.position_code is PositionCode.LEARNED else 0
    assert sum("positions" in name for name in model.state_dict()) == tables


def test_halves_reorder_the_papers_code():
    halves = ComputedPositions(ModelConfig(**SIZES, position_code=PositionCode.HALVES)).table
    paper = sinusoidal_encoding(torch.arange(20), 32)
    assert torch.equal(halves[:, :16], paper[:, 0::2]) and torch.equal(halves[:, 16:], paper[:, 1::2])


def test_fairseqs_code_equals_its_formula():
    code = ComputedPositions(ModelConfig(**SIZES, position_code=PositionCode.FAIRSEQ, position_offset=2))
    where, rates = np.arange(2, 22)[:, None], np.exp(-np.arange(16) * math.log(10_000.0) / 15)
    expected = np.concatenate((np.sin(where * rates), np.cos(where * rates)), axis=1)
    np.testing.assert_allclose(code.table.numpy(), expected, atol=1e-5)
    # The last wave is exactly 10,000 times as long as the first: the paper's is a pair short of that.
    assert rates[0] / rates[-1] == pytest.approx(10_000)
    np.testing.assert_allclose(code(30, 4).numpy(), fairseq_encoding(torch.arange(32, 36), 32).numpy())
    with pytest.raises(ValueError, match="found 2"):
        fairseq_encoding(torch.arange(3), 2)


def test_learned_positions_have_no_rows_beyond_training():
    code = LearnedPositions(ModelConfig(**SIZES, position_code=PositionCode.LEARNED, position_offset=2))
    assert torch.equal(code(0, 20), code.weight[2:]) and torch.equal(code(3, 4, Positions(shift=2)), code.weight[7:11])
    assert code(3, 4, Positions(enabled=False)) is None
    for first, shift, absent in ((18, 0, 20), (0, -1, -1), (5, 14, 21)):
        with pytest.raises(ValueError, match=f"positions 0 to 19 only and has none for {absent}"):
            code(first, 3, Positions(shift=shift))
