"""T5 and its descendants: buckets of distances, planted mistakes, prefixes, sentinels, bytes, languages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import ByT5Tokenizer
from transformers.models.t5.modeling_t5 import T5Attention

from attention_atlas.model import checkpoint, convert
from attention_atlas.model.config import Activation, Norm
from attention_atlas.model.nets.positions import RelativePositions
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.tokens import TokenKind, is_prefix
from attention_atlas.model.translator import Translator
from attention_atlas.viz.maps import labels
from tests.conftest import SENTENCES, Malicious, refused
from tests.model.families import theirs
from tests.model.families.test_parity import close, inputs, run_theirs
from tests.model.families.test_tokenizers import strange_texts
from tests.model.families.theirs import PICKLE, WEIGHTS, edit

GATED = {"own_head": True, "feed_forward_proj": "gated-gelu"}


def saved_as(folder: Path, **changes):
    """The model of `transformers`, and our checkpoint of its folder."""
    model = theirs.t5(folder, **changes)
    model.save_pretrained(folder)
    return model, checkpoint.load(folder)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("t5") / "model"
    theirs.t5(folder).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def opened(saved) -> Translator:
    return Translator.load(saved, "cpu")


@pytest.mark.parametrize("both_ways", [True, False], ids=["encoder", "decoder"])
@pytest.mark.parametrize(("count", "reach"), [(32, 128), (16, 40)])
def test_buckets_agree_with_transformers(both_ways, count, reach, tiny_model):
    config = replace(tiny_model.config, position_code="relative", position_buckets=count, position_reach=reach)
    ours, distances = RelativePositions(config, both_ways=both_ways), torch.arange(-2048, 2049)
    expected = T5Attention._relative_position_bucket(distances, both_ways, count, reach)
    assert torch.equal(ours.bucket(distances), expected)
    if count == 32:  # as they stand in the paper's own code
        at = {-127: 15, -46: 13, -8: 8, 0: 0, 1: 17, 25: 27, 91: 31} if both_ways else {5: 0, -18: 16, -113: 31}
        assert {distance: int(ours.bucket(torch.tensor(distance))) for distance in at} == at


def in_layer_0_only(model: Transformer) -> None:
    for stack in (model.encoder, model.decoder):
        plain = stack.biases
        stack.biases = lambda *given, plain=plain: [plain(*given)[0], *[None] * (len(plain(*given)) - 1)]


def the_other_way(model: Transformer) -> None:
    for stack in (model.encoder, model.decoder):
        plain = stack.relative[0].bucket
        stack.relative[0].bucket = lambda distances, plain=plain: plain(-distances)


def both_ways_in_the_decoder(model: Transformer) -> None:
    table = RelativePositions(model.config, both_ways=True)
    table.weight = model.decoder.relative[0].weight
    model.decoder.relative[0] = table


def in_cross_attention_too(model: Transformer) -> None:
    for layer in model.decoder.layers:
        plain = layer.cross_attention.forward

        def biased(queries, keys, *rest, plain=plain, **more):
            bias = model.encoder.relative[0](0, queries.shape[2], keys.shape[2])
            return plain(queries, keys, *rest, **more, bias=bias)

        layer.cross_attention.forward = biased


def changed(**fields) -> Callable[[Transformer], Transformer]:
    def wrong(model: Transformer) -> Transformer:
        made = Transformer(replace(model.config, **fields)).eval()
        made.load_state_dict(model.state_dict(), strict=False)
        return made

    return wrong


MISTAKES = {
    "scores divided by sqrt(d_k)": ({}, changed(scale_scores=True)),
    "the bias in the first layer only": ({}, in_layer_0_only),
    "layer norms": ({}, changed(norm=Norm.LAYER)),
    "another epsilon": ({}, changed(norm_epsilon=1e-5)),
    "distances the other way": ({}, the_other_way),
    "an encoder's buckets in the decoder": ({}, both_ways_in_the_decoder),
    "embeddings times sqrt(d_model)": ({}, changed(scale_embedding=True)),
    "GELU with the error function": (GATED, changed(activation=Activation.GELU)),
    "no factor on a tied output": ({}, changed(scale_output=False)),
    "a factor on an output of its own": (GATED, changed(scale_output=True)),
    "the bias in cross-attention, too": ({}, in_cross_attention_too),
    "no gate": (GATED, changed(gated=False)),
    "one table for all layers": ({"kind": "UMT5"}, changed(layer_positions=False)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_changes_the_logits(mistake, tmp_path):
    changes, plant = MISTAKES[mistake]
    model, opened = saved_as(tmp_path, **changes)
    source, target = inputs(opened.model.config, 0)
    target = target.repeat(1, 3)  # distances of more than a bucket each
    expected = run_theirs(model, source, target).logits
    with torch.inference_mode():
        close(opened.model(source, target).logits, expected, 1e-5)
        wrong = plant(opened.model) or opened.model
        with pytest.raises(AssertionError, match="of the largest value"):
            close(wrong(source, target).logits, expected, 1e-5)


def test_a_prefix_is_a_direction_and_marked_in_every_map(opened):
    assert opened.directions == ("en-de", "text-summary", "source-target")
    text = SENTENCES[0]
    trace = opened.translate(text, "en-de")
    kinds = [token.kind for token in trace.source_tokens]
    count = kinds.count(TokenKind.PREFIX)
    assert kinds[:count] == [TokenKind.PREFIX] * count and TokenKind.PREFIX not in kinds[count:]
    spelled = "".join(trace.source_tokens[:count]).replace("\u2581", " ").strip()
    assert spelled.replace("<unk>", "") and spelled.endswith(("German:", ":<unk>", ":"))
    assert "".join(trace.source_tokens[count:-1]).replace("\u2581", " ").strip() == text
    assert labels.display(trace.source_tokens[0]).startswith("⟨")
    assert opened.tokenizer.decode_source(trace.source_ids) == text
    plain = opened.translate(text, "source-target")
    assert plain.source_ids == trace.source_ids[count:]
    assert TokenKind.PREFIX not in {token.kind for token in plain.source_tokens}


def test_sentinels_may_be_typed_and_nothing_else(opened):
    ids = opened.encode("Der <extra_id_0> schläft <extra_id_3>.", "source-target")
    sentinels = dict(opened.tokenizer.symbols.sentinels)
    assert [i for i in ids if i in sentinels.values()] == [sentinels["<extra_id_0>"], sentinels["<extra_id_3>"]]
    assert sentinels["<extra_id_0>"] == opened.config.vocabulary_size - 1
    assert 0 not in opened.encode("<pad> Hund </s>", "source-target")
    assert opened.tokenizer.decode([sentinels["<extra_id_0>"], *opened.tokenizer.encode("Hund")]) == "Hund"


def test_a_text_of_any_length_is_read(opened):
    """Buckets of positions reach any distance."""
    ids = opened.encode("Hund " * 300, "source-target")
    assert len(ids) > 600
    longer = opened.model.encode(torch.tensor([ids * 3])).memory
    assert longer.isfinite().all()


def test_bytes_have_ids_without_a_file(tmp_path):
    _, opened = saved_as(tmp_path, tokenizer_class="ByT5Tokenizer")
    their, ours = ByT5Tokenizer(extra_ids=theirs.SENTINELS), opened.tokenizer
    for text in strange_texts(2000):
        assert ours.encode_source(text, "target", "source") == their(text)["input_ids"], repr(text)
        assert ours.decode(ours.encode(text)) == text
    assert dict(ours.symbols.sentinels)["<extra_id_0>"] == their.convert_tokens_to_ids("<extra_id_0>")
    tokens = ours.in_words(ours.source_tokens(ours.encode_source("Die Kälte.", "target", "source"), "Die Kälte."))
    assert [str(token) for token in tokens[:6]] == ["D", "i", "e", "\u2581", "K", "<0xC3>"]
    assert tokens[5].kind is TokenKind.BYTE and [token.word for token in tokens[:5]] == [0, 0, 0, 1, 1]
    checkpoint.save(tmp_path / "ours", opened.model, ours, opened.directions, half=False)
    assert checkpoint.load(tmp_path / "ours").tokenizer.encode("Kälte") == ours.encode("Kälte")


def test_madlad_names_the_language_by_its_first_token(tmp_path):
    _, opened = saved_as(tmp_path, symbols="<2de> <2en> <2zh_Hans>", task_specific_params=None)
    ours, text = opened.tokenizer, "Der Hund schläft."
    assert {"de-en", "en-zh_Hans"} <= set(opened.directions) and "de-de" not in opened.directions
    ids = ours.encode_source(text, "zh_Hans", "de")
    assert ids[0] == ours.language_ids["zh_Hans"] and ids[1:-1] == ours.encode(text)
    assert ours.language_ids["de"] not in ours.encode_source(f"<2de> {text}", "en", "de")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"feed_forward_proj": "gated-tanh"}, "gated-tanh"),
        ({"feed_forward_proj": 3}, "feed_forward_proj 3"),
        ({"feed_forward_proj": "gated-gelu"}, "wi_0"),
        ({"d_kv": 2**40}, "head_width"),
        ({"num_heads": 5}, "expected [120, 64]"),
        ({"num_heads": 2**20}, "num_heads"),
        ({"num_layers": 60}, "lack"),
        ({"num_decoder_layers": "3"}, "num_decoder_layers"),
        ({"relative_attention_num_buckets": 3}, "position_buckets"),
        ({"relative_attention_num_buckets": 48}, "expected [48, 4]"),
        ({"relative_attention_max_distance": 2}, "position_reach"),
        ({"layer_norm_epsilon": "small"}, "norm_epsilon"),
        ({"layer_norm_epsilon": 0}, "norm_epsilon"),
        ({"model_type": "umt5", "architectures": ["UMT5ForConditionalGeneration"]}, "block.1.layer.0.SelfAttention"),
        ({"vocab_size": 60}, "the network has 60 tokens"),
        ({"vocab_size": 900}, "expected [900, 64]"),
        ({"scale_decoder_outputs": "yes"}, "scale_decoder_outputs"),
        ({"pad_token_id": -1}, "pad_id"),
        ({"d_model": None}, "d_model"),
    ],
)
def test_an_invalid_config_is_refused_with_its_value(folder, changes, word):
    edit(folder, **changes)
    refused(folder, word)


def test_a_missing_file_is_named_and_code_is_not_executed(folder, tmp_path):
    state = load_file(folder / WEIGHTS)
    table = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    save_file({name: tensor for name, tensor in state.items() if name != table}, folder / WEIGHTS)
    refused(folder, table)
    unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    save_file({**state, unused: torch.ones(32, 4)}, folder / WEIGHTS)
    checkpoint.load(folder)
    (folder / "spiece.model").write_bytes(b"no model")
    refused(folder, "SentencePiece")
    (folder / "spiece.model").unlink()
    refused(folder, "spiece.model is missing")
    (folder / WEIGHTS).unlink()
    torch.save({"shared.weight": torch.ones(2), "x": Malicious(tmp_path / "ran")}, folder / PICKLE)
    refused(folder, PICKLE, "not a pickle of tensors alone")
    assert not (tmp_path / "ran").exists()


def test_conversion_adds_a_users_prefix(saved, tmp_path):
    options = ["--prefix", "text-question=ask a question: ", "--out", str(tmp_path / "out")]
    convert.main([str(saved), *options])
    translator = Translator.load(tmp_path / "out", "cpu")
    assert translator.directions == ("text-question", "en-de", "text-summary", "source-target")
    tokens = translator.translate("Der Hund.", "text-question").source_tokens
    spelled = "".join(token.removesuffix("<unk>") for token in tokens if is_prefix(token))
    assert spelled.replace("\u2581", " ").strip() == "ask a question:"
    for wrong in ("question", "text-question=", "xx=yy"):
        with pytest.raises(ValueError, match=r"direction is two different|a prefix is given"):
            convert.add_prefixes(checkpoint.load(saved), [wrong])
