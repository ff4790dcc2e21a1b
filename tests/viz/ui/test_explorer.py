"""What the explorer's page asks of the server, asked as the page asks it."""

from __future__ import annotations

import base64
import gzip
import json

import gradio as gr
import numpy as np
import pytest

from model.trace import storage
from model.trace.kinds import AttentionKind
from model.translator import Translator
from model.translators import Translators
from viz.ui import explorer, overlays
from viz.ui.asked import Asked
from viz.ui.component import Component
from viz.ui.desk.scene import Scene
from viz.ui.header import Header
from viz.ui.lab.why import heads
from viz.ui.server import api
from viz.ui.session import Selection, Session
from viz.wire.payload import key_of

LONG = " ".join(["Der kleine Hund schläft unter dem Tisch"] * 2)
VIEW = {"kind": "cross", "layer": 1, "head": 2, "heads": [], "combine": "single", "words": False}
VIEW |= {"special": "show", "predicted": True}


@pytest.fixture(scope="module")
def trace(tiny_translator):
    found = tiny_translator.translate(LONG)
    assert found.cross.weights[0, 0].size > overlays.MOST_EDGES
    return found


@pytest.fixture()
def ask():
    """ask(translator, trace, event, **data): what the explorer is answered, about a trace that it shows."""

    def asked(translator: Translator, trace, event: str, **data) -> dict:
        with gr.Blocks() as demo:
            state, result = gr.State(trace), Component("translation", {}, events=("pin", "open"))
            session = Session(state, gr.State(Selection()))
            header = Header(session, trace, Selection(), result, gr.Dropdown(), print)
            explorer.build(Translators([translator]), header)
        (handler,) = (fn for fn in demo.fns.values() if any(name == event for _, name in fn.targets))
        states = {session.trace: trace, session.selection: Selection(), session.asked: Asked()}
        given = [states.get(state, ()) for state in handler.inputs]  # the rest is the history
        value = handler.fn(gr.EventData(None, {"id": 1, "key": key_of(trace), "view": VIEW, **data}), *given)
        return json.loads(value["json"])

    return asked


def test_the_whole_trace_is_exported_whatever_is_shown(ask, tiny_translator, trace, monkeypatch):
    """An overlay that would be refused, and take its time before that, is neither computed nor named."""
    monkeypatch.setattr(overlays, "shown", lambda *_: pytest.fail("no map is needed"))
    file = ask(tiny_translator, trace, "export", format="json", overlay="effect_if_cut")["download"]
    assert file["name"] == f"attention-{key_of(trace)}.json" and file["type"] == "application/json"
    assert np.array_equal(
        storage.from_json(gzip.decompress(base64.b64decode(file["data"])).decode()).cross.weights, trace.cross.weights
    )


def test_one_map_is_exported_as_it_is_shown(ask, tiny_translator, trace):
    file = ask(tiny_translator, trace, "model_export", format="csv", overlay="layer_difference")["download"]
    assert file["name"] == "layer_difference-cross-layer2-head3.csv"
    refused = ask(tiny_translator, trace, "model_export", format="csv", overlay="effect_if_cut")
    assert refused["error"]["say"].startswith("This map has {n} edges")


def test_a_programs_whole_trace_needs_no_map_of_one_head(trace, monkeypatch):
    monkeypatch.setattr(api, "score_map", lambda *_: pytest.fail("no map is needed"))
    assert api._all_maps(trace, "json")["trace"]["translation"] == trace.translation


def test_a_refused_overlay_says_which_one_it_was(ask, tiny_translator, trace):
    found = ask(tiny_translator, trace, "model_overlay", overlay="effect_if_cut", **{"as": "effect 1 2"})
    assert found["error"] and (found["key"], found["as"]) == (key_of(trace), "effect 1 2")


def test_what_only_a_transformer_can_be_asked_is_offered_for_its_attention_alone(ask, recurrent_checkpoint):
    offered = {one["id"]: one["kinds"] for one in overlays.options(model=True)["overlays"]}
    assert "alignment" in offered["layer_difference"] and "alignment" not in offered["effect_if_cut"]
    recurrent = Translator.load(recurrent_checkpoint, "cpu")
    trace = recurrent.translate("Der Hund")
    view = {**VIEW, "kind": "alignment", "layer": 0, "head": 0}
    found = ask(recurrent, trace, "model_overlay", overlay="effect_if_cut", view=view)
    assert "to show of alignment" in str(found["error"])


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
def test_layers_that_are_none_are_refused_in_words(ask, tiny_translator, trace, data):
    handler = ask(tiny_translator, trace, "layers", **data)
    assert "fault of the program" not in json.dumps(handler["error"])


def test_heads_of_an_attention_that_a_model_lacks_are_refused(tiny_translator):
    scene = Scene(tiny_translator.translate("Der Hund"), Selection(), tiny_translator)
    with pytest.raises(ValueError, match="no head 0 in layer 0 of alignment"):
        heads.named(scene, {"heads": [[AttentionKind.ALIGNMENT.value, 0, 0]]})
