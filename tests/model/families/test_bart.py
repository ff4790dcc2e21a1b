"""BART, PEGASUS, Blenderbot: planted mistakes, vocabularies of merged bytes, refused folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from attention_atlas.model.config import Activation, PositionCode
from attention_atlas.model.text.splitters import HEADER, MergedBytes
from attention_atlas.model.trace.tokens import TokenKind
from attention_atlas.model.translator import Translator
from tests.conftest import refused
from tests.model.families import theirs
from tests.model.families.test_parity import seen
from tests.model.families.theirs import WEIGHTS, edit


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bart") / "model"
    theirs.bart(folder, forced_bos_token_id=0).save_pretrained(folder)
    return folder


MISTAKES = {
    "pre-norm": (theirs.bart, {"norm_first": True}),
    "no norm on embeddings": (theirs.bart, {"norm_embedding": False}),
    "positions from 0": (theirs.bart, {"position_offset": 0, "max_length": 42}),
    "ReLU": (theirs.bart, {"activation": Activation.RELU}),
    "GELU by a tangent": (theirs.bart, {"activation": Activation.GELU_TANH}),
    "no bias on the logits": (theirs.bart, {"logits_bias": False}),
    "PEGASUS post-norm": (theirs.pegasus, {"norm_first": False}),
    "PEGASUS from 2": (theirs.pegasus, {"position_offset": 2}),
    "PEGASUS interleaved": (theirs.pegasus, {"position_code": PositionCode.INTERLEAVED}),
    "Blenderbot post-norm": (theirs.blenderbot, {"norm_first": False}),
    "Blenderbot-small's norm behind positions": (theirs.blenderbot_small, {"norm_before_positions": False}),
    "one number of heads": (theirs.bart, {"decoder_num_heads": None}, {"decoder_attention_heads": 2}),
    "Blenderbot's positions from 2": (theirs.blenderbot, {"position_offset": 2, "max_length": 38}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_changes_the_logits(mistake, tmp_path):
    make, changes, *of_theirs = MISTAKES[mistake]
    seen(make(tmp_path, **dict(*of_theirs)), changes, tmp_path, by=1e-5)


def test_forced_symbols_begin_every_text_and_pieces_are_readable(saved):
    translator = Translator.load(saved, "cpu")
    trace = translator.translate("Der Hund, 漢!")
    assert trace.target_ids[0] == 0 and trace.source_ids[0] == 0 and trace.source_ids[-1] == 2
    tokens = [str(token) for token in trace.source_tokens]
    assert tokens[1].startswith("D") and any(piece.startswith("\u2581") for piece in tokens)
    assert [t.kind for t in trace.source_tokens].count(TokenKind.BYTE) >= 1 and not any("\u0120" in t for t in tokens)
    assert translator.tokenizer.decode_source(trace.source_ids) == "Der Hund, 漢!"


def test_a_word_of_20000_letters_is_split():
    merges = "\n".join([HEADER, "a a", "aa aa", "aaaa aaaa"])
    assert len(MergedBytes(merges).split("a" * 20_001)) == 2501


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("merges.txt", b"#version: 0.2\na b c\n", "two pieces"),
        ("merges.txt", b"\xff\xfe", "not UTF-8"),
        ("vocab.json", b'{"<unk>": 3, "a": "1"}', "must be a whole number"),
        ("vocab.json", b'{"a": 1}', "no <unk>"),
        ("vocab.json", b"[]", "JSON object"),
        ("vocab.json", b'{"<unk>": 300000, "a": 1}', "the network has"),
        ("config.json", None, "is missing"),
        ("merges.txt", None, "merges.txt is missing"),
    ],
)
def test_damaged_files_are_refused_by_name(folder, name, content, word):
    theirs.damage(folder, name, content)
    refused(folder, word)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"max_position_embeddings": 50}, "expected [52, 64]"),
        ({"decoder_layers": 5}, "lack"),
        ({"model_type": "pegasus", "architectures": ["PegasusForConditionalGeneration"]}, "spiece.model"),
        ({"model_type": "led", "architectures": ["x"]}, "windows"),
        ({"decoder_attention_heads": 3}, "d_model 64 is not divisible by num_heads 3"),
        ({"decoder_ffn_dim": 48}, "expected [48]"),
        ({"activation_function": "mish"}, "mish"),
    ],
)
def test_an_invalid_config_is_refused_with_its_value(folder, changes, word):
    edit(folder, **changes)
    refused(folder, word)


def test_a_table_of_positions_that_is_missing_is_named(folder):
    state = load_file(folder / WEIGHTS)
    save_file({n: t for n, t in state.items() if "decoder.embed_positions" not in n}, folder / WEIGHTS)
    refused(folder, "model.decoder.embed_positions.weight")
