"""Logits, maps, greedy decoding and beams agree with `transformers`, in one pass and token by token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from attention_atlas.model import checkpoint
from attention_atlas.model.config import Activation, ModelConfig, PositionCode
from attention_atlas.model.decode.steps import StepDecoder, greedy
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.translator import Translator
from tests.model.families import theirs


def heads(count: int, **changes) -> dict:
    """Return the changes of a config for this number of heads."""
    return {"encoder_attention_heads": count, "decoder_attention_heads": count, **changes}


# In each family every activation, heads of 8, 16, 32 and 64 numbers, and sides of unequal depth; Marian's vocabularies.
CASES = {
    "marian": (theirs.marian, {}),
    "marian relu, heads of 8": (theirs.marian, heads(8, activation_function="relu")),
    "marian gelu, heads of 32, deep": (
        theirs.marian,
        heads(2, activation_function="gelu", encoder_layers=4, decoder_layers=1),
    ),
    "marian separate vocabularies": (theirs.marian, {"separate": True}),
    "marian heads of 64": (theirs.marian, heads(1, scale_embedding=False)),
    "m2m100": (theirs.m2m100, {}),
    "m2m100 gelu, heads of 8": (theirs.m2m100, heads(8, activation_function="gelu")),
    "nllb, heads of 32": (theirs.nllb, heads(2, encoder_layers=1)),
    "nllb swish, heads of 64": (theirs.nllb, heads(2, activation_function="swish", d_model=128)),
    "mbart": (theirs.mbart, {}),
    "mbart swish, heads of 8": (
        theirs.mbart,
        heads(8, activation_function="swish", encoder_layers=3, decoder_layers=2),
    ),
    "mbart gelu, heads of 64": (theirs.mbart, heads(1, activation_function="gelu")),
    "t5": (theirs.t5, {}),
    "t5 v1.1": (theirs.t5, {"own_head": True, "feed_forward_proj": "gated-gelu", "num_heads": 6, "d_kv": 8}),
    "t5, gelu, deep": (theirs.t5, {"feed_forward_proj": "gelu", "num_layers": 4, "num_decoder_layers": 1}),
    "mt5": (theirs.t5, {"kind": "MT5", "own_head": True}),
    "umt5": (theirs.t5, {"kind": "UMT5", "relative_attention_num_buckets": 16, "relative_attention_max_distance": 40}),
    "byt5": (theirs.t5, {"tokenizer_class": "ByT5Tokenizer", "feed_forward_proj": "gated-gelu", "own_head": True}),
    "bart": (theirs.bart, {}),
    "bart that begins with <s>": (theirs.bart, heads(2, scale_embedding=True, forced_bos_token_id=0)),
    "pegasus": (theirs.pegasus, {"scale_embedding": True, "activation_function": "relu"}),
    "blenderbot": (theirs.blenderbot, heads(8, scale_embedding=True, encoder_layers=1)),
    "blenderbot-small": (theirs.blenderbot_small, {}),
    "bart of unequal sides": (theirs.bart, {"decoder_attention_heads": 2, "decoder_ffn_dim": 48}),
    "m2m100 of unequal sides": (theirs.m2m100, {"encoder_attention_heads": 2, "encoder_ffn_dim": 48}),
    "mbart cc25, heads of 32": (theirs.mbart, heads(2, decoder_start_token_id=4 + 87 + 19, activation_function="gelu")),
}
TEXTS = 50
BEAMS = ("t5", "bart that begins with <s>", "pegasus")
MORE_BEAMS = ("umt5", "bart", "bart of unequal sides", "blenderbot", "blenderbot-small")
SOURCES = [[12, 20, 31, 45, 20, 61, 33, 8, 2], [9, 21, 60, 17, 2], [70, 2]]


def inputs(config: ModelConfig, start: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return padded sources of three lengths, and decoder inputs."""
    torch.manual_seed(9)
    target = torch.randint(6, config.num_target_tokens, (3, 7))
    return pad(SOURCES, config.pad_id), torch.cat((torch.full((3, 1), start), target), dim=1)


@pytest.fixture(scope="module", params=CASES, ids=str)
def pair(request, tmp_path_factory) -> tuple[PreTrainedModel, checkpoint.Checkpoint]:
    """The model of `transformers`, and our checkpoint of its folder."""
    make, changes = CASES[request.param]
    folder = tmp_path_factory.mktemp("theirs") / "model"
    model = make(folder, **changes)
    model.save_pretrained(folder)
    return model, checkpoint.load(folder)


def run_theirs(model: PreTrainedModel, source: torch.Tensor, target: torch.Tensor):
    with torch.no_grad():
        return model(
            input_ids=source,
            attention_mask=(source != model.config.pad_token_id).long(),
            decoder_input_ids=target,
            output_attentions=True,
        )


def close(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    error = float((actual - expected).abs().max() / expected.abs().max())
    assert error <= tolerance, f"{error:.2g} of the largest value"


def compare(model: PreTrainedModel, ours: Transformer, tolerance: float) -> None:
    source, target = inputs(ours.config, model.config.decoder_start_token_id)
    expected = run_theirs(model, source, target)
    with torch.inference_mode():
        output = ours(source, target, record=True)
    close(output.logits, expected.logits, tolerance)
    for row, ids in enumerate(SOURCES):  # of padded rows nobody reads anything
        size = len(ids)
        for record, weights in zip(output.encoder_records, expected.encoder_attentions, strict=True):
            close(record.self_attention.weights[row, :, :size], weights[row, :, :size], tolerance)
    for record, own, cross in zip(
        output.decoder_records, expected.decoder_attentions, expected.cross_attentions, strict=True
    ):
        close(record.self_attention.weights, own, tolerance)
        close(record.cross_attention.weights, cross, tolerance)
    for recorded in (True, False):  # token by token over the cache; without records, by the cached step
        decoder = StepDecoder(ours, ours.encode(source), target[:, :1], record=recorded)
        for step in range(target.shape[1]):
            if step:
                decoder.append(target[:, step])
            close(decoder.logits, expected.logits[:, step], tolerance)
            for record, own, cross in zip(
                decoder.records, expected.decoder_attentions, expected.cross_attentions, strict=recorded
            ):
                close(record.self_attention.weights[:, :, 0], own[:, :, step, : step + 1], tolerance)
                close(record.cross_attention.weights[:, :, 0], cross[:, :, step], tolerance)


def test_logits_and_all_maps_agree_with_transformers(pair, monkeypatch):
    model, opened = pair
    compare(model, opened.model, 1e-5)
    try:
        theirs.in_their_own_precision(model, monkeypatch)
        compare(model.double(), opened.model.double(), 1e-12)
    finally:
        model.float()
        opened.model.float()


def test_greedy_decoding_agrees_with_transformers(pair):
    model, opened = pair
    torch.manual_seed(4)
    config, tokenizer = opened.model.config, opened.tokenizer
    sources = [[*torch.randint(6, 75, (int(n),)).tolist(), tokenizer.end_id] for n in torch.randint(1, 12, (TEXTS,))]
    prefix = tokenizer.forced_prefix(opened.directions[0].split("-")[1])
    first = prefix[0] if prefix else None
    expected = theirs.generate(model, sources, config.pad_id, 18, num_beams=1, forced_bos_token_id=first)
    ends = {"begin_id": tokenizer.begin_id, "end_id": tokenizer.end_id}
    with torch.inference_mode():
        memory = opened.model.encode(pad(sources, config.pad_id))
        generated = greedy(opened.model, memory, [18 - len(prefix)] * TEXTS, prefix=prefix, **ends)
    for mine, their in zip(generated, expected):
        whole = [tokenizer.begin_id, *prefix, *mine]
        if model.config.model_type == "m2m_100" and config.pad_id in mine:
            # A random model may write <pad>, which has no position in theirs: what follows it is another text.
            whole = whole[: whole.index(config.pad_id) + 1]
            assert whole == their[: len(whole)]
            continue
        assert whole == their[: len(whole)]
        assert set(their[len(whole) :]) <= {config.pad_id}


@pytest.mark.parametrize("family", [*BEAMS, *(pytest.param(one, marks=pytest.mark.long) for one in MORE_BEAMS)])
def test_beams_of_four_agree_with_transformers(family, tmp_path):
    """Hypotheses have exactly 18 tokens: the rules for ending a search differ."""
    make, changes = CASES[family]
    model, folder = make(tmp_path / "model", **changes), tmp_path / "model"
    model.generation_config.forced_eos_token_id = None
    end = model.config.eos_token_id
    model.generation_config.suppress_tokens = [end]
    model.save_pretrained(folder)
    translator = Translator.load(folder, "cpu")
    model.generation_config.suppress_tokens = list(translator.config.banned_ids)  # those, too, that have no piece
    assert end in translator.config.banned_ids
    torch.manual_seed(4)
    sources = [[*torch.randint(6, 75, (int(n),)).tolist(), end] for n in torch.randint(1, 30, (TEXTS,))]
    translator.step_limit = lambda length: 18
    options = {"num_beams": 4, "length_penalty": 0.0, "renormalize_logits": True}
    expected = theirs.generate(model, sources, translator.config.pad_id, 18, **options)
    begin = translator.tokenizer.begin_id
    searches = translator.beam(sources, translator.directions[0], width=4)
    assert [[begin, *search.hypotheses[0].ids] for search in searches] == expected


# The mistakes that are easiest to make in reading these families.
MISTAKES = {
    "bias forgotten": ("marian", {"logits_bias": False}),
    "interleaved table": ("marian", {"position_code": PositionCode.INTERLEAVED}),
    "no square root of the width": ("marian", {"scale_embedding": False}),
    "ReLU for SiLU": ("marian", {"activation": Activation.RELU}),
    "GELU for SiLU": ("marian", {"activation": Activation.GELU}),
    "pre-norm": ("marian", {"norm_first": True}),
    "positions from 0": ("m2m100", {"position_offset": 0}),
    "the paper's wavelengths": ("m2m100", {"position_code": PositionCode.HALVES}),
    "learned positions from 0": ("mbart", {"position_offset": 0, "max_length": 42}),
    "no norm on embeddings": ("mbart", {"norm_embedding": False}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_changes_the_logits(mistake, tmp_path):
    family, changes = MISTAKES[mistake]
    seen(theirs.FAMILIES[family](tmp_path), changes, tmp_path, by=1e-3)


def seen(model: PreTrainedModel, changes: dict, folder: Path, *, by: float) -> None:
    """Assert that a model's logits agree with ours, and with a changed config differ by more than `by`."""
    model.save_pretrained(folder)
    right = checkpoint.load(folder).model
    wrong = Transformer(replace(right.config, **changes)).eval()
    wrong.load_state_dict(right.state_dict(), strict=False)
    source, target = inputs(right.config, model.config.decoder_start_token_id)
    expected = run_theirs(model, source, target).logits
    with torch.inference_mode():
        close(right(source, target).logits, expected, 1e-5)
        with pytest.raises(AssertionError, match="of the largest value"):
            close(wrong(source, target).logits, expected, by)


def test_an_opened_model_is_saved_in_our_form_and_reloaded(pair, tmp_path: Path):
    _, opened = pair
    folder = tmp_path / "ours"
    checkpoint.save(folder, opened.model, opened.tokenizer, opened.directions, half=False)
    reloaded = checkpoint.load(folder)
    assert reloaded.model.config == opened.model.config and reloaded.directions == opened.directions
    for name, tensor in opened.model.state_dict().items():
        assert torch.equal(reloaded.model.state_dict()[name], tensor), name
    source, target = opened.directions[0].split("-")
    before, after = opened.tokenizer, reloaded.tokenizer
    text = "Der kleine Hund malt 漢 </s>"
    assert after.encode_source(text, target, source) == before.encode_source(text, target, source)
    assert after.symbols == before.symbols and after.pieces == before.pieces
