"""The circuit panel draws what the library finds, keeps what it says, and refuses in words."""

from __future__ import annotations

import json

import pytest

from model.analysis import circuits
from tests.viz.ui.lab.panels import named
from viz.figures.circuit import Drawn, plot_circuit
from viz.ui.asked import Asked
from viz.ui.desk.scene import Scene
from viz.ui.lab.why import circuit
from viz.ui.session import Selection
from viz.words import for_page

SENTENCE, SECOND = "Der kleine Hund schläft unter dem Tisch.", "Der kleine Tisch schläft unter dem Hund."


@pytest.fixture(scope="module")
def scene(tiny_translator) -> Scene:
    return Scene(tiny_translator.translate(SENTENCE), Selection(), tiny_translator, Asked())


def test_the_picture_has_the_edges_that_the_library_finds(scene):
    found = named("why-circuit").content(scene, SECOND, 20)
    pair = circuit.pair_of(scene, SECOND)
    expected = circuits.find(scene.translator, [pair])
    (table,) = (block for block in found if block["type"] == "table")
    assert [[cell["text"] for cell in row[:2]] for row in table["rows"]] == [
        [e.sender, e.receiver] for e, _ in expected.edges(20)[:12]
    ]
    (picture,) = (block for block in found if block["type"] == "figure")
    assert len(picture["figure"]["data"]) == len(expected.edges(20)) + 2
    (facts,) = (block for block in found if block["type"] == "facts")
    lead = scene.case.metric()
    assert facts["items"][0][1].replace("−", "-") == pytest.approx(f"{lead:+.1f}") or abs(lead) < 1
    json.dumps(for_page(found), allow_nan=False)


@pytest.mark.parametrize(
    ("text", "said"), [("Hund", "as many in both"), (SENTENCE, "the same"), ("", None)], ids=["short", "same", "none"]
)
def test_what_cannot_be_compared_is_said_beside_the_words(scene, text, said):
    words, *rest = named("why-circuit").content(scene, text, 20)
    assert words["type"] == "words" and bool(rest) == bool(said)
    assert said is None or said in str(for_page(rest[0]["text"]))


def test_edges_that_lead_into_one_head_are_named_apart():
    edges = [
        Drawn(sender, "decoder.0.cross.1", letter, 1.0)
        for sender in ("encoder.embed", "encoder.0.ffn")
        for letter in "qkv"
    ]
    figure = plot_circuit(edges, (1, 1))
    assert len({*zip(figure.data[-2].x, figure.data[-2].y)}) == len(edges)
    assert sorted(figure.data[-1].text) == ["2", "FF", "x"]
    assert all(place > 0 for place in figure.data[-1].x[1:]) and len({*figure.data[-1].x}) == 3
