"""Traces of models of transformers agree with its own attention while it generates."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from attention_atlas import viz
from attention_atlas.model.foreign import trace_of
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.decoding import GREEDY, Decoding
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.words import word_groups
from attention_atlas.viz.export.standalone import from_html, to_html
from tests.conftest import SENTENCES
from tests.pages import block

TEXT = "Zwei Kinder bauen eine Burg 漢."
SYMBOLS = ["<pad>", "</s>", "<unk>", "<s>"]
SIZES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 80,
}
IDS = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 3}


def tokenizer_of(*, byte_level: bool = False) -> transformers.PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE() if byte_level else models.Unigram())
    if byte_level:
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=330,
            special_tokens=SYMBOLS,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
    else:
        made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=150, special_tokens=SYMBOLS, unk_token="<unk>", show_progress=False
        )
    made.train_from_iterator(SENTENCES * 3, trainer)
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", bos_token="<s>"
    )


T5_SIZES = {"d_model": 32, "d_kv": 12, "d_ff": 40, "num_layers": 3, "num_heads": 4, "decoder_start_token_id": 0}
GEMMA = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
BERT = {"hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4}


def config_of(name: str, size: int):
    """Return the config of a tiny model of a family."""
    both, start = {**IDS, **SIZES, "vocab_size": size}, {"decoder_start_token_id": 3}
    bert = [transformers.BertConfig(vocab_size=size, **BERT, **decoder) for decoder in ({}, {"is_decoder": True})]
    t5 = {"vocab_size": size, "pad_token_id": 0, "eos_token_id": 1, **T5_SIZES}
    gemma = {"vocab_size": size, **GEMMA}
    makers = {
        "t5": lambda: transformers.T5Config(**t5),
        "bart": lambda: transformers.BartConfig(
            **both, decoder_start_token_id=1, forced_bos_token_id=3, forced_eos_token_id=1
        ),
        "pegasus": lambda: transformers.PegasusConfig(**both, decoder_start_token_id=0, forced_eos_token_id=1),
        "plbart": lambda: transformers.PLBartConfig(**{**both, "max_position_embeddings": 160}, **start),
        "bert2bert": lambda: transformers.EncoderDecoderConfig.from_encoder_decoder_configs(*bert, **start, **IDS),
        "switch": lambda: transformers.SwitchTransformersConfig(**t5, num_experts=2),
        "nllb-moe": lambda: transformers.NllbMoeConfig(
            **both, **start, num_experts=2, encoder_sparse_step=1, decoder_sparse_step=1
        ),
        "t5gemma": lambda: transformers.T5GemmaConfig(encoder=gemma, decoder=gemma, vocab_size=size, **IDS),
        "fsmt": lambda: transformers.FSMTConfig(
            langs=["de", "en"], src_vocab_size=size, tgt_vocab_size=size, **IDS, **SIZES, **start
        ),
        "bigbird": lambda: transformers.BigBirdPegasusConfig(**both, **start, attention_type="original_full"),
        "led": lambda: transformers.LEDConfig(**both, **start, attention_window=4, max_encoder_position_embeddings=80),
        "longt5": lambda: transformers.LongT5Config(**t5, local_radius=4),
        "prophetnet": lambda: transformers.ProphetNetConfig(
            vocab_size=size,
            hidden_size=32,
            encoder_ffn_dim=48,
            decoder_ffn_dim=48,
            num_encoder_layers=2,
            num_decoder_layers=2,
            num_encoder_attention_heads=4,
            num_decoder_attention_heads=4,
            max_position_embeddings=80,
            **IDS,
            **start,
        ),
    }
    return makers[name]()


def tiny(name: str, tokenizer):
    torch.manual_seed(3)
    config = config_of(name, len(tokenizer))
    return transformers.AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager").eval()


@pytest.fixture(scope="module", params=["t5", "bart", "pegasus"])
def theirs(request):
    tokenizer = tokenizer_of(byte_level=request.param == "bart")
    model = tiny(request.param, tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model, tokenizer


def test_maps_agree_with_generation(theirs):
    model, tokenizer = theirs
    trace = trace_of(model, tokenizer, TEXT, max_new_tokens=9)
    source = tokenizer(TEXT, return_tensors="pt")
    generated = model.generate(
        **source, num_beams=1, do_sample=False, max_new_tokens=9, output_attentions=True, return_dict_in_generate=True
    )
    assert trace.target_ids == tuple(generated.sequences[0, 1:].tolist()) and trace.decoding == GREEDY
    assert trace.decoder_ids == tuple(generated.sequences[0, :-1].tolist())
    encoder = torch.stack(generated.encoder_attentions)[:, 0].numpy()
    np.testing.assert_allclose(trace.encoder_self.weights, encoder, atol=1e-5)
    for step, (selves, crosses) in enumerate(zip(generated.decoder_attentions, generated.cross_attentions)):
        for layer, (own, across) in enumerate(zip(selves, crosses)):
            ours = trace.decoder_self.weights[layer, :, step, : step + 1]
            np.testing.assert_allclose(ours, own[0, :, -1].numpy(), atol=1e-5)
            np.testing.assert_allclose(trace.cross.weights[layer, :, step], across[0, :, -1].numpy(), atol=1e-5)
    assert trace.translation == tokenizer.decode(generated.sequences[0], skip_special_tokens=True).strip()


def test_tokens_have_kinds_and_words_and_the_trace_is_marked_attention_only(theirs):
    model, tokenizer = theirs
    trace = trace_of(model, tokenizer, TEXT, target="Two children 漢", direction="de-en")
    assert trace.attention_only and trace.decoding == Decoding(given=len(trace.target_ids)) and trace.finished
    assert is_symbol(trace.source_tokens[-1]) and is_symbol(trace.decoder_inputs[0])
    spelled = ["".join(trace.source_tokens[i] for i in group).strip("▁") for group in word_groups(trace.source_tokens)]
    assert spelled[:5] == ["Zwei", "Kinder", "bauen", "eine", "Burg"]
    output = model(**tokenizer(TEXT, return_tensors="pt"), decoder_input_ids=torch.tensor([trace.decoder_ids]))
    expected = output.logits[0].log_softmax(-1)[range(len(trace.target_ids)), list(trace.target_ids)].detach()
    np.testing.assert_allclose(trace.log_probability, expected, atol=1e-4)


def test_a_foreign_trace_can_be_drawn_saved_and_opened(theirs):
    model, tokenizer = theirs
    trace = trace_of(model, tokenizer, TEXT, max_new_tokens=5)
    reloaded = storage.from_npz(storage.to_npz(trace))
    assert reloaded.attention_only
    assert not storage.from_json(storage.to_json(replace(trace, attention_only=False))).attention_only
    drawn = viz.plot_heatmap(reloaded, viz.View("cross", layer=2, head=1))
    np.testing.assert_allclose(np.asarray(drawn.data[0].z), trace.cross.weights[2, 1], atol=1e-6)
    page = to_html(trace)
    assert "attention_only" in page
    assert (from_html(page)[AttentionKind.CROSS] == trace.cross.weights).all()


def test_models_without_maps_are_refused(theirs):
    model, tokenizer = theirs
    model.train() if model.config.model_type == "t5" else model.set_attn_implementation("sdpa")
    with pytest.raises(ValueError, match=r"eager|training"):
        trace_of(model, tokenizer, TEXT)
    model.set_attn_implementation("eager")
    model.eval()
    decoder = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1))
    with pytest.raises(ValueError, match="no encoder and decoder"):
        trace_of(decoder, tokenizer, TEXT)


@pytest.mark.parametrize("name", ["plbart", "bert2bert", "switch", "nllb-moe", "t5gemma", "fsmt", "bigbird"])
def test_families_with_maps_of_tokens_are_traced(name):
    tokenizer = tokenizer_of()
    trace = trace_of(tiny(name, tokenizer), tokenizer, TEXT, target="Two children")
    assert trace.cross.weights.shape[2:] == (len(trace.target_ids), len(trace.source_ids))


@pytest.mark.parametrize("name", ["led", "longt5", "prophetnet"])
def test_families_with_other_maps_are_refused(name):
    """LED is refused even if its window + 1 offsets are as many as the tokens."""
    tokenizer = tokenizer_of()
    model = tiny(name, tokenizer)
    five = next(text for n in range(1, 9) if len(tokenizer(text := "z" * n)["input_ids"]) == 5)
    for text in (TEXT, five):
        with pytest.raises(ValueError, match=r"maps"):
            trace_of(model, tokenizer, text, target="Two children")


def test_the_documented_example_runs(tmp_path, monkeypatch):
    """On a tiny PLBart in place of the public one."""
    tokenizer = tokenizer_of()
    tiny("plbart", tokenizer).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    code = block("docs/how-to/own-model.md", "python", "trace_of")
    name = re.search(r'name = "(.*)"', code)
    assert name
    monkeypatch.chdir(tmp_path)
    exec(code.replace(name[1], str(tmp_path / "tiny")), {})
    assert (tmp_path / "plbart.html").stat().st_size > 10_000
