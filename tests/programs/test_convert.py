"""attention-atlas convert: a folder of `transformers` becomes a checkpoint of ours, with its origin and licence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_atlas.model import checkpoint, convert, files
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.server.endpoints import EndpointContext
from tests.model.families import theirs


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("theirs") / "opus-mt-de-en"
    theirs.marian(folder).save_pretrained(folder)
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\ntags: [x]\n---\n# Theirs\n", encoding="utf-8")
    return folder


def test_a_converted_folder_holds_the_same_model(saved, tmp_path, capsys):
    out = tmp_path / "ours"
    convert.main([str(saved), "--out", str(out), "--dtype", "float32"])
    assert "licence cc-by-4.0" in capsys.readouterr().out
    direct, converted = Translator.load(saved, "cpu"), Translator.load(out, "cpu")
    texts = ["Der kleine Hund schläft.", "Zwei Kinder bauen eine Burg 漢."]
    assert converted.translate_batch(texts) == direct.translate_batch(texts)
    trace, expected = converted.translate(texts[1]), direct.translate(texts[1])
    assert trace.target_ids == expected.target_ids and trace.source_tokens == expected.source_tokens
    assert any(token.endswith("漢<unk>") for token in trace.source_tokens) and trace.source_tokens[-1] == "</s>"
    assert (trace.cross.weights == expected.cross.weights).all()
    assert direct.config.pad_id not in trace.target_ids  # the decoder never generates it
    card = (out / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlicense: cc-by-4.0\n---\n# opus-mt-de-en") and "de-en" in card
    for model in (direct, converted):
        assert model.metrics["origin"] == {"name": "opus-mt-de-en", "licence": "cc-by-4.0"}


@pytest.mark.parametrize("direction", ["en-de", "de-fr"])
def test_a_direction_that_the_model_does_not_translate_is_refused(saved, tmp_path, direction):
    with pytest.raises(ValueError, match=f"opus-mt-de-en does not translate '{direction}', but de-en"):
        convert.main([str(saved), "--out", str(tmp_path / "ours"), "--directions", direction])
    assert not (tmp_path / "ours").exists()


def test_an_existing_folder_is_overwritten_only_with_replace(saved, tiny_checkpoint, tmp_path):
    with pytest.raises(ValueError, match=r"config\.json is there already: use --replace"):
        convert.main([str(saved), "--out", str(tiny_checkpoint)])


@pytest.mark.parametrize("name", ["./opus-mt-de-em", "/opus-mt-de-em", "~/opus", "..\\opus"])
def test_a_mistyped_path_is_reported_as_a_missing_folder(name):
    with pytest.raises(ValueError, match="there is no folder"):
        convert.main([name])


def test_a_checkpoint_is_stored_as_float16_on_request(saved, tmp_path):
    convert.main([str(saved), "--out", str(tmp_path / "ours"), "--dtype", "float16"])
    stored = load_file(tmp_path / "ours" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    assert checkpoint.load(tmp_path / "ours").model.config == checkpoint.load(saved).model.config


@pytest.fixture()
def out(saved, tmp_path) -> Path:
    """The folder of the converted model."""
    convert.main([str(saved), "--out", str(tmp_path / "ours")])
    return tmp_path / "ours"


def test_weights_of_a_converted_file_are_memory_mapped(saved, out):
    """No tensor is copied: each lies in the pages of the file, with the strides of the original."""
    assert load_file(out / "model.safetensors")["embedding.weight"].shape[0] == 64
    expected, loaded = checkpoint.load(saved).model.state_dict(), checkpoint.load(out).model.state_dict()
    pages = [
        [int(end, 16) for end in line.split()[0].split("-")]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if str(out) in line
    ]
    assert all(any(start <= tensor.data_ptr() < end for start, end in pages) for tensor in loaded.values())
    for name, tensor in expected.items():
        assert torch.equal(loaded[name], tensor) and loaded[name].stride() == tensor.stride()


def test_a_file_of_the_former_layout_opens(out):
    """In the former layout, only matrices with at least as many rows as columns are transposed."""
    expected = checkpoint.load(out).model.state_dict()
    tall = {
        name: (t.t() if t.ndim == 2 and t.shape[0] >= t.shape[1] else t).contiguous() for name, t in expected.items()
    }
    assert any(t.ndim == 2 and t.shape[0] < t.shape[1] for t in expected.values())
    save_file(tall, out / "model.safetensors", {checkpoint.LAYOUT: checkpoint.TALL_TRANSPOSED})
    loaded = checkpoint.load(out).model.state_dict()
    assert all(
        torch.equal(loaded[name], tensor) and loaded[name].stride() == tensor.stride()
        for name, tensor in expected.items()
    )


def test_a_transposed_file_is_validated(out):
    state = load_file(out / "model.safetensors")
    save_file(state, out / "model.safetensors")  # without the metadata about its layout
    with pytest.raises(ValueError, match="has shape"):
        checkpoint.load(out)
    save_file(
        {**state, "embedding.weight": state["embedding.weight"] * float("inf")},
        out / "model.safetensors",
        {checkpoint.LAYOUT: checkpoint.TRANSPOSED},
    )
    with pytest.raises(ValueError, match="not finite"):
        checkpoint.load(out)


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("---\nlicense: other\nlicense_name: own words\n---\n", "own words"),
        ("no front matter", "not stated"),
        ("---\nlicense: [a, b]\n---\n", "not stated"),
        ("---\n: : {\n---\n", "not stated"),
        ("---\nlicense: !!python/object/apply:os.system [touch ran]\n---\n", "not stated"),
        ("---\n- a\n---\n", "not stated"),
        ('---\nlicense: "<script>alert(1)</script>\\n# x"\n---\n', "script"),
    ],
)
def test_the_card_contains_no_markup_of_the_original_card(saved, tmp_path, text, licence, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "named"
    theirs.marian(folder).save_pretrained(folder)
    (folder / "README.md").write_text(text, encoding="utf-8")
    convert.main([str(folder), "--out", "ours"])
    written = (tmp_path / "ours" / "README.md").read_text(encoding="utf-8")
    assert licence in written and "<" not in written and not (tmp_path / "ran").exists()


def test_listed_directions_of_a_model_of_many_languages(tmp_path):
    folder = tmp_path / "many"
    theirs.m2m100(folder).save_pretrained(folder)
    convert.main([str(folder), "--out", str(tmp_path / "ours"), "--directions", "zu-af", "de-en"])
    translator = Translator.load(tmp_path / "ours", "cpu")
    assert translator.directions == ("zu-af", "de-en")
    trace = translator.translate("Der Hund", "zu-af")
    assert trace.source_tokens[0] == "__zu__" and trace.decoder_inputs[:2] == ("</s>", "__af__")
    assert trace.target_tokens[0] == "__af__" and "__af__" not in trace.translation
    for direction, words in (("xx-af", "no symbol for the language 'xx'"), ("de", "two different language codes")):
        with pytest.raises(ValueError, match=words):
            convert.main([str(folder), "--out", str(tmp_path / "no"), "--directions", direction])


def test_a_folder_is_not_converted_into_itself(saved):
    with pytest.raises(ValueError, match="name another with --out"):
        convert.main([str(saved), "--out", str(saved)])


def test_a_checkpoint_of_ours_is_converted_and_shipped_names_are_resolved(tiny_checkpoint, tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    shutil.copytree(tiny_checkpoint, folder)
    (folder / "metrics.json").unlink()  # `train` writes none
    convert.main([str(folder), "--out", str(tmp_path / "out")])
    assert checkpoint.load(tmp_path / "out").metrics["parameters"] == sum(
        parameter.numel() for parameter in checkpoint.load(folder).model.parameters()
    )
    located = []
    monkeypatch.setattr(convert.checkpoint, "load", lambda folder: located.append(folder) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        convert.main(["de-en", "--out", str(tmp_path / "other")])
    assert located == [files.SHIPPED_FOLDER / "de-en"]


def test_a_call_without_a_direction_uses_the_model_that_the_host_names(saved, tiny_checkpoint):
    served = EndpointContext(Translators.load(tiny_checkpoint.parent, "cpu", models=[saved]))
    assert served.select("")[0].name == "opus-mt-de-en"


def test_models_that_the_host_names_come_first_and_do_not_change_labels_of_checkpoints(saved, tiny_checkpoint):
    translators = Translators.load(tiny_checkpoint.parent, "cpu", models=[saved])
    assert list(translators) == ["de-en (opus-mt-de-en)", "de-en", "en-fr"]
    assert next(iter(translators.values())).name == "opus-mt-de-en"
    assert translators["de-en"].name == translators.find("de-en", "gone").checkpoint == tiny_checkpoint.name
    assert translators.find("de-en", "opus-mt-de-en").label == "de-en (opus-mt-de-en)"
