"""What may lie in a folder: every form that tensors come in, and what is refused, by name and without being run."""

from __future__ import annotations

import collections
import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model import checkpoint
from model.config import PositionCode
from model.families import tensors
from tests.model.families import theirs

SOURCE = torch.tensor([[12, 20, 31, 45, 20, 61, 33, 8, 0]])
WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"
E, ENCODER, DECODER, HEAD = tensors.SHARED, tensors.ENCODER, tensors.DECODER, tensors.HEAD


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A Marian model as `transformers` saves it."""
    folder = tmp_path_factory.mktemp("marian") / "opus-mt-de-en"
    theirs.marian(folder).save_pretrained(folder)
    return folder


@pytest.fixture()
def folder(saved, tmp_path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def logits_of(model, encoder_ids: torch.Tensor = SOURCE) -> torch.Tensor:
    """Of either's model."""
    pad = model.config.pad_token_id if hasattr(model.config, "pad_token_id") else model.config.pad_id
    target = torch.tensor([[pad, 14, 15, 16, 30]])
    with torch.no_grad():
        if hasattr(model, "lm_head"):
            return model(input_ids=encoder_ids, decoder_input_ids=target).logits
        return model(encoder_ids, target).logits


def equal_to(model, folder: Path) -> checkpoint.Checkpoint:
    opened = checkpoint.load(folder)
    torch.testing.assert_close(logits_of(opened.model), logits_of(model), atol=1e-4, rtol=0)
    return opened


def edit(folder: Path, **changes) -> None:
    config = json.loads((folder / "config.json").read_text())
    theirs.write(folder / "config.json", config | changes)


def refused(folder: Path, *words: str) -> str:
    with pytest.raises(ValueError) as caught:
        checkpoint.load(folder)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    return str(caught.value)


def matrix(seed: int, like: torch.Tensor) -> torch.Tensor:
    return 0.15 * torch.randn(like.shape, generator=torch.Generator().manual_seed(seed))


def set_matrices(model, *, decoder: torch.Tensor | None = None, head: torch.Tensor | None = None):
    """Untie the decoder's embedding or the head of their model, in memory."""
    if decoder is not None:
        model.model.decoder.embed_tokens = torch.nn.Embedding.from_pretrained(decoder)
    if head is not None:
        model.lm_head = torch.nn.Linear(head.shape[1], head.shape[0], bias=False)
        model.lm_head.weight = torch.nn.Parameter(head)
    return model


@pytest.mark.parametrize("name", [E, ENCODER, DECODER, HEAD])
def test_one_matrix_under_any_of_its_names(folder, name, tmp_path):
    state = load_file(folder / WEIGHTS)
    state[name] = state.pop(E)
    if name == DECODER:  # hub bots kept the first name of what was one storage
        state[ENCODER] = state[DECODER].clone()
    save_file(state, folder / WEIGHTS)
    opened = equal_to(theirs.marian(tmp_path / "again"), folder)
    assert opened.model.config.shared_embeddings and opened.model.config.tied_output
    assert opened.metrics["notes"] == []


def test_a_head_that_differs_though_it_is_tied_is_left_aside_and_said(folder, tmp_path):
    state = load_file(folder / WEIGHTS)
    save_file({**state, HEAD: matrix(1, state[E])}, folder / WEIGHTS)
    opened = equal_to(theirs.marian(tmp_path / "again"), folder)
    assert "lm_head.weight differs" in opened.metrics["notes"][0]


@pytest.mark.parametrize("tied", [True, False])
def test_a_decoder_with_an_embedding_of_its_own(folder, tmp_path, tied):
    state = load_file(folder / WEIGHTS)
    own, head = matrix(1, state[E]), matrix(2, state[E])
    state[ENCODER] = state.pop(E)
    save_file({**state, DECODER: own, HEAD: own.clone() if tied else head}, folder / WEIGHTS)
    edit(folder, tie_word_embeddings=tied)
    model = set_matrices(theirs.marian(tmp_path / "again"), decoder=own, head=own if tied else head)
    opened = equal_to(model, folder)
    assert not opened.model.config.shared_embeddings and opened.model.config.tied_output is tied


@pytest.mark.parametrize("names", [(E,), (E, ENCODER, DECODER)])
def test_an_output_matrix_of_its_own(folder, tmp_path, names):
    state = load_file(folder / WEIGHTS)
    shared = state.pop(E)
    head = matrix(3, shared)
    save_file({**state, **{name: shared.clone() for name in names}, HEAD: head}, folder / WEIGHTS)
    edit(folder, tie_word_embeddings=False)
    equal_to(set_matrices(theirs.marian(tmp_path / "again"), head=head), folder)


def test_an_absent_bias_is_none(folder, tmp_path):
    state = load_file(folder / WEIGHTS)
    del state[tensors.BIAS]
    save_file(state, folder / WEIGHTS)
    model = theirs.marian(tmp_path / "again")
    model.final_logits_bias.zero_()
    assert not equal_to(model, folder).model.config.logits_bias


@pytest.mark.parametrize("form", ["zip", "before 1.6", "OrderedDict of parameters", "safetensors in shards", "shards"])
def test_every_way_of_saving_gives_the_same_model(saved, folder, form, tmp_path):
    state = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    if form == "safetensors in shards":
        theirs.marian(tmp_path / "again").save_pretrained(folder, max_shard_size="100KB")
        assert len(list(folder.glob("model-*.safetensors"))) > 3 and not (folder / WEIGHTS).exists()
    elif form == "shards":
        names = sorted(state)
        halves = {"pytorch_model-00001-of-00002.bin": names[::2], "pytorch_model-00002-of-00002.bin": names[1::2]}
        for file, mine in halves.items():
            torch.save({name: state[name] for name in mine}, folder / file)
        theirs.write(folder / f"{PICKLE}.index.json",
                     {"weight_map": {name: file for file, mine in halves.items() for name in mine}})
    else:
        kept = {**state, ENCODER: state[E], HEAD: state[E]}  # one storage under three names, as pickles keep it
        if form.startswith("OrderedDict"):
            kept = collections.OrderedDict((name, torch.nn.Parameter(t)) for name, t in state.items())
        torch.save(kept, folder / PICKLE, _use_new_zipfile_serialization=form != "before 1.6")
    expected = checkpoint.load(saved).model.state_dict()
    found = checkpoint.load(folder).model.state_dict()
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in expected)


def test_half_precision_is_read_as_it_is(saved, folder):
    state = {name: t.half() for name, t in load_file(folder / WEIGHTS).items()}
    save_file(state, folder / WEIGHTS)
    found = checkpoint.load(folder).model.state_dict()
    for name, tensor in checkpoint.load(saved).model.state_dict().items():
        assert found[name].dtype == torch.float32 and torch.equal(found[name], tensor.half().float())


@pytest.mark.parametrize("changed", [False, True])
def test_stored_tables_of_sines_are_what_counts(folder, tmp_path, changed):
    model = theirs.marian(tmp_path / "again")
    table = model.model.encoder.embed_positions.weight.detach().clone()
    if changed:
        table += 0.1 * matrix(4, table)
    state = load_file(folder / WEIGHTS)
    save_file({**state, **{name: table.clone() for name in tensors.POSITIONS.values()}}, folder / WEIGHTS)
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weight.data.copy_(table)
    opened = equal_to(model, folder)
    assert opened.model.config.position_code is (PositionCode.LEARNED if changed else PositionCode.HALVES)
    assert any("position tables" in note for note in opened.metrics["notes"]) is changed


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return (Path.touch, (Path(self.path),))


def test_a_pickle_with_code_is_refused_and_not_run(folder, tmp_path):
    (folder / WEIGHTS).unlink()
    for zipped in (True, False):
        torch.save({"model.shared.weight": torch.ones(2), "x": Malicious(tmp_path / "ran")}, folder / PICKLE,
                   _use_new_zipfile_serialization=zipped)
        refused(folder, PICKLE, "not a pickle of tensors alone")
    (folder / PICKLE).write_bytes(pickle.dumps(Malicious(tmp_path / "ran")))
    refused(folder, PICKLE)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("value", "word"), [
    ({"state_dict": {"a": torch.ones(2)}}, "found dict under 'state_dict'"), ([torch.ones(2)], "found list"),
    ({}, "dict"), ({"a": "text"}, "found str"), ({1: torch.ones(2)}, "under 1")])
def test_a_pickle_of_something_else_is_refused(folder, value, word):
    (folder / WEIGHTS).unlink()
    torch.save(value, folder / PICKLE)
    refused(folder, PICKLE, word)


def test_tensors_larger_than_their_file_are_refused_before_memory_is_taken(folder):
    """Of stride 0: a file of some kilobytes that claims gigabytes."""
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
    save_file({**state, "model.decoder.layers.2.gate.weight": torch.ones(2)}, path)
    refused(folder, "model.decoder.layers.2.gate.weight", "this family does not")
    save_file({n: t for n, t in state.items() if n != name}, path)
    refused(folder, name, "lack 1 tensors")
    save_file({**state, name: state[name][:, :60].contiguous()}, path)
    refused(folder, name, "[64, 60], expected [64, 64]")
    save_file({**state, name: state[name].int()}, path)
    refused(folder, name, "not finite")
    save_file({**state, name: state[name] * float("nan")}, path)
    refused(folder, name, "not finite")
    save_file({**state, "model.encoder.version": torch.ones(1), "model.decoder._float_tensor": torch.ones(1)}, path)
    checkpoint.load(folder)


@pytest.mark.parametrize("shard", [
    "../outside.safetensors", "/etc/model.safetensors", "sub/model.safetensors", "..", "", "absent.safetensors",
    "a\\b.safetensors", "config.json", "evil.bin"])
def test_shards_are_plain_names_of_files_in_the_folder(folder, shard):
    shutil.copy(folder / WEIGHTS, folder.parent / "outside.safetensors")
    (folder / "sub").mkdir()
    shutil.move(folder / WEIGHTS, folder / "sub" / WEIGHTS)
    (folder / "evil.bin").write_bytes(b"")
    theirs.write(folder / f"{WEIGHTS}.index.json", {"weight_map": {"model.shared.weight": shard}})
    refused(folder, "copy")


def test_a_link_leads_nowhere_but_into_the_hubs_cache(saved, folder, tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    shutil.move(folder / WEIGHTS, outside / "abc")
    (folder / WEIGHTS).symlink_to(outside / "abc")
    refused(folder, "leads out of the folder")
    hub = tmp_path / "models--own--opus-mt-de-en"
    (hub / "blobs").mkdir(parents=True)
    snapshot = hub / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    for file in saved.iterdir():
        shutil.copy(file, hub / "blobs" / f"digest-of-{file.name}")
        (snapshot / file.name).symlink_to(Path("../../blobs") / f"digest-of-{file.name}")
    assert checkpoint.load(snapshot).directions == ("de-en",)


@pytest.mark.parametrize(("changes", "words"), [
    ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, ("'t5'", "T5ForConditionalGeneration")),
    ({"model_type": "bart", "architectures": ["BartModel"]}, ("'bart'", "not supported")),
    ({"model_type": "pegasus"}, ("'pegasus'",)), ({"model_type": "nllb-moe"}, ("mixture of experts",)),
    ({"model_type": ["marian"]}, ("not supported",)),
    ({"architectures": ["MarianForCausalLM"]}, ("MarianForCausalLM",)),
    ({"encoder_attention_heads": 8}, ("encoder_attention_heads is 8", "decoder_attention_heads 4")),
    ({"encoder_ffn_dim": 32}, ("encoder_ffn_dim is 32",)),
    ({"activation_function": "gelu_new"}, ("gelu_new",)), ({"activation_function": 3}, ("activation_function 3",)),
    ({"d_model": 2**40}, ("d_model",)), ({"d_model": "64"}, ("d_model",)), ({"encoder_layers": 63}, ("lack",)),
    ({"vocab_size": 60}, ("at most 59",)), ({"vocab_size": 150}, ("expected [1, 150]",)),
    ({"pad_token_id": -1}, ("pad",)),
    ({"pad_token_id": None}, ("pad_token_id",)), ({"scale_embedding": "yes"}, ("scale_embedding",)),
    ({"decoder_layers": None}, ("decoder_layers",))])
def test_a_config_that_cannot_be_is_refused_with_what_was_found(folder, changes, words):
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


@pytest.mark.parametrize("content", [
    '{"</s>": 0, "<unk>": "1"}', '{"</s>": 0, "<unk>": -1}', '{"</s>": 0, "<unk>": 1e9}', '{"</s>": 0}', "[]",
    '{"</s>": 0, "<unk>": 400000}', '{"</s>": 0, "<unk>": true}'])
def test_a_vocabulary_that_cannot_be_is_refused(folder, content):
    (folder / "vocab.json").write_text(content)
    refused(folder, "vocab")


@pytest.mark.parametrize("file", ["source.spm", "target.spm", "vocab.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    refused(folder, file)


def test_a_damaged_splitter_is_refused(folder):
    (folder / "source.spm").write_bytes(b"not a model")
    refused(folder, "SentencePiece")


def test_an_mbart_that_was_not_trained_to_translate_is_refused(tmp_path):
    model = theirs.mbart(tmp_path)
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = None
    model.save_pretrained(tmp_path)
    refused(tmp_path, "decoder_start_token_id")
