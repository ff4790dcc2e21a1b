"""A T5 and a BART saved by `transformers` work in the programs, the library, a notebook and the API.

Encoder and decoder differ in size. tests/page/test_own_model.py opens the page with them.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import nbformat
import numpy as np
import pytest
from gradio_client import Client
from safetensors.torch import load_file

from attention_atlas import viz
from attention_atlas.model import align, convert, means, survey, translate
from attention_atlas.model.analysis import why
from attention_atlas.model.analysis.circuits.graph import build_graph
from attention_atlas.model.analysis.steering import compute_steering_vector
from attention_atlas.model.checkpoint import read_survey
from attention_atlas.model.checks.verify import verify
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.edits import Add
from attention_atlas.model.trace.interventions import heads_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.export.standalone import from_html
from tests import ROOT
from tests.conftest import SENTENCES
from tests.model.families import theirs
from tests.model.families.test_real_weights import KNOWN, WRITTEN, taught
from tests.server.test_api import ask

FORMS = {
    "t5": (theirs.t5, {}, "en-de"),
    "bart": (theirs.bart, {"decoder_attention_heads": 2, "decoder_ffn_dim": 64}, "source-target"),
}
TEXT = SENTENCES[0]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=FORMS)
def model(request, tmp_path_factory) -> tuple[Path, str]:
    """A converted folder whose model has memorized a few pairs, and its direction."""
    make, changes, direction = FORMS[request.param]
    place = tmp_path_factory.mktemp(request.param)
    folder = taught(place, make, **changes)
    convert.main([str(place / "theirs"), "--out", str(place / "converted")])
    assert load_file(place / "converted" / "model.safetensors").keys() == load_file(folder / "model.safetensors").keys()
    assert "encoder and 3 decoder layers" in (place / "converted" / "README.md").read_text(encoding="utf-8")
    return folder, direction


def lines(path: Path, texts) -> str:
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


def test_programs_translate_survey_and_align(model, tmp_path, capsys, monkeypatch):
    folder, direction = model
    source, target = lines(tmp_path / "source", KNOWN), lines(tmp_path / "target", WRITTEN)
    of = ["--checkpoint", str(folder)]
    translate.main([*of, "--direction", direction, TEXT])
    assert capsys.readouterr().out.strip() == SENTENCES[1]
    means.main([*of, "--sentences", source, "--directions", direction])
    monkeypatch.setattr("attention_atlas.model.analysis.survey.run.source_sentences", lambda direction: KNOWN[:3])
    survey.main([*of, "--sentences", source, target, "--directions", direction, "--ablate", "2"])
    digest = json.loads((folder / "heads.json").read_text(encoding="utf-8"))["digest"]
    result = read_survey(folder / "heads.json", digest).directions[direction]
    network = Translator.load(folder, "cpu").model
    for kind, heads in result.kinds.items():
        assert heads.statistics["ablation"].value.shape == (network.num_layers[kind], network.num_heads[kind])
        assert np.isfinite(heads.statistics["gradient"].value).all()
    capsys.readouterr()
    align.main([source, target, *of, "--direction", direction, "--symmetrise", "forward"])
    links = capsys.readouterr().out.splitlines()
    for line, text in zip(links, WRITTEN, strict=True):
        assert sorted(int(link.split("-")[1]) for link in line.split()) == list(range(len(text.split())))


def test_the_library_draws_explains_and_edits(model, tmp_path):
    folder, direction = model
    translator = Translator.load(folder, "cpu")
    trace = translator.translate(TEXT, direction)
    assert trace.translation == SENTENCES[1]
    failed = [(check.name, check.detail) for check in verify(translator, trace) if not check.passed]
    assert not failed
    for kind in trace.kinds:
        assert trace.maps(kind).num_heads == translator.model.num_heads[kind]
    viz.plot_heatmap(trace, viz.View("cross", layer=2, head=1, words=True, predicted=True))
    viz.plot_grid(trace, "encoder_self")
    viz.explore(trace).save(tmp_path / "heads.html")
    maps = from_html((tmp_path / "heads.html").read_text(encoding="utf-8"))
    assert all(np.allclose(maps[kind], trace.maps(kind).weights, atol=1e-6) for kind in trace.kinds)
    reloaded = storage.from_json(storage.to_json(trace))
    np.testing.assert_allclose(reloaded.cross.weights, trace.cross.weights, atol=1e-6)

    answer = why.attribute(translator, trace, step=2)
    assert len(answer.to_frame()) and why.split_logit(translator, trace, step=2).sum.holds
    effects = why.measure_heads(translator, trace, step=2)
    assert {kind: values.shape for kind, values in effects.effects.items()} == {
        kind: (translator.model.num_layers[kind], heads) for kind, heads in translator.model.num_heads.items()
    }
    assert why.patch(translator, trace, KNOWN[3], step=2).metrics.shape[0] == 3
    assert why.find_smallest_set(translator, trace).verified
    without = translator.translate(TEXT, direction, interventions=heads_off(AttentionKind.CROSS, 2, (0, 1)))
    assert without.interventions.heads_off
    run = translator.run([TEXT], names=["encoder.final", "decoder.*.self.z"], direction=direction)
    assert run["decoder.0.self.z"].shape[1] == translator.model.num_heads[AttentionKind.DECODER_SELF]
    towards = compute_steering_vector(translator, KNOWN[0], KNOWN[1], place="encoder.final", languages=direction)
    with translator.edit({"encoder.final": Add(towards, strength=0.5)}) as steered:
        assert steered.translate(TEXT, direction).target_ids
    if not translator.config.norm_first:
        with pytest.raises(ValueError, match="norms before each sub-layer"):
            build_graph(translator.config)
    else:
        heads = sum(translator.model.num_heads[kind] * layers for kind, layers in translator.model.num_layers.items())
        senders = sum(map(len, build_graph(translator.config).senders.values()))
        assert senders == heads + 2 + 5  # two embeddings and five feed-forward layers


def test_a_notebook_shows_figures_and_the_explorer(model, tmp_path):
    folder, direction = model
    notebooks = importlib.import_module("notebooks.__main__")
    cells = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom attention_atlas.model.translator import Translator",
        f"translator = Translator.load({str(folder)!r}, 'cpu')\ntrace = translator.translate({TEXT!r}, {direction!r})",
        "from attention_atlas import viz\nviz.plot_heatmap(trace, viz.View('cross', layer=1, head=1))",
        "viz.explore(trace)",
        "print(trace.translation)",
    )
    path = tmp_path / "walk.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    notebook = notebooks.executed(path)
    assert notebook.cells[-1].outputs[0].text.strip() == SENTENCES[1]
    assert "application/vnd.plotly.v1+json" in notebook.cells[2].outputs[0].data
    assert "text/html" in notebook.cells[3].outputs[0].data


def test_the_api_answers(model, serve):
    folder, direction = model
    translator = Translator.load(folder, "cpu")
    trace = translator.translate(TEXT, direction)
    url = serve(shell.build(Translators([translator])))
    client = Client(url, verbose=False, analytics_enabled=False)
    assert ask(client, "translate", TEXT, direction)["translation"] == SENTENCES[1]
    for kind in trace.kinds:
        last = translator.model.num_layers[kind] - 1, translator.model.num_heads[kind] - 1
        answer = ask(client, "attention", TEXT, kind.value, *last, direction=direction)["map"]
        np.testing.assert_allclose(answer["weights"], trace.maps(kind).weights[last], atol=1e-5)
    for name, options in {
        "why": {"step": 2},
        "why_heads": {"step": 2},
        "why_patch": {"second": KNOWN[3], "step": 2},
        "why_smallest": {},
        "lens": {},
        "step": {"prefix": list(trace.target_ids[:2])},
        "score": {"target": WRITTEN[1]},
    }.items():
        assert ask(client, name, TEXT, direction=direction, **options)
