"""Hostile folders are refused without executing anything: code, false sizes, links out, impossible configs."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_atlas.model import checkpoint
from tests.conftest import Malicious, refused
from tests.model.families import theirs
from tests.model.families.theirs import PICKLE, WEIGHTS, edit


def test_a_pickle_with_code_is_refused_without_executing_it(folder, tmp_path):
    (folder / WEIGHTS).unlink()
    for zipped in (True, False):
        torch.save(
            {"model.shared.weight": torch.ones(2), "x": Malicious(tmp_path / "ran")},
            folder / PICKLE,
            _use_new_zipfile_serialization=zipped,
        )
        message = refused(folder, PICKLE, "not a pickle of tensors alone")
        assert "weights_only" not in message and ("it names" in message or "UnpicklingError" in message)
    (folder / PICKLE).write_bytes(pickle.dumps(Malicious(tmp_path / "ran")))
    refused(folder, PICKLE)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({"state_dict": {"a": torch.ones(2)}}, "found dict under 'state_dict'"),
        ([torch.ones(2)], "found list"),
        ({}, "dict"),
        ({"a": "text"}, "found str"),
        ({1: torch.ones(2)}, "under 1"),
    ],
)
def test_a_pickle_of_something_else_is_refused(folder, value, word):
    (folder / WEIGHTS).unlink()
    torch.save(value, folder / PICKLE)
    refused(folder, PICKLE, word)


def test_tensors_larger_than_their_file_are_refused_before_memory_is_taken(folder):
    """Tensors of stride 0: a file of kilobytes claims gigabytes."""
    state = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    wide = 2**17
    for name in list(state):
        if ".fc1." in name or ".fc2.weight" in name:
            shape = (wide, 64) if name.endswith("fc1.weight") else (wide,) if name.endswith("fc1.bias") else (64, wide)
            state[name] = torch.zeros(1).expand(shape)
    torch.save(state, folder / PICKLE)
    edit(folder, encoder_ffn_dim=wide, decoder_ffn_dim=wide)
    refused(folder, PICKLE, "bytes of numbers")


@pytest.mark.parametrize("keep", [0, 5, 300, -7])
def test_a_truncated_file_is_refused(folder, keep):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:keep])
    refused(folder, WEIGHTS, "not a whole safetensors file")
    (folder / WEIGHTS).unlink()
    torch.save({"a": torch.ones(9)}, folder / PICKLE)
    (folder / PICKLE).write_bytes((folder / PICKLE).read_bytes()[:keep])
    refused(folder, PICKLE)


def test_tensors_that_are_unknown_missing_or_misshapen_are_named(folder):
    path, name = folder / WEIGHTS, "model.decoder.layers.2.encoder_attn.k_proj.weight"
    state = load_file(path)
    gate = "model.decoder.layers.2.gate.weight"
    for tensors, words in (
        ({**state, gate: torch.ones(2)}, (gate, "this family does not")),
        ({n: t for n, t in state.items() if n != name}, (name, "lack 1 tensors")),
        ({**state, name: state[name][:, :60].contiguous()}, (name, "[64, 60], expected [64, 64]")),
        ({**state, name: state[name].int()}, (name, "not finite")),
        ({**state, name: state[name] * float("nan")}, (name, "not finite")),
    ):
        save_file(tensors, path)
        refused(folder, *words)
    unused = ("model.encoder.version", "model.decoder._float_tensor", "model.encoder.embed_positions.weights")
    save_file({**state, **{name: torch.ones(2) for name in unused}}, path)
    checkpoint.load(folder)


@pytest.mark.parametrize(
    "shard",
    [
        "../outside.safetensors",
        "/etc/model.safetensors",
        "sub/model.safetensors",
        "..",
        "",
        "absent.safetensors",
        "a\\b.safetensors",
        "config.json",
        "evil.bin",
    ],
)
def test_shards_are_plain_names_of_files_in_the_folder(folder, shard):
    shutil.copy(folder / WEIGHTS, folder.parent / "outside.safetensors")
    (folder / "sub").mkdir()
    shutil.move(folder / WEIGHTS, folder / "sub" / WEIGHTS)
    (folder / "evil.bin").write_bytes(b"")
    theirs.write(folder / f"{WEIGHTS}.index.json", {"weight_map": {"model.shared.weight": shard}})
    refused(folder, "copy")


def test_links_are_followed_into_the_hubs_cache_and_to_safetensors(saved, folder, tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    shutil.move(folder / WEIGHTS, outside / "abc")
    (folder / WEIGHTS).symlink_to(outside / "abc")
    checkpoint.load(folder)
    shutil.move(folder / "vocab.json", outside / "vocab.json")
    (folder / "vocab.json").symlink_to(outside / "vocab.json")
    refused(folder, "vocab.json", "leads out of the folder")
    (folder / "vocab.json").unlink()
    shutil.move(outside / "vocab.json", folder / "vocab.json")
    (folder / WEIGHTS).unlink()
    torch.save({"a": torch.ones(2)}, outside / PICKLE)
    (folder / PICKLE).symlink_to(outside / PICKLE)
    refused(folder, PICKLE, "leads out of the folder")
    hub = tmp_path / "models--own--opus-mt-de-en"
    (hub / "blobs").mkdir(parents=True)
    snapshot = hub / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    for file in saved.iterdir():
        shutil.copy(file, hub / "blobs" / f"digest-of-{file.name}")
        (snapshot / file.name).symlink_to(Path("../../blobs") / f"digest-of-{file.name}")
    assert checkpoint.load(snapshot).directions == ("de-en",)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "t5", "architectures": ["T5EncoderModel"]}, ("'t5'", "T5EncoderModel")),
        ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, ("num_layers",)),
        ({"model_type": "bart", "architectures": ["BartModel"]}, ("'bart'", "not supported")),
        ({"model_type": "pegasus"}, ("'pegasus'",)),
        ({"model_type": "nllb-moe"}, ("mixture of experts",)),
        ({"model_type": ["marian"]}, ("not supported",)),
        ({"architectures": ["MarianForCausalLM"]}, ("MarianForCausalLM",)),
        ({"encoder_attention_heads": 7}, ("not divisible by num_heads 7",)),
        ({"encoder_ffn_dim": 32}, ("encoder.layers.0.fc1", "expected [32")),
        ({"decoder_ffn_dim": 2**40}, ("decoder_d_feedforward",)),
        ({"activation_function": "tanh"}, ("tanh",)),
        ({"activation_function": 3}, ("activation_function 3",)),
        ({"d_model": 2**40}, ("d_model",)),
        ({"d_model": "64"}, ("d_model",)),
        ({"encoder_layers": 63}, ("lack",)),
        ({"vocab_size": 60}, ("at most 59",)),
        ({"vocab_size": 150}, ("expected [1, 150]",)),
        ({"pad_token_id": -1}, ("pad",)),
        ({"pad_token_id": None}, ("pad_token_id",)),
        ({"scale_embedding": "yes"}, ("scale_embedding",)),
        ({"decoder_layers": None}, ("decoder_layers",)),
    ],
)
def test_an_invalid_config_is_refused_with_its_value(folder, changes, words):
    edit(folder, **changes)
    if changes.keys() == {"pad_token_id"}:
        (folder / "generation_config.json").unlink()
    refused(folder, *words)


def test_files_are_bounded_by_their_kind(folder):
    with open(folder / "vocab.json", "ab") as file:
        file.truncate(32_000_001)
    refused(folder, "vocab.json", "at most 32,000,000")
    (folder / "config.json").write_text('{"model_type": "marian", "x": "' + "a" * 1_000_000 + '"}')
    refused(folder, "config.json", "at most 1,000,000")
    for text in ("[1]", "{" * 9, '{"model_type": ' * 50_000, "\x00", '"marian"'):
        (folder / "config.json").write_text(text)
        refused(folder, "config.json")


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("vocab.json", b'{"</s>": 0, "<unk>": "1"}', ("vocab",)),
        ("vocab.json", b'{"</s>": 0, "<unk>": -1}', ("vocab",)),
        ("vocab.json", b'{"</s>": 0, "<unk>": 1e9}', ("vocab",)),
        ("vocab.json", b'{"</s>": 0}', ("vocab",)),
        ("vocab.json", b"[]", ("vocab",)),
        ("vocab.json", b'{"</s>": 0, "<unk>": 400000}', ("vocab",)),
        ("vocab.json", b'{"</s>": 0, "<unk>": true}', ("vocab",)),
        ("source.spm", b"", ("is empty",)),
        ("source.spm", b"not a model", ("SentencePiece",)),
        *((name, None, (name,)) for name in ("source.spm", "target.spm", "vocab.json", WEIGHTS)),
        *((name, POINTER, (name, "Git LFS pointer", "git lfs pull")) for name in ("source.spm", "vocab.json", WEIGHTS)),
    ],
)
def test_damaged_files_are_refused_by_name(folder, name, content, words):
    theirs.damage(folder, name, content)
    refused(folder, *words)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_pickle_of_endless_operations_is_refused_in_little_memory(folder, zipped):
    (folder / WEIGHTS).unlink()
    marks = b"\x80\x02" + b"(" * 1_000_000
    if zipped:
        with zipfile.ZipFile(folder / PICKLE, "w") as archive:
            archive.writestr("archive/data.pkl", marks)
            archive.writestr("archive/version", "3\n")
    else:
        (folder / PICKLE).write_bytes(marks)
    refused(folder, PICKLE, "not a pickle of tensors alone", "500,000 operations")


def test_two_pieces_of_one_id_are_refused(folder):
    path = folder / "vocab.json"
    ids = json.loads(path.read_text())
    ids["twin"] = ids["</s>"]
    path.write_text(json.dumps(ids))
    refused(folder, "vocab.json", "'</s>' and 'twin' have the same id")


def test_an_mbart_that_was_not_trained_to_translate_is_refused(tmp_path):
    model = theirs.mbart(tmp_path)
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = None
    model.save_pretrained(tmp_path)
    refused(tmp_path, "decoder_start_token_id")
