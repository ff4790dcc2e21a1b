"""Checkpoints load as they were saved, and damaged ones are refused with the file's name."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_atlas.model import checkpoint
from tests import ROOT
from tests.conftest import Malicious, refused

LAYOUT = {checkpoint.LAYOUT: checkpoint.TRANSPOSED}
SOURCE, TARGET = torch.tensor([[4, 20, 31, 2]]), torch.tensor([[1, 30, 41]])


@pytest.fixture()
def folder(checkpoint_copy: Path) -> Path:
    return checkpoint_copy


def test_load_restores_every_tensor_and_the_outputs(tiny_checkpoint, tiny_model):
    loaded = checkpoint.load(tiny_checkpoint)
    state = loaded.model.state_dict()
    assert state.keys() == tiny_model.state_dict().keys()
    for name, tensor in tiny_model.state_dict().items():
        assert torch.equal(state[name], tensor), name
    assert torch.equal(loaded.model.source_positions.table, tiny_model.source_positions.table)
    torch.testing.assert_close(
        loaded.model(SOURCE, TARGET).logits, tiny_model(SOURCE, TARGET).logits, atol=1e-4, rtol=0
    )
    assert loaded.directions == ("de-en", "en-fr") and loaded.name == "tiny" and not loaded.model.training
    assert len(loaded.digest) == 16 and loaded.metrics == {"scores": []}


def test_examples_come_with_their_folder_and_are_not_needed(folder):
    loaded = checkpoint.load(folder).examples
    assert list(loaded) == ["de-en"] and loaded["de-en"][0].reference and loaded["de-en"][1].reference == ""
    (folder / checkpoint.EXAMPLES).unlink()
    assert checkpoint.load(folder).examples == {}


@pytest.mark.parametrize(
    ("file", "written", "words"),
    [
        ("examples.json", {"sv-en": [{"text": "Hej."}]}, "'sv-en'"),
        ("examples.json", {"de-en": {"text": "Hallo."}}, "an object such as"),
        ("examples.json", [], "an object"),
        ("examples.json", {"de-en": ["Hallo."]}, "found 'Hallo.'"),
        ("examples.json", {"de-en": [{"text": " "}]}, "may have a"),
        ("examples.json", {"de-en": [{}]}, "found {"),
        ("examples.json", {"de-en": [{"text": "Hallo.", "reference": 3}]}, "found {"),
        ("examples.json", {"de-en": [{"text": "a", "answer": "b"}]}, "found {"),
        ("metrics.json", [1, 2], ""),
        ("metrics.json", "scores", ""),
        ("metrics.json", {"scores": 5}, ""),
        ("metrics.json", {"scores": [5]}, ""),
        ("metrics.json", {"typed": {}}, ""),
        ("metrics.json", {"notes": [1]}, ""),
        ("metrics.json", {"training": 3}, ""),
        ("metrics.json", {"parameters": "many"}, ""),
        ("metrics.json", {"origin": {"name": "a"}}, ""),
        ("metrics.json", {"origin": "a"}, ""),
    ],
)
def test_examples_and_metrics_that_the_page_cannot_show_are_refused(folder, file, written, words):
    checkpoint.write_json(folder / file, written)
    assert words in refused(folder, file)


def test_an_oversized_tokenizer_is_not_read(folder):
    with open(folder / "tokenizer.model", "ab") as file:
        file.truncate(3_000_000_000)
    assert "at most 32,000,000" in refused(folder, "tokenizer.model")


def test_half_precision_on_disk_is_float32_in_memory(tmp_path, tiny_model, tokenizer):
    checkpoint.save(tmp_path / "half", tiny_model, tokenizer, ("de-en",))
    assert {t.dtype for t in load_file(tmp_path / "half" / "model.safetensors").values()} == {torch.float16}
    loaded = checkpoint.load(tmp_path / "half").model
    for name, tensor in loaded.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, tiny_model.state_dict()[name].half().float()), name


def test_a_loaded_model_can_be_trained_and_saved_again(tiny_checkpoint, tmp_path):
    loaded = checkpoint.load(tiny_checkpoint)
    loaded.model(SOURCE, TARGET).logits.square().mean().backward()
    assert all(p.grad is not None and p.is_leaf for p in loaded.model.parameters())
    checkpoint.save(tmp_path / "again", loaded.model, loaded.tokenizer, loaded.directions, half=False)
    reloaded = checkpoint.load(tmp_path / "again")
    assert all(torch.equal(a, b) for a, b in zip(reloaded.model.parameters(), loaded.model.parameters()))
    assert reloaded.digest == loaded.digest


@pytest.mark.parametrize("file", ["config.json", "tokenizer.model", "model.safetensors"])
def test_a_missing_file_is_named(folder, file):
    (folder / file).unlink()
    assert "missing" in refused(folder, file)


@pytest.mark.parametrize("keep", [0, 4, 200, -1])
@pytest.mark.parametrize("file", ["config.json", "tokenizer.model", "model.safetensors"])
def test_a_truncated_file_is_named(folder, file, keep):
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[:-3] if keep == -1 and file == "config.json" else content[:keep])
    refused(folder, file)


def test_weights_that_do_not_fit_are_named(folder):
    path, name = folder / "model.safetensors", "decoder.layers.2.cross_attention.output.weight"
    tensors = load_file(path)
    whole = tensors[name]
    for changed, words in (
        ({name: whole[:, :16].contiguous()}, f"{name}.*\\[32, 16\\], expected \\[32, 32\\]"),
        ({"decoder.layers.3.extra": torch.ones(1)}, "unexpected.*decoder.layers.3.extra"),
        ({name: whole / 0}, f"{name}.*not finite"),
        ({name: whole.int()}, name),
    ):
        save_file({**tensors, **changed}, path, LAYOUT)
        assert re.search(words, refused(folder, path.name)), words
    save_file({n: t for n, t in tensors.items() if n != name}, path, LAYOUT)
    assert "lacks 1 tensors" in refused(folder, name)


def test_a_pickle_in_disguise_is_refused_without_executing_it(folder, tmp_path):
    (folder / "model.safetensors").write_bytes(pickle.dumps(Malicious(tmp_path / "ran")))
    refused(folder, "model.safetensors")
    torch.save({"embedding.weight": torch.ones(2)}, folder / "model.safetensors")
    refused(folder, "model.safetensors")
    assert not (tmp_path / "ran").exists()


HUGE = {"d_model": 4096, "num_heads": 64, "d_feedforward": 16_384, "num_encoder_layers": 64, "num_decoder_layers": 64}


@pytest.mark.parametrize(
    ("changes", "file", "words"),
    [
        ({"model": {"d_model": 31}}, "config.json", ""),
        ({"model": {"vocabulary_size": 351}}, "tokenizer.model", ""),
        ({"model": {"pad_id": 1}}, "tokenizer.model", ""),
        ({"model": HUGE}, "model.safetensors", ""),  # would take 60 GB
        ({"directions": ["de-es"]}, "tokenizer.model", "<2es>"),
    ],
)
def test_an_impossible_config_is_refused_without_its_memory(folder, changes, file, words):
    config = json.loads((folder / "config.json").read_text())
    model = config["model"] | changes.get("model", {})
    checkpoint.write_json(folder / "config.json", config | changes | {"model": model})
    started = time.perf_counter()
    assert words in refused(folder, file)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "3",
        '{"format": 2}',
        "{",
        '{"format": 1, "directions": ["de-en"]}',
        '{"format": 1, "directions": "de-en", "model": {}}',
        "[" * 100_000,
        "\ud83d",
    ],
)
def test_an_invalid_config_file_is_refused(folder, text):
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    refused(folder, "config.json")


def test_an_oversized_config_is_not_even_parsed(folder):
    (folder / "config.json").write_text(" " * 2_000_000 + "{}")
    assert "2,000,002 bytes" in refused(folder, "config.json")


def test_threads_may_replace_the_same_file(tmp_path):
    path = tmp_path / "found.json"

    def write(number: int) -> None:
        for _ in range(20):
            checkpoint.replace_file(path, lambda partial: partial.write_text(str(number) * 1000, encoding="ascii"))

    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(write, range(4))] == [None] * 4
    assert len(path.read_text(encoding="ascii")) == 1000 and [*tmp_path.iterdir()] == [path]


def test_replace_file_keeps_the_old_file_when_writing_fails(tmp_path):
    path = tmp_path / "state"
    path.write_text("old")

    def broken(partial: Path) -> None:
        partial.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        checkpoint.replace_file(path, broken)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["state"]


def test_loading_does_not_import_the_compiler(tiny_checkpoint):
    """torch's "meta" device imports torch._dynamo, which takes over a second, only for operations that are not used."""
    program = (
        "import sys, attention_atlas.model.translator; from attention_atlas.model.checkpoint import load;"
        f"load({str(tiny_checkpoint)!r});"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
