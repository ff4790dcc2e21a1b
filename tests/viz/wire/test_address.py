"""Links: interventions are included or refused."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import numpy as np
import pytest

from attention_atlas import viz
from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.edits import Ablate, Add, Scale, SteeringVector
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.viz.wire import address

TEXT = "Zwei Hunde schlafen & träumen."


def read(link: str) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(link.split("#", 1)[1]).items()}


def test_a_link_reproduces_the_translation(tiny_translator) -> None:
    config = tiny_translator.config
    vector = np.linspace(-3, 3, config.d_model)
    changes = Interventions(
        heads_off=frozenset({("cross", 0, 1)}),
        zeroed_edges=frozenset({Edge("encoder_self", 1, 0)}),
        edits=(
            ("encoder.final", Add(vector, strength=1.5, positions=(1, 2))),
            ("decoder.0.cross.z", Ablate(heads=(0,))),
            ("decoder.*.resid_post", Scale(0.75)),
        ),
    )
    trace = tiny_translator.translate(TEXT, beam=2, interventions=changes)
    fields = read(viz.link(trace, "http://127.0.0.1:7860/"))
    assert fields.pop("interventions") and fields == {
        "v": address.VERSION,
        "text": TEXT,
        "direction": trace.direction,
        "checkpoint": trace.checkpoint,
        "beam": "2",
    }
    interventions = interventions_file.from_text(read(viz.link(trace))["interventions"])
    assert interventions == trace.interventions
    copy = tiny_translator.translate(TEXT, beam=2, interventions=interventions)
    assert copy.target_ids == trace.target_ids and (copy.cross.weights == trace.cross.weights).all()


def test_links_leave_out_defaults(tiny_translator) -> None:
    trace = tiny_translator.translate(TEXT)
    assert set(read(viz.link(trace))) == {"v", "text", "direction", "checkpoint"}
    assert address.link_fields(trace, trace.decoding)["interventions"] == ""
    assert interventions_file.from_text("") == Interventions()


def test_links_contain_the_texts_of_steering_vectors_only(tiny_translator) -> None:
    drinks = Interventions(edits=(("encoder.final", Add(SteeringVector("Hunde schlafen.", "Hunde träumen."), 2.0)),))
    trace = tiny_translator.translate(TEXT, interventions=drinks)
    assert trace.interventions.edits[0][1].value.vector is not None
    text = read(viz.link(trace))["interventions"]
    assert "float32" not in text and json.loads(text)["edits"][0]["value"]["towards"] == "Hunde schlafen."
    copy = tiny_translator.translate(TEXT, interventions=interventions_file.from_text(text))
    assert copy.interventions == trace.interventions and copy.target_ids == trace.target_ids


def test_link_refuses_interventions_without_text(tiny_translator) -> None:
    with tiny_translator.edit({"encoder.final": lambda x, at: x}) as edited:
        trace = edited.translate(TEXT)
    assert address.link_fields(trace, trace.decoding)["interventions"] is None
    assert "interventions" not in address.query_fields(trace)
    with pytest.raises(ValueError, match="no link can carry these changes"):
        viz.link(trace)
    many = frozenset(Edge("cross", 0, key) for key in range(address.MAX_LENGTH // 40))
    assert interventions_file.to_text(Interventions(zeroed_edges=many), address.MAX_LENGTH) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "must be JSON"),
        ("[" * 5000, "must be JSON"),
        ("[]", "an object of heads_off"),
        ('{"roof": 1}', "an object of heads_off"),
        ('{"heads_off": [["cross"]]}', "a kind, a layer and a number"),
        ('{"patches": [{"place": "stream", "side": "encoder", "layer": 0, "positions": [0]}]}', "are edits"),
    ],
)
def test_hostile_links_are_refused(text, words) -> None:
    with pytest.raises(ValueError, match=words):
        interventions_file.from_text(text)
