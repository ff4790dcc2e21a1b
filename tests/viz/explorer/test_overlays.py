"""Overlays, which replace attention in the explorer's map: their values compared with numpy, and their encoding."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.explorer import overlays
from attention_atlas.viz.explorer.overlays import OVERLAYS, Overlay
from attention_atlas.viz.maps import reduce
from attention_atlas.viz.maps.reduce import Special, View, label_scores, score_map
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire.codecs import CODECS
from attention_atlas.viz.wire.payload import descriptor
from attention_atlas.viz.words import for_page


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
def test_the_layer_difference_is_the_head_minus_the_layers_mean(hand_made_trace, kind):
    weights = hand_made_trace.maps(kind).weights.astype(np.float64)
    widest = max(np.abs(layer - layer.mean(0)).max() for layer in weights)
    for layer, head in product(range(len(weights)), range(4)):
        score_map = overlays.overlay_map("layer_difference", Scene(hand_made_trace), View(kind, layer, head))
        assert np.allclose(score_map.values, weights[layer, head] - weights[layer].mean(0), atol=1e-6)
        assert np.allclose(score_map.values.sum(1), 0, atol=1e-6)
        assert score_map.signed and not score_map.attention and score_map.limits == pytest.approx((-widest, widest))


@pytest.mark.parametrize("kind", TRANSFORMER_KINDS)
@pytest.mark.parametrize("special", [Special.SHOW, Special.HIDE, Special.RENORMALISE])
def test_overlays_merge_words_and_hide_tokens_as_attention_does(hand_made_trace, kind, special):
    """Merging tokens into words and hiding tokens commutes with the difference of two maps."""
    for words, predicted in product((False, True), repeat=2):
        view = View(kind, 1, 2, words=words, special=special, predicted=predicted)
        difference = overlays.overlay_map("layer_difference", Scene(hand_made_trace), view)
        changed = replace(view, special=Special.HIDE if special == Special.RENORMALISE else special)
        head, mean = (score_map(hand_made_trace, replace(changed, combine=combine)) for combine in ("single", "mean"))
        assert (difference.rows, difference.columns) == (head.rows, head.columns)
        assert (difference.row_positions, difference.column_positions) == (head.row_positions, head.column_positions)
        expected = head.values.astype(np.float64) - mean.values
        assert np.allclose(np.where(np.isnan(expected), difference.values, expected), difference.values, atol=1e-6)
        assert not np.isnan(difference.values).any()


def test_merging_words_of_a_score_that_is_not_additive_keeps_the_extreme():
    values = np.array([[1.0, -3.0, 2.0], [-0.5, 0.25, -4.0], [np.nan] * 3])
    merged = reduce.merge_words(values, ((0, 1), (2,)), ((0, 1), (2,)), additive=False)
    assert np.array_equal(merged, [[-3.0, -4.0], [np.nan, np.nan]], equal_nan=True)


def test_the_encoding_of_an_overlay_has_all_fields(hand_made_trace):
    view = View("cross", 2, 1, predicted=True)
    score_map = overlays.overlay_map("layer_difference", Scene(hand_made_trace), view)
    sent = json.loads(json.dumps(for_page(descriptor("layer_difference", "t", view.kind, score_map))))
    assert sent.keys() == {"id", "title", "kind", "unit", "signed", "range", "rows", "columns", "codec", "data"}
    assert sent["codec"] == "signed16" and sent["signed"] is True and sent["range"][0] == -sent["range"][1] < 0
    read = CODECS[sent["codec"]].decode(sent["data"], (len(sent["rows"]["labels"]), len(sent["columns"]["labels"])))
    assert np.abs(read - score_map.values).max() < 6.2e-5 * np.abs(score_map.values).max()
    plain = replace(score_map, values=np.abs(score_map.values), signed=False, limits=None)
    sent = descriptor("x", "x", view.kind, plain)
    assert sent["codec"] == "root16" and sent["range"] == [0.0, float(plain.values.max())]
    assert descriptor("x", "x", view.kind, replace(plain, values=plain.values * 100))["codec"] == "signed16"
    assert descriptor("x", "x", view.kind, replace(plain, values=plain.values * 0))["range"] == [0.0, 1.0]


def test_unknown_overlays_and_heads_are_refused(hand_made_trace, monkeypatch):
    monkeypatch.setitem(OVERLAYS, "cross_only", replace(OVERLAYS["layer_difference"], kinds=(AttentionKind.CROSS,)))
    for name, view, words in (
        ("gone", View(), "no 'gone'"),
        (None, View(), "no None"),
        ("cross_only", View("encoder_self"), "no 'cross_only' to show of encoder_self"),
        ("layer_difference", View(layer=7), "found layer 7"),
    ):
        with pytest.raises(ValueError, match=words):
            overlays.overlay_map(name, Scene(hand_made_trace), view)


def test_an_overlay_may_run_the_model(tiny_translator, monkeypatch):
    """Its columns may be those of source and prefix side by side; words are merged in both."""

    def largest(scene: Scene, view: View):
        score_map = scene.output.logits[0].max(-1).values.numpy()[:, None]
        columns = len(scene.trace.source_ids) + len(scene.trace.decoder_ids)
        return label_scores(np.repeat(score_map, columns, axis=1), scene.trace, view, "logit")

    monkeypatch.setitem(OVERLAYS, "largest", Overlay("Largest logit", "", largest, needs_model=True))
    trace = tiny_translator.translate("Der kleine Hund schläft.")
    scene = Scene(trace, made_by=tiny_translator)
    score_map = overlays.overlay_map("largest", scene, View("cross", 0, 0))
    assert score_map.values.shape == (len(trace.target_ids), len(trace.source_ids) + len(trace.target_ids))
    merged = overlays.overlay_map("largest", scene, View("cross", 0, 0, words=True))
    assert sum(map(len, merged.column_positions)) == score_map.values.shape[1] > merged.values.shape[1]
    assert merged.values.max() == score_map.values.max()
    with pytest.raises(Refusal, match="translate again"):
        overlays.overlay_map("largest", Scene(trace), View("cross", 0, 0))
