"""Networks built without a part of the paper's: decoding, checks and experiments follow it or refuse it by name."""

from __future__ import annotations

import pytest
import torch

from attention_atlas.model.analysis import head_loop
from attention_atlas.model.analysis.why.attribution import attribute
from attention_atlas.model.checks import verify
from attention_atlas.model.checks.evidence import Evidence
from attention_atlas.model.checks.oracle import torch_layer
from attention_atlas.model.config import PARTS, ModelConfig
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES, build_tiny_model, make_translator
from tests.model.nets.test_options import SIZES, SOURCE, TARGET, check_steps


def without(tokenizer, part: str, **changes) -> Translator:
    return make_translator(build_tiny_model(tokenizer, **{part: False, **changes}), tokenizer)


@pytest.mark.parametrize("part", ["scale_scores", "residual"])
def test_cached_decoding_without_a_part_equals_the_full_pass(tokenizer, part, norm_first):
    model = without(tokenizer, part, norm_first=norm_first).model
    plain = build_tiny_model(tokenizer, norm_first=norm_first)
    assert (plain(SOURCE, TARGET).logits - model(SOURCE, TARGET).logits).abs().max() > 1e-2, "nothing is missing"
    for record in (False, True):
        assert (check_steps(model, record=record).step is None) is record


def test_without_the_look_ahead_mask_rows_attend_to_later_tokens_but_not_to_padding(tokenizer):
    model, target = without(tokenizer, "look_ahead_mask").model, torch.tensor([[1, 30, 41, 52, 30], [1, 33, 44, 0, 0]])
    output = model(SOURCE, target, record=True)
    weights = output.weights(AttentionKind.DECODER_SELF)  # [layers, batch, heads, query, key]
    assert (weights[:, 0] > 0).all() and (weights[:, 1, :, :, 3:] == 0).all() and (weights[:, 1, :, :, :3] > 0).all()
    torch.testing.assert_close(model(SOURCE[1:, :4], target[1:, :3]).logits[0], output.logits[1, :3], atol=1e-4, rtol=0)
    # Decoding has no later tokens: it equals the same weights with a mask.
    masked, decoder = build_tiny_model(tokenizer), StepDecoder(model, model.encode(SOURCE), TARGET[:, :1])
    for step in range(1, 5):
        decoder.append(TARGET[:, step])
        torch.testing.assert_close(decoder.logits, masked(SOURCE, TARGET).logits[:, step], atol=1e-4, rtol=0)
        assert (decoder.logits - model(SOURCE, TARGET).logits[:, step]).abs().max() > 1e-2


@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("scale_scores", set()),
        (
            "look_ahead_mask",
            {
                "Masked cells are 0",
                "Nothing looks ahead",
                "Cached logits = one pass",
                "Cached weights = one pass",
                "Probabilities match the model",
                "Masked attention = torch's",
                "Masked weights = torch's",
                "Whole stack = torch's",
            },
        ),
        (
            "residual",
            {
                "Encoder layer = torch's",
                "Decoder layer = torch's",
                "Masked layers = torch's",
                "Whole stack = torch's",
            },
        ),
    ],
)
def test_verify_fails_exactly_the_checks_that_a_missing_part_breaks(tokenizer, part, broken):
    translator = without(tokenizer, part)
    results = list(verify.verify(translator, translator.translate(SENTENCES[0])))
    # Ten times the tolerance: scores four times as large round four times as coarsely in this random model.
    assert {result.name for result in results if not result.error <= 10 * result.tolerance} == broken
    if part == "residual":
        assert "this network has none" in {result.detail for result in results if not result.passed}.pop()


@pytest.mark.parametrize("hidden", ["tgt_key_padding_mask", "memory_key_padding_mask"])
def test_the_padding_of_target_and_memory_decides_what_torchs_decoder_layers_read(tokenizer, monkeypatch, hidden):
    """The network has no look-ahead mask, under which no real token would see padding of the target."""
    translator = without(tokenizer, "look_ahead_mask")
    (check,) = (check for check in verify.CHECKS if check.name == "Masked layers = torch's")
    trace = translator.translate(SENTENCES[0])
    evidence = Evidence(translator, trace, translator.inspect(trace), {})
    assert check.measure(evidence)[0] <= check.tolerance
    honest = torch.nn.TransformerDecoderLayer.forward
    monkeypatch.setattr(
        torch.nn.TransformerDecoderLayer,
        "forward",
        lambda self, *inputs, **masks: honest(self, *inputs, **masks | {hidden: None}),
    )
    assert check.measure(evidence)[0] > 10 * check.tolerance


@pytest.mark.parametrize("part", PARTS)
def test_attributions_refuse_a_network_without_a_part(tokenizer, part):
    translator = without(tokenizer, part)
    trace = translator.translate(SENTENCES[0])
    with pytest.raises(ValueError, match=f"built without {part}"):
        attribute(translator, trace, step=0)


def test_the_loop_over_heads_follows_a_missing_part(tokenizer):
    for part in ("scale_scores", "look_ahead_mask"):
        translator = without(tokenizer, part)
        trace = translator.translate(SENTENCES[0])
        output = translator.inspect(trace)
        inputs = head_loop.find_attention_input(translator, output, AttentionKind.DECODER_SELF, 1)
        assert head_loop.compare_loop(inputs).output_difference < 1e-5
        _, weights = head_loop.attend_by_head(inputs)
        torch.testing.assert_close(weights, output.attention(AttentionKind.DECODER_SELF, 1).weights, atol=1e-5, rtol=0)


def test_without_positions_the_encoder_does_not_depend_on_order(tokenizer):
    model = build_tiny_model(tokenizer, position_code="none")
    order, ids = torch.tensor([3, 0, 2, 1]), torch.tensor([[4, 20, 31, 45]])
    shuffled = model.encode(ids[:, order]).memory
    torch.testing.assert_close(model.encode(ids).memory[:, order], shuffled, atol=1e-5, rtol=0)
    check_steps(model, record=False)


def test_parts_are_booleans_and_torch_has_no_layer_without_residuals():
    with pytest.raises(ValueError, match="residual must be true or false, found 'no'"):
        ModelConfig(**SIZES, residual="no")
    config = ModelConfig(**SIZES, residual=False, scale_scores=False)
    assert config.without == ("scale_scores", "residual")
    with pytest.raises(ValueError, match="this network has none"):
        torch_layer(None, config)
