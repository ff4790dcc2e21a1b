"""Panels on a model with relative positions (T5)."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis.positions.relative import curves
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from attention_atlas.viz.panels.positions.breaking import FLAT, change_of
from attention_atlas.viz.panels.scene import Scene, Selection
from tests.conftest import SENTENCES
from tests.model.families import theirs
from tests.viz.panels import panels

GATED = {"own_head": True, "feed_forward_proj": "gated-gelu"}


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    folder = tmp_path_factory.mktemp("t5") / "model"
    theirs.t5(folder, **GATED).save_pretrained(folder)
    translator = Translator.load(folder, "cpu")
    trace = translator.translate(SENTENCES[0], "en-de")
    return Scene(trace, Selection().clamp(trace), translator)


def test_attention_shows_content_bias_and_their_sum(scene):
    content = panels.contents(panels.named("attention"), scene, "", 1, 2, 1, 10)[-1]
    (table,) = panels.blocks_of(content, "table")
    assert len(table["columns"]) == len(table["rows"][1]) == 11


def test_flattening_one_heads_bias_keeps_the_others(scene):
    selected = Scene(scene.trace, Selection(kind=AttentionKind.ENCODER_SELF, layer=0, head=2), scene.translator)
    _, changes = change_of(selected, FLAT, 0)
    output = scene.translator.inspect(scene.trace.source_ids, scene.trace.target_ids, interventions=changes)
    plain = scene.output.attention(AttentionKind.ENCODER_SELF, 1)
    record = output.attention(AttentionKind.ENCODER_SELF, 1)
    assert not record.bias[:, 2].any() and (record.bias[:, [0, 1, 3]] == plain.bias[:, [0, 1, 3]]).all()
    with pytest.raises(ValueError, match="can be flattened only if"):
        change_of(Scene(scene.trace, Selection(kind=AttentionKind.CROSS), scene.translator), FLAT, 0)


def test_bias_curves_equal_the_recorded_biases(scene):
    distances, biases = curves(scene.translator.model.decoder, 1)
    bias = scene.output.attention(AttentionKind.DECODER_SELF, 1).bias[0]
    for distance in range(bias.shape[-1]):
        at = int(np.flatnonzero(distances == -distance)[0])
        np.testing.assert_array_equal(biases[:, at], bias[:, distance, 0])
