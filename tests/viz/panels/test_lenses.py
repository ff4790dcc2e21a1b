"""The panel "Lenses": its cells agree with the fitted lenses; without lenses it says so and offers to fit them."""

from __future__ import annotations

import json
import shutil

import pytest

from attention_atlas.model.analysis import sentences as own_sentences
from attention_atlas.model.analysis import temperatures
from attention_atlas.model.analysis.lenses import fit, storage
from attention_atlas.model.analysis.lenses.fit import Fitting
from attention_atlas.model.analysis.lenses.read import encoder_lens
from attention_atlas.model.analysis.lenses.storage import HitRates
from attention_atlas.model.serve.work import Work
from attention_atlas.model.trace.edits import Scale
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.translator import Translator
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.words import for_page
from tests.conftest import SENTENCES
from tests.viz.panels.panels import begin, named


@pytest.fixture(scope="module")
def scene(tiny_checkpoint, tmp_path_factory) -> Scene:
    folder = shutil.copytree(tiny_checkpoint, tmp_path_factory.mktemp("lenses") / "tiny")
    fitting = Fitting(Translator.load(folder), {"de-en": SENTENCES[:2]}, 1, steps=20)  # a poor fit is enough here
    work = Work(fitting.translator, (), fitting.parts)
    list(work.run())
    lenses = work.result()
    lenses.hit_rates["everyday"] = HitRates(2, (0.1, 0.2, 0.5), (0.0, 0.1, 0.25))
    storage.save(folder / storage.FILE, lenses)
    translator = Translator.load(folder)
    return Scene(translator.translate(SENTENCES[0]), Selection(), translator)


def test_every_cell_has_the_lens_best_tokens(scene):
    words, measured, written = [block for block in named("lenses").content(scene, 3) if block["type"] == "table"]
    lens, tokenizer = encoder_lens(scene.translator.model, scene.output, scene.lenses), scene.translator.tokenizer
    assert len(words["rows"]) == len(scene.trace.source_tokens) and len(words["columns"]) == 4
    for position, (_, *cells) in enumerate(words["rows"]):
        for layer, cell in enumerate(cells):
            best = lens.ids[layer, position, :3].tolist()
            assert cell["text"].count(" · ") == 2 and cell["framed"] == bool({*best} & {*scene.trace.target_ids})
            assert cell["share"] == pytest.approx(lens.shares[layer, position, 0], rel=1e-3)
    assert [cell["share"] for cell in measured["rows"][0][2:]] == [0.5, 0.25]
    assert written["rows"][-1][1] == tokenizer.decode(scene.trace.target_ids)
    json.dumps(for_page(words))


def test_the_panel_applies_the_translations_interventions(scene):
    changes = Interventions(edits=(("decoder.final", Scale(-1.0)),))
    trace = scene.translator.translate(SENTENCES[0], interventions=changes)
    assert trace.target_ids != scene.trace.target_ids
    (*_, written) = named("lenses").content(Scene(trace, Selection(), scene.translator), 1)
    assert written["rows"][-1][1] == scene.translator.tokenizer.decode(trace.target_ids)


def test_without_lenses_of_this_model_the_panel_says_so(scene, tiny_translator, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(own_sentences, "languages", lambda: ())
    bare = Scene(tiny_translator.translate(SENTENCES[0]), Selection(), tiny_translator)
    note, written = named("lenses").content(bare, 2)
    assert "No lenses were fitted" in note["text"] and len(written["rows"]) == 3
    shutil.copy(scene.translator.folder / storage.FILE, tmp_path)
    assert storage.load_stored(tmp_path, scene.translator.config, "0" * 16) is None and "other weights" in caplog.text


def test_lenses_are_fitted_on_the_page_in_parts(tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(fit, "PAGE_SENTENCES", 6)
    monkeypatch.setattr(fit, "PAGE_SLOPES", 2)
    monkeypatch.setattr(fit, "PAGE_STEPS", 5)
    translator = Translator.load(tiny_checkpoint)
    bare, panel = Scene(translator.translate(SENTENCES[0]), Selection(), translator), named("lenses")
    offer, _ = panel.content(bare, 2)
    assert offer["type"] == "take" and "6 of this project's own sentences" in offer["about"]
    _, parts = begin(panel, bare, offer, 2)
    assert parts == sorted(parts) and parts[-1] == (3 + translator.config.num_decoder_layers,) * 2
    words, *_ = panel.content(bare, 2)
    assert words["type"] == "table" and bare.lenses.sentences == 6
    lens = temperatures.compute_details(translator, bare.trace.source_ids, bare.trace.target_ids)
    assert set(lens.lenses) == set(storage.Lens)
    assert fit.find_lenses(Translator.load(tiny_checkpoint)) is None  # in memory only, not beside the weights
