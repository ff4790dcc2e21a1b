"""Experiments of the page compared with direct runs of the model: heads switched off, edges cut, patching."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis.why import neighbours
from attention_atlas.model.analysis.why.experiments.cutting import CutMode, measure_edges
from attention_atlas.model.trace.interventions import Edge, Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.explorer import cut, overlays
from attention_atlas.viz.maps.reduce import View
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection
from attention_atlas.viz.panels.why import heads, patch
from attention_atlas.viz.wire.blocks import format_effect
from tests.viz.panels.panels import block_of

CROSS, DECODER = AttentionKind.CROSS, AttentionKind.DECODER_SELF


@pytest.fixture(scope="module")
def scene(tiny_translator) -> Scene:
    trace = tiny_translator.translate("Der kleine Hund schläft.")
    return Scene(trace, Selection(), tiny_translator, page_question=PageQuestion.of(trace, 3))


def metric_without(scene: Scene, changes: Interventions) -> float:
    output = scene.translator.inspect(scene.trace.source_ids, scene.trace.target_ids, interventions=changes)
    row = output.logits[0, scene.question.step].double()
    return float(row[scene.question.token_id] - row[scene.question.contrast_id])


def test_the_joint_effect_of_heads_is_one_run_without_all_of_them(scene):
    selected = [["cross", 0, 1], ["decoder_self", 2, 3], ["encoder_self", 1, 0]]
    content = heads.joint(scene, {"heads": selected}, "zero", "all")
    off = frozenset((AttentionKind(kind), layer, head) for kind, layer, head in selected)
    plain = metric_without(scene, Interventions())
    together = plain - metric_without(scene, Interventions(heads_off=off))
    single = sum(plain - metric_without(scene, Interventions(heads_off=frozenset({head}))) for head in off)
    values = [value for _, value, _ in content[0]["items"]]
    assert values == [*map(format_effect, (together, single, together - single))]
    assert heads.joint(scene, {"heads": []}, "zero", "all") == []
    changed = heads.translate_without(scene, {"heads": selected})
    assert changed.interventions.heads_off == off
    restored = heads.translate_without(Scene(changed, Selection(), scene.translator), {"heads": []})
    assert restored.interventions == Interventions()


@pytest.mark.parametrize("data", [{}, {"heads": [["roof", 0, 0]]}, {"heads": [["cross", 9, 0]]}, {"heads": [[1]]}])
def test_unknown_heads_are_refused(scene, data):
    with pytest.raises(ValueError):
        heads.read_heads(scene, data)


def test_every_head_is_estimated_first_and_then_measured(scene):
    *_, last = states = list(heads.explore_heads(scene, "zero", "all"))
    for state, is_done in ((states[0], False), (last, True)):
        block = block_of(state, "heads")
        cells = [cell for kind in block["kinds"] for row in kind["rows"] for cell in row]
        assert block["done"] is is_done and {"estimated" in cell["marks"] for cell in cells} == {not is_done}


@pytest.mark.parametrize("how", list(CutMode))
def test_cutting_a_pinned_cell_equals_a_run_with_that_intervention(scene, how):
    data = {"kind": "cross", "heads": [[1, 2]], "queries": [3], "keys": [2], "how": how.value}
    effect = cut.describe_effect(scene, data, cut.translate_without(scene, data))
    edges = frozenset({Edge(CROSS, 3, 2, 1, 2)})
    changes = Interventions(cut_edges=edges) if how is CutMode.RENORMALISE else Interventions(zeroed_edges=edges)
    expected = scene.translator.translate(scene.trace.source_text, scene.trace.direction, interventions=changes)
    assert effect["after"] == expected.translation and effect["same"] == (expected.target_ids == scene.trace.target_ids)
    assert effect["words"][-1].values["after"] == cut.format_nats(metric_without(scene, changes))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "roof"},
        {"heads": []},
        {"keys": None},
        {"heads": [[1]]},
        {"heads": [3]},
        {"how": "softly"},
        {"kind": "decoder_self", "queries": [1], "keys": [3]},
    ],
)
def test_invalid_edges_are_refused(change):
    data = {"kind": "cross", "heads": [[1, 2]], "queries": [3], "keys": [2], "how": "zero", **change}
    with pytest.raises(ValueError):
        cut.read_edges(data)


def test_a_map_of_cuts_is_blank_after_the_pinned_row(scene):
    score_map = overlays.overlay_map("effect_if_cut", scene, View(DECODER, 1, 2))
    expected = measure_edges(scene.case, DECODER, 1, 2)
    np.testing.assert_allclose(score_map.values[:4, :4], expected, atol=1e-6)
    assert np.isnan(score_map.values[4:]).all() and score_map.signed and not score_map.attention


def test_a_second_sentence_is_typed_or_clicked(scene, monkeypatch):
    monkeypatch.setattr(neighbours, "_load_lexicon", lambda code: {})  # without a lexicon any word may replace another
    words, *rest = patch.patch(scene, "", "decoder stream", "denoise")
    assert rest == [] and words["words"][0]["text"] == "Der"
    other = patch.replace_word(scene, {"position": words["words"][1]["position"]}, "", "", "")
    next_one = patch.replace_word(scene, {"position": words["words"][1]["position"]}, other, "", "")
    assert other != next_one != scene.trace.source_text
    assert other.startswith("Der ") and other.endswith(" Hund schläft.")
    content = patch.patch(scene, "Der Hund", "encoder heads", "denoise")
    assert [block["type"] for block in content] == ["words", "text"]  # unequal lengths
    content = patch.patch(scene, "Der Hund", "decoder stream", "noise")
    grid = block_of(content, "grid")
    assert len(grid["rows"]) == 3 and len(grid["columns"]) == 4
    last = grid["rows"][-1]["cells"]
    assert [cell["text"] for cell in last[:-1]] == ["0"] * 3  # no later layer reads them


def test_too_many_edges_are_refused_before_any_is_created(monkeypatch):
    monkeypatch.setattr(cut, "Edge", None)  # creating an edge would fail
    many = {"kind": "cross", "how": "zero", "heads": [[0, 0]], "queries": [*range(65)], "keys": [*range(64)]}
    with pytest.raises(ValueError, match=r"1 to 4096 edges can be cut at once, found 4160"):
        cut.read_edges(many)
