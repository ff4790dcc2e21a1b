"""What the panels of the tab "Why" let people take away reads back as what was shown."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from model.analysis.why.attribution import attribute
from viz.export.formats import FORMATS
from viz.ui.asked import Asked
from viz.ui.lab import taking
from viz.ui.lab.panel import Scene
from viz.ui.session import Selection


@pytest.fixture()
def scene(tiny_translator) -> Scene:
    trace = tiny_translator.translate("Der kleine Hund schläft unter dem Tisch.", "de-en")
    return Scene(trace, Selection(), tiny_translator, asked=Asked.of(trace, 3))


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.why])
def test_what_is_taken_away_reads_back(scene, name) -> None:
    found, = taking.take(scene, {"format": name})
    assert found["file"] == f"why-step4.{name}" and found["media"] == FORMATS[name].media_type
    values = FORMATS[name].why.read(base64.b64decode(found["data"]))
    why = attribute(scene.translator, scene.trace, step=3)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, np.stack([row.values for row in why.rows]))


def test_only_what_can_hold_an_answer_is_offered(scene) -> None:
    offered = [one["text"] for one in taking.exports()["formats"]]
    assert offered == ["csv", "json", "npz"]
    for wrong in ("html", "exe", None):
        with pytest.raises(ValueError, match="unknown export"):
            taking.take(scene, {"format": wrong})
