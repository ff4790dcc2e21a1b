"""The tab "Heads": what its panels say is what the survey and the trace hold."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from model.analysis.survey import own
from model.analysis.survey.corpus import Corpus
from model.analysis.survey.run import Run
from model.trace.kinds import AttentionKind
from model.trace.survey.survey import Survey
from model.trace.tokens import is_symbol
from tests.conftest import SENTENCES
from viz.ui.lab.heads import alignment, search, survey
from viz.ui.lab.panel import Scene
from viz.ui.session import Selection

ENCODER = AttentionKind.ENCODER_SELF


@pytest.fixture(scope="module")
def surveyed(tiny_translator):
    """The tiny translator with a survey of a few sentences."""
    run = Run(tiny_translator, "de-en", Corpus("few", lambda: ((line, "") for line in SENTENCES[0:10:2]), own=True))
    found = copy(tiny_translator)
    found.survey = Survey("tiny", found.digest, {"de-en": run.result(run.work())})
    return found


@pytest.fixture(scope="module")
def scene(surveyed) -> Scene:
    return Scene(surveyed.translate(SENTENCES[0], "de-en"), Selection(ENCODER, 1, 2, 3, 3), surveyed)


def test_the_overview_holds_every_value(scene, surveyed):
    _, sent, _ = survey.overview(scene)
    found = surveyed.survey.directions["de-en"].kinds
    assert [kind["kind"] for kind in sent["kinds"]] == [kind.value for kind in found]
    for kind, k in zip(sent["kinds"], found.values()):
        for name, e in k.statistics.items():
            np.testing.assert_allclose(kind["statistics"][name]["low"], e.low.reshape(-1), atol=1e-3)


def test_a_card_is_of_its_head_and_tests_it_here(scene, surveyed):
    title, table, row, button = survey.card(scene, {"kind": "encoder_self", "layer": 1, "head": 2})
    assert title["text"].startswith("Encoder self-attention, layer 2, head 3: ")
    k = surveyed.survey.directions["de-en"].kinds[ENCODER]
    values = {str(cells[0]): cells for cells in table["rows"]}
    assert values["own position"][1]["text"] == f"{k.statistics['itself'].value[1, 2]:.3f}"
    maps, words = scene.trace.encoder_self.weights[1, 2], [
        i for i, token in enumerate(scene.trace.source_tokens) if not is_symbol(token)]
    assert values["own position"][5] == f"{np.mean([maps[t, t] for t in words]):.3f}"
    assert (button["layer"], button["head"]) == (1, 2) and len(row["blocks"]) == 2
    for wrong in ({"kind": "encoder_self", "layer": 2, "head": 0}, {"kind": "encoder_self", "layer": 0, "head": "1"},
                  {"kind": "sideways", "layer": 0, "head": 0}):
        with pytest.raises(ValueError, match=r"encoder_self has no layer|sideways"):
            survey.card(scene, wrong)


def test_a_pinned_cell_finds_heads_by_what_it_is_an_example_of(scene, surveyed):
    found = search.search(scene)
    assert "The pinned cell" in found[0]["text"]
    ranking = found[1]["blocks"][0]
    assert str(ranking["columns"][1]) == "own position"
    values = surveyed.survey.directions["de-en"].kinds[ENCODER].statistics["itself"].value
    layer, head = np.unravel_index(values.argmax(), values.shape)
    assert str(ranking["rows"][0][0]) == f"layer {layer + 1}, head {head + 1}"


@pytest.mark.parametrize("row", [alignment.READ, alignment.PREDICTED])
def test_maps_between_words_are_sums_of_columns_and_means_of_rows(scene, row):
    trace = scene.trace
    found = alignment.between_words(trace, row)
    for t, target in enumerate(alignment.words_of(trace.target_tokens)):
        for s, source in enumerate(alignment.words_of(trace.source_tokens)):
            rows = [min(i + (row == alignment.READ), len(trace.decoder_ids) - 1) for i in target]
            expected = np.mean([trace.cross.weights[:, :, i, list(source)].sum(-1) for i in rows], 0)
            np.testing.assert_allclose(found[:, :, t, s], expected, atol=1e-6)


def test_a_heads_own_links_give_it_no_error(scene):
    maps = alignment.between_words(scene.trace, alignment.READ)
    links = [list(link) for link in sorted(alignment.best(maps[2, 1]))]
    table, = alignment.scored(scene, {"links": links}, alignment.SELECTED, alignment.READ)
    perfect = {str(row[0]) for row in table["rows"] if row[2]["text"] == "0.000" and str(row[1]) == "token read"}
    assert "layer 3, head 2" in perfect
    for wrong in ([[0, 999]], [[0]], [["0", 0]], [[-1, 0]]):
        with pytest.raises(ValueError, match="is no link"):
            alignment.scored(scene, {"links": wrong}, alignment.SELECTED, alignment.READ)


def test_a_survey_can_be_taken_from_the_page(tiny_translator, monkeypatch, tmp_path):
    monkeypatch.setattr(own, "sentences", lambda language: SENTENCES[0:10:2])
    monkeypatch.setattr(own, "WINDOW", 3)
    monkeypatch.setattr(own, "_folder", lambda translator: tmp_path / "parts")
    scene = Scene(tiny_translator.translate(SENTENCES[0], "de-en"), Selection(), tiny_translator)
    assert survey.overview(scene)[0]["type"] == "take"
    done = []
    for _ in range(9):
        found = survey.step(scene, {})
        if found[0]["type"] != "take":
            break
        done.append((found[0]["done"], found[0]["of"]))
    assert done == [(1, 3), (2, 3)] and found[1]["type"] == "survey"
    assert survey.overview(scene)[1]["type"] == "survey"
