"""The explorer's questions, sent as the page sends them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attention_atlas.model.trace import storage
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import error_message
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.explorer import overlays
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.panels.why import heads
from attention_atlas.viz.questions import registry
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import Traces
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.words import for_page

LONG = " ".join(["Der kleine Hund schläft unter dem Tisch"] * 2)
VIEW = {"kind": "cross", "layer": 1, "head": 2, "heads": [], "combine": "single", "words": False}
VIEW |= {"special": "show", "predicted": True}


@pytest.fixture(scope="module")
def trace(tiny_translator):
    trace = tiny_translator.translate(LONG)
    assert trace.cross.weights[0, 0].size > overlays.MOST_EDGES
    return trace


def ask(translator: Translator, trace, name: str, **data) -> dict | File:
    """Return the answer to a question of the explorer about a trace."""
    registry.load_all()
    translators = Translators([translator])
    context = Context(translators, Traces(translators))
    body = {"address": Address.of(trace).to_plain(), "fields": {"view": VIEW, **data}}
    try:
        return for_page(registry.ask(context, f"page_{name}", body))
    except ValueError as error:
        return {"error": for_page(error_message(error))}


def test_exporting_the_trace_computes_no_map(tiny_translator, trace, monkeypatch):
    """An overlay on the screen is not computed, which might take long or be refused."""
    monkeypatch.setattr(overlays, "overlay_map", lambda *_: pytest.fail("no map is needed"))
    file = ask(tiny_translator, trace, "export", format="json", overlay="effect_if_cut")
    assert file.name == f"attention-{trace.key}.json" and file.media_type == "application/json"
    assert np.array_equal(storage.from_json(file.content.decode()).cross.weights, trace.cross.weights)


def test_a_map_is_exported_as_it_is_shown(tiny_translator, trace):
    file = ask(tiny_translator, trace, "export", format="csv", overlay="layer_difference")
    assert file.name == "layer_difference-cross-layer2-head3.csv"
    refused = ask(tiny_translator, trace, "export", format="csv", overlay="effect_if_cut")
    assert refused["error"]["say"].startswith("This map has {n} edges")


def test_overlays_that_need_a_transformer_are_not_offered_for_alignment(recurrent_checkpoint):
    offered = {overlay["id"]: overlay["kinds"] for overlay in overlays.options(model=True)["overlays"]}
    assert "alignment" in offered["layer_difference"] and "alignment" not in offered["effect_if_cut"]
    recurrent = Translator.load(recurrent_checkpoint, "cpu")
    trace = recurrent.translate("Der Hund")
    view = {**VIEW, "kind": "alignment", "layer": 0, "head": 0}
    answer = ask(recurrent, trace, "overlay", overlay="effect_if_cut", view=view)
    assert "to show of alignment" in str(answer["error"])


@pytest.mark.parametrize(
    "data",
    [
        {"wanted": [["cross"]]},
        {"wanted": 5},
        {"wanted": [["cross", 99]]},
        {"thumbnails": ["roof"]},
        {"thumbnails": [[]]},
        {"wanted": [["cross", 1.5]]},
    ],
)
def test_invalid_layers_are_refused(tiny_translator, trace, data):
    answer = ask(tiny_translator, trace, "layers", **data)
    assert "bug in the program" not in json.dumps(answer["error"])


def test_heads_of_a_kind_that_the_model_lacks_are_refused(tiny_translator):
    scene = Scene(tiny_translator.translate("Der Hund"), Selection(), tiny_translator)
    with pytest.raises(ValueError, match="no head 0 in layer 0 of alignment"):
        heads.read_heads(scene, {"heads": [[AttentionKind.ALIGNMENT.value, 0, 0]]})
