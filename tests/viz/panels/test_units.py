"""The panel of units: sentences are read in parts, what excites units is shown, and one can be turned up."""

from __future__ import annotations

import json
from collections import OrderedDict

import pytest
import torch

from attention_atlas.model.analysis.units.dictionary import Dictionary, Quality, StoredDictionary
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.panels.heads import units
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection
from attention_atlas.viz.words import for_page
from tests.viz.panels.panels import begin, named

PANEL = named("heads-units")


@pytest.fixture()
def scene(tiny_translator, monkeypatch) -> Scene:
    monkeypatch.setitem(
        vars(tiny_translator), "_results_of_work", OrderedDict()
    )  # other tests have read sentences, too
    trace = tiny_translator.translate("Der kleine Hund schläft unter dem Tisch.", "de-en")
    return Scene(trace, Selection(), tiny_translator, PageQuestion())


@pytest.fixture()
def fitted(scene, monkeypatch):
    width = scene.translator.config.d_model
    rows = torch.eye(width)
    dictionary = StoredDictionary(
        Dictionary(rows, torch.zeros(width), rows, torch.zeros(width), 1.0, 5),
        1,
        9,
        scene.translator.digest,
        {"random": Quality(-0.5, 0.1, 5.0, 0.0)},
    )
    monkeypatch.setattr(units, "load_stored", lambda *_: dictionary)
    return dictionary


@pytest.mark.parametrize("kind", ["neurons", "dictionary"])
def test_units_are_read_then_shown_then_turned_up(scene, fitted, kind):
    values = (1, kind, 3, 0)
    (take,) = PANEL.content(scene, *values)
    assert take["type"] == "take"
    scene, parts = begin(PANEL, scene, take, *values)
    assert parts == [(done, 8) for done in range(1, 9)]
    _, table, *qualities = PANEL.content(scene, *values)
    assert len(table["rows"]) == units.SHOWN and bool(qualities) == (kind == "dictionary")
    assert all("[" in row[3] for row in table["rows"])
    number = int(table["rows"][0][0]["text"])
    assert table["rows"][0][0]["to"]["open"] == {
        "tab": "more",
        "panel": "heads-units",
        "layer": 2 if kind == "dictionary" else 1,
        "units": kind,
        "unit": number,
    }
    cards, action, *_ = PANEL.content(scene, 1, kind, number, 400)
    turned = PANEL.translate(scene, action["data"])
    assert cards["items"][1][1] == (turned.translation or cards["items"][1][1])
    ((place, add),) = turned.interventions.edits
    assert place == f"encoder.{1 if kind == 'dictionary' else 0}.resid_post" and add.strength == 4
    json.dumps(for_page(PANEL.content(scene, 1, kind, number, 400)), allow_nan=False)
    with pytest.raises(Refusal, match="no unit"):
        PANEL.content(scene, 1, kind, units.MOST, 100)
    config = scene.translator.config
    assert units.UNIT.upper_bound(scene.trace, scene.translator) == max(config.d_feedforward, config.d_model)


def test_without_a_dictionary_the_panel_says_so(scene):
    (text,) = PANEL.content(scene, 1, "dictionary", 1, 0)
    assert "No dictionary was trained" in str(for_page(text["text"]))
