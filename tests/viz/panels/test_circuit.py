"""The panel "Circuit": its picture, measurements, files and refusals, compared with the library."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from attention_atlas.model.analysis import circuits
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.figures.circuit import DrawnEdge, ModelShape, describe_node, plot_circuit
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection
from attention_atlas.viz.panels.why import circuit
from attention_atlas.viz.wire.blocks import format_effect
from attention_atlas.viz.wire.question import token_names
from attention_atlas.viz.words import for_page
from tests.viz.panels.panels import begin, block_of, blocks_of, named

SENTENCE, SECOND = "Der kleine Hund schläft unter dem Tisch.", "Der kleine Tisch schläft unter dem Hund."


@pytest.fixture(scope="module")
def scene(tiny_translator) -> Scene:
    return Scene(tiny_translator.translate(SENTENCE), Selection(), tiny_translator, PageQuestion())


def test_the_picture_has_the_edges_that_the_library_finds(scene):
    content = named("why-circuit").content(scene, SECOND, 20, "")
    pair = circuit.pair_with(scene, SECOND)
    expected = circuits.find_circuit(scene.translator, [pair])
    edges = [edge for edge, _ in expected.top_edges(20)]
    into = [row[1]["text"] if isinstance(row[1], dict) else row[1] for row in block_of(content, "table")["rows"]]
    assert for_page(into) == for_page([describe_node(e.reader) for e in edges[:12]])
    picture = block_of(content, "figure")
    assert len(picture["figure"]["data"]) == len(edges) + 3
    (facts,) = blocks_of(content, "facts")
    lead = scene.case.metric()
    assert facts["items"][0][1].replace("−", "-") == pytest.approx(f"{lead:+.1f}") or abs(lead) < 1
    json.dumps(for_page(content), allow_nan=False)
    # A click on an edge measures it; a click on a head opens its map.
    middles, nodes, ends = picture["figure"]["data"][-3:]
    assert ends["text"] == ["Hund Tisch", token_names(scene.trace, scene.question)[0]]
    assert {*middles["ids"]} <= {*picture["clicks"]} and len({*middles["ids"]}) == len(edges)
    for name in nodes["ids"]:
        assert (name in picture["clicks"]) == (name.count(".") == 3)
        if name in picture["clicks"]:
            look = picture["clicks"][name]["look"]
            weights = scene.trace.maps(AttentionKind(look["kind"])).weights
            assert weights[look["layer"], look["head"], look["query"], look["key"]] > 0


def test_an_edge_is_measured_by_cutting_it(scene):
    pair = circuit.pair_with(scene, SECOND)
    circuit_of_pair = circuits.find_circuit(scene.translator, [pair])
    edge = next(edge for edge, _ in circuit_of_pair.top_edges(40) if edge.letter)
    data = {"act": "measured", "sender": edge.sender, "receiver": edge.receiver}
    _, facts = named("why-circuit").act(scene, data, SECOND, 20, "")
    targets = (edge.receiver, edge.reader, *(["logits"] if edge.sender[0] == "d" else []), "")
    expected = [format_effect(circuit_of_pair.path_effect(edge.sender, target)) for target in targets]
    assert [value for _, value, _ in facts["items"]] == expected
    with pytest.raises(Refusal, match="no such edge"):
        named("why-circuit").act(scene, {**data, "receiver": "encoder.embed"}, SECOND, 20, "")


def test_many_sentences_find_and_test_a_circuit_in_parts(scene, monkeypatch):
    monkeypatch.setattr(circuit, "pair_sentences", lambda *_: [circuit.pair_with(scene, SECOND)] * 9)
    panel, typed = named("why-circuit"), "Hund = Katze"
    _, parts = begin(panel, scene, block_of(panel.content(scene, SECOND, 20, typed), "take"), SECOND, 20, typed)
    assert parts == sorted(parts) and parts[-1] == (5, 5)  # three pairs to find it, six to test it in batches of four
    content = panel.content(scene, SECOND, 20, typed)
    table = [block for block in content if block["type"] == "table"][-1]
    assert len(table["rows"]) == 12 and table["rows"][9][2].startswith("1.00 [")
    json.dumps(for_page(content), allow_nan=False)
    with pytest.raises(Refusal, match="Type fillers as"):
        begin(panel, scene, block_of(panel.content(scene, SECOND, 20, "Hund"), "take"), SECOND, 20, "Hund")


def test_cutting_all_other_edges_and_exporting_the_circuit(scene):
    panel = named("why-circuit")
    (cards,) = panel.act(scene, {"act": "alone"}, SECOND, 80, "")
    assert cards["items"][0][1] == scene.trace.translation
    written = json.loads(panel.act(scene, {"act": "export", "format": "mib"}, SECOND, 20, "").content)
    assert sum(edge["in_graph"] for edge in written["edges"].values()) >= 20
    files = (panel.act(scene, {"act": "export", "format": form}, SECOND, 20, "") for form in ("csv", "json", "npz"))
    csv, as_json, npz = (file.content for file in files)
    nats = [edge["nats"] for edge in json.loads(as_json)["edges"]]
    assert len(nats) >= 20 and csv.decode().splitlines()[1].endswith(f",proxy,nats,{nats[0]!r}")
    with np.load(io.BytesIO(npz), allow_pickle=False) as stored:
        assert stored["values"][:, 0].tolist() == nats
    assert "a0.h1->c2.h3<q>" in written["edges"] and "enc.input->c0.h0<k>" in written["edges"]


@pytest.mark.parametrize(("text", "message"), [(SENTENCE, "the same"), ("", None)], ids=["same", "none"])
def test_a_sentence_that_cannot_be_compared_gets_a_message(scene, text, message):
    words, *rest = named("why-circuit").content(scene, text, 20, "")
    assert words["type"] == "words" and bool(rest) == bool(message)
    assert message is None or message in str(for_page(rest[0]["text"]))


def test_edges_into_one_head_are_distinguishable():
    edges = [
        DrawnEdge(sender, "decoder.0.cross.1", letter, 1.0)
        for sender in ("encoder.embed", "encoder.0.ffn")
        for letter in "qkv"
    ]
    shape = ModelShape(1, 1, 8, ("Hund", "dog"))
    figure = plot_circuit(edges, shape)
    middles, nodes, ends = figure.data[-3:]
    assert len({*zip(middles.x, middles.y)}) == len(edges)
    assert sorted(nodes.text) == ["2", "FF", "x"] and list(ends.text) == ["Hund", "dog"]
    # The position of a node does not depend on other nodes: columns follow the pass, a head's row is its index.
    alone = plot_circuit(edges[:1], shape).data[-2]
    positions = dict(zip(nodes.ids, zip(nodes.x, nodes.y)))
    assert {name: place for name, place in zip(alone.ids, zip(alone.x, alone.y))}.items() <= positions.items()
    order = ["encoder.embed", "encoder.0.self.0", "encoder.0.ffn", "decoder.embed", "decoder.0.self.0"]
    places = [shape.position(name) for name in (*order, "decoder.0.cross.0", "decoder.0.ffn", "logits")]
    assert [x for x, _ in places] == sorted({x for x, _ in places})
    heads = [f"decoder.0.cross.{head}" for head in range(8)]
    assert len({shape.position(name) for name in (*heads, "decoder.0.ffn")}) == 9


def test_sentences_of_unequal_length_show_only_the_decoder(scene):
    content = named("why-circuit").content(scene, "Hund", 10, "")
    assert "different numbers of tokens" in str(for_page(content))
    drawn = block_of(content, "figure")["figure"]["data"][-2]
    assert drawn["ids"] and all(name.startswith("decoder.") or name == "logits" for name in drawn["ids"])


def test_fillings_of_too_many_words_are_refused():
    with pytest.raises(Refusal, match="8 words at most"):
        circuit.parse_fillers("; ".join(f"w{n} = a" for n in range(9)))
