"""Pyramids of tiles: no bright cell and no mass is lost at any level."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.maps.patterns import head_patterns
from attention_atlas.viz.panels.scene import Selection
from attention_atlas.viz.questions import maps
from attention_atlas.viz.wire import payload, tiles
from attention_atlas.viz.wire.codecs import HALF
from bench.made.synthetic import random_trace

SELF = AttentionKind.ENCODER_SELF


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 10))
def test_each_level_has_the_largest_and_the_mean_of_its_cells(rows, columns, seed):
    weights = np.random.default_rng(seed).dirichlet(np.full(columns, 0.1), size=rows).astype(np.float32)
    levels = tiles.pyramid(weights)
    assert max(levels[-1].largest.shape) <= tiles.TOP and levels[0].largest is weights
    for number, level in enumerate(levels):
        side = 2**number
        at = [np.arange(0, length, side) for length in weights.shape]
        largest = np.maximum.reduceat(np.maximum.reduceat(weights, at[0], 0), at[1], 1)
        sums = np.add.reduceat(np.add.reduceat(weights.astype(float), at[0], 0), at[1], 1)
        counts = np.diff([*at[0], rows])[:, None] * np.diff([*at[1], columns])
        np.testing.assert_array_equal(level.largest, largest)
        np.testing.assert_allclose(level.mean, sums / counts, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose((level.mean * counts).sum(), rows, rtol=1e-4)  # no mass is lost


def test_a_single_cell_stays_visible_at_every_level():
    weights = np.full((1024, 1024), 1 / 1100, np.float32)
    weights[311, 17] = 1.0
    for number, level in enumerate(tiles.pyramid(weights)):
        row, column = 311 >> number, 17 >> number
        codes = np.frombuffer(HALF.to_bytes(level.largest), np.uint8).reshape(level.largest.shape)
        assert codes[row, column] == 255 and (codes == 255).sum() == 1 and codes.min() == 8


def test_tiles_and_strips_have_the_cells_of_the_map():
    trace = random_trace(300, 40)
    weights = trace.encoder_self.weights
    sent = tiles.tiles(trace, SELF, 1, 2, [(0, 1, 0), (2, 0, 0)])
    tile, above = sent["tiles"]
    decoded = HALF.decode(tile["largest"], (tile["rows"], tile["columns"]))
    np.testing.assert_allclose(np.sqrt(decoded), np.sqrt(weights[1, 2, 256:, :256]), atol=1 / 510 + 1e-6)
    assert "mean" not in tile and (above["rows"], above["columns"]) == (75, 75)
    mean = HALF.decode(above["mean"], (75, 75))
    blocks = weights[1, 2].reshape(75, 4, 75, 4)
    np.testing.assert_allclose(np.sqrt(mean), np.sqrt(blocks.mean((1, 3))), atol=1 / 510 + 1e-6)
    strip = tiles.strip(trace, SELF, 1)
    tops = HALF.decode(strip["data"], (trace.encoder_self.num_heads, strip["rows"], strip["columns"]))
    np.testing.assert_allclose(np.sqrt(tops[2]), np.sqrt(tiles.pyramid(weights[1, 2])[-1].largest), atol=1 / 510 + 1e-6)
    patterns = head_patterns(trace, SELF)[1]
    assert strip["readings"] == [pattern.reading for pattern in patterns]
    assert strip["entropies"] == [round(pattern.entropy, 2) for pattern in patterns]


def test_payloads_of_large_maps_are_small_and_files_name_missing_maps():
    """Tiles are sent on demand; an exact payload is for a file without a server, so it contains one head's tiles."""
    trace = random_trace(300, 40, layers=2)
    sent = payload.payload(trace)
    assert len(json.dumps(sent)) < payload.MAX_BYTES and not sent["blocks"] and sent["lazy"]
    assert [sent["kinds"][kind.value]["large"] for kind in trace.kinds] == [True, False, True]
    assert sent["kinds"]["cross"]["readings"] == [None, None] != sent["kinds"]["decoder_self"]["readings"]
    alone = payload.payload(trace, Selection(SELF, 1, 3), exact=True)
    (head,) = alone["tiles"]
    assert (head["layer"], head["head"], len(alone["strips"])) == (1, 3, 2)
    assert len(head["tiles"]) == len(tiles.all_tiles(trace, SELF)) == 4 + 1 + 1 + 1
    assert {block["kind"] for block in alone["blocks"]} == {"decoder_self"}
    assert "layer 2, head 4" in alone["left_out"] and "left_out" not in sent
    assert "smaller ones" in payload.payload(trace, Selection(AttentionKind.DECODER_SELF), exact=True)["left_out"]


def test_requests_for_tiles_and_cells():
    trace = random_trace(300, 40, layers=2)
    context = SimpleNamespace(trace=lambda address: trace)
    request = {"key": "k", "head": ["encoder_self", 1, 3]}
    cell = maps.page_cell(context, None, {**request, "row": 299, "column": 7})["cell"]
    assert cell["value"] == float(trace.encoder_self.weights[1, 3, 299, 7])
    sent = maps.page_tiles(context, None, {**request, "wanted": [[1, 0, 0]]})["tiles"]
    assert (sent["kind"], sent["layer"], sent["head"], len(sent["tiles"])) == ("encoder_self", 1, 3, 1)
    strips = maps.page_layers(context, None, {"key": "k", "strips": [["encoder_self", 1]]})["strips"]
    assert strips == [tiles.strip(trace, SELF, 1)]
    for wrong in ({"row": 300, "column": 0}, {"row": -1, "column": 0}, {"row": 0, "column": "x"}):
        with pytest.raises(Refusal):
            maps.page_cell(context, None, {**request, **wrong})
    for wrong in (
        {"head": ["encoder_self", 2, 0]},
        {"head": ["encoder_self"]},
        {"wanted": [[0, "x", 0]]},
        {"wanted": 3},
    ):
        with pytest.raises(ValueError):
            maps.page_tiles(context, None, {"wanted": [], **request, **wrong})


@pytest.mark.parametrize("places", [[(9, 0, 0)], [(0, 2, 0)], [(0, 0, -1)], [(0, 0, 0)] * 41])
def test_unknown_tiles_are_refused(places):
    with pytest.raises(Refusal):
        tiles.tiles(random_trace(300, 40), SELF, 0, 0, places)
