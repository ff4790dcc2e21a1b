"""Doubts about a translation: the warnings in the header, where they link to, and the panels on trust."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.model_comparison import compare_models
from attention_atlas.model.analysis.sentence_pairs import contrastive_pairs
from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.trace.trust import SIGNALS
from attention_atlas.model.training.history import NAME, History, Probe
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.questions.header import LINKS, WARNINGS, warnings_about
from attention_atlas.viz.shell import TABS
from bench import trust as bench
from tests.conftest import SENTENCES, build_tiny_model
from tests.model.families import theirs
from tests.trusted import trusted
from tests.viz.panels.panels import block_of, named, numbers_of


@pytest.fixture(scope="module")
def measured(tiny_checkpoint, tmp_path_factory) -> Translator:
    """Return a model whose signals of doubt are all calibrated, and all raise an alarm."""
    return trusted(shutil.copytree(tiny_checkpoint, tmp_path_factory.mktemp("trust") / "tiny"))


@pytest.fixture(scope="module")
def scene(measured, tiny_translator) -> Scene:
    other = replace_digest(tiny_translator)
    trace = measured.trace(SENTENCES[0], target=SENTENCES[1])
    return Scene(trace, Selection().clamp(trace), measured, served=Translators([measured, other]))


def replace_digest(translator: Translator) -> Translator:
    other = translator.edit({})  # a copy that shares the model
    other.digest, other.name, other.folder = "another", "another", None
    return other


def test_calibrated_signals_warn_and_link_to_panels(measured):
    trace = replace(measured.trace(SENTENCES[0], target=SENTENCES[1]), decoding=None)
    warnings = warnings_about(trace, measured)
    assert len(warnings) == len(SIGNALS) == len(WARNINGS)
    tabs = {name for _, name, _ in TABS}
    panels = {panel.name for group in registry.PANELS.values() for panel in group}
    for link in LINKS.values():
        assert link["tab"] in tabs and link.get("panel", "trust") in panels
    for warning in warnings:
        assert warning["step"] is None or 0 <= warning["step"] < len(trace.target_ids)
        assert (
            "Right in 75% of 8 alarms" in warning["about"]
            and warning["right"] == "such warnings are right 75% of the time"
        )


def test_an_imported_model_has_warnings_too(tmp_path):
    theirs.FAMILIES["marian"](tmp_path / "marian").save_pretrained(tmp_path / "marian")
    imported = trusted(tmp_path / "marian", "de-en")
    trace = imported.translate("Der Hund schläft 漢.", "de-en")
    warnings = warnings_about(trace, imported)
    assert len(warnings) == len(SIGNALS) - ("repeated" in {warning["text"] for warning in warnings})
    scene = Scene(trace, Selection().clamp(trace), imported)
    assert scene.reading.columns.sum() == pytest.approx(scene.reading.share.sum())
    np.testing.assert_allclose(scene.reading.log_probability, trace.log_probability, atol=1e-4)
    assert "labelled by people" in json.dumps([*named("trust").content(scene, 10)])


def test_concurrent_requests_get_the_warnings_of_their_own_translation(measured):
    texts = [f"{text} {number}" for text in SENTENCES[::2] for number in range(3)]
    traces = [replace(measured.trace(text, target=SENTENCES[1]), decoding=None) for text in texts]
    expected = [warnings_about(trace, measured) for trace in traces]
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(lambda trace: warnings_about(trace, measured), traces)] == expected
    assert len({str(warnings) for warnings in expected}) > 3, "the texts must have different warnings"


def test_given_and_uncalibrated_translations_have_no_warnings(measured, tiny_translator):
    free = replace(measured.trace(SENTENCES[0], target=SENTENCES[1]), decoding=None)
    assert warnings_about(measured.trace(SENTENCES[0], target=SENTENCES[1]), measured) == []  # a given translation
    assert warnings_about(replace(free, direction="en-fr"), measured) == []
    assert warnings_about(free, tiny_translator) == [] == warnings_about(free, None)


def test_the_panels_on_trust_show_the_measurements(scene):
    text = json.dumps([*named("trust").content(scene, 0)])
    assert "labelled by people" in text and "1.0%" in text and '"figure"' in text
    *_, last = named("trust").content(scene, 20)
    assert "20 of 20 passes" in json.dumps(last)
    (note, pictures, table) = named("heads-phenomena").content(scene, "cross")
    assert pictures["maps"][0]["shape"] == [3, 4] and table["rows"][0][1] == "3" and "lead" in note["text"]


def test_contrastive_pairs_show_the_preferred_translation_and_the_fork(scene):
    panel = named("pairs")
    examples = contrastive_pairs("de-en")
    assert [len(contrastive_pairs(name)) for name in ("de-en", "en-de", "en-fr", "fr-en")] == [10, 10, 10, 0]
    content = panel.act(scene, {"act": "example", "option": 5}, "")
    table = block_of(content, "table")
    assert len(table["marked"]) == 1 and any("The model prefers" in b.get("text", "") for b in content)
    action = block_of(content, "action")
    trace = panel.translate(scene, action["data"])
    step, token = (action["data"][name] for name in ("step", "token"))
    wrong = scene.translator.encode_target(examples[4].wrong, "de-en")
    assert [step] == table["marked"] and token == wrong[step] != trace.target_ids[step]
    assert trace.source_text == examples[4].source and trace.translation == examples[4].right
    with pytest.raises(ValueError, match="option 11"):
        panel.act(scene, {"act": "example", "option": 11}, "")
    menu, slot = panel.content(scene, "")
    assert len(menu["options"]) == 11 and panel.act(scene, {"act": "example", "option": 0}, "") == slot["blocks"]
    assert "runner-up" in str(slot["blocks"]) and "runner-up" not in str(panel.content(scene, "Two dogs.")[1])


def test_the_panel_compares_the_model_with_records_of_its_training(tokenizer, tmp_path):
    history = History(
        tmp_path / NAME, (Probe("de-en", "Zwei rote Kinder malen.", "Two red children paint."),), tokenizer
    )
    for update, seed in ((0, 1), (5, 2)):
        history.record(build_tiny_model(tokenizer, seed=seed), update)
    model = build_tiny_model(tokenizer, seed=2)
    checkpoint = Checkpoint("tiny", model, tokenizer, ("de-en",), {}, "5" * 16, folder=tmp_path)
    translator = Translator(checkpoint, torch.device("cpu"))
    recorded = Scene(translator.translate(SENTENCES[0]), made_by=translator)
    first, last = (named("moments").content(recorded, record) for record in (1, 48))
    trace = translator.trace("Zwei rote Kinder malen.", target="Two red children paint.")
    same = compare_models((translator, trace), (translator, trace))
    for content, is_same in ((first, False), (last, True)):
        (_, table), cka, *heads = content[0]["blocks"], *content[1:]
        words, losses = [row[0]["text"] for row in table["rows"]], [float(row[2]["text"][1:]) for row in table["rows"]]
        assert words == [*same.words] and losses == pytest.approx(-same.log_probability[0], abs=0.006)
        assert all((row[3] in ("+0.00", "−0.00")) is is_same for row in table["rows"])
        side = numbers_of(cka["maps"][1])
        assert side.shape == (3, 3) and np.allclose(np.diag(side), 1.0, atol=1e-4) is is_same
        pairs = [row[:2] for block in heads for row in block["blocks"][0]["rows"]]
        assert len(heads) == 3 and all(a == b for a, b in pairs) is is_same
    del history.records[0]["products_encoder_0"], history.records[0]["products_decoder_0"]
    del history.records[0]["log_probability_0"]
    history.save()
    probabilities, unknown, *_ = named("moments").content(recorded, 1)
    table = block_of([probabilities], "table")
    (row,) = table["rows"]
    assert row[0]["text"] == "Two red children paint." and float(row[2]["text"][1:]) == pytest.approx(
        -trace.log_probability.sum(), abs=0.006
    )
    assert "were not saved" in unknown["text"]
    unrecorded = Scene(trace, made_by=replace_digest(translator))
    assert "was not recorded" in named("moments").content(unrecorded, 1)[0]["text"]


def test_two_models_are_compared_on_one_sentence(scene):
    panel = named("heads-twins")
    (slot,) = panel.content(scene)
    table = slot["blocks"][0]
    assert table["columns"][1:3] == [scene.translator.name, "another"] and all(r[3] == "+0.00" for r in table["rows"])
    alone = Scene(scene.trace, scene.selection, scene.translator)
    assert "No other model" in panel.content(alone)[0]["text"]
    with pytest.raises(ValueError, match="option 3"):
        panel.act(scene, {"act": "other", "option": 3})


def test_the_benchmark_of_trust_reports_every_time(tiny_checkpoint, capsys):
    bench.main(["--checkpoint", str(tiny_checkpoint), "--runs", "1"])
    _, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert {row["what"]: row["bar_seconds"] for row in rows} == bench.BARS and all(row["seconds"] > 0 for row in rows)
