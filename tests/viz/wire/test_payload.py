"""Payloads: exact enough and small enough."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.viz.figures.attention import ColourScale, Transform
from attention_atlas.viz.maps import reduce
from attention_atlas.viz.maps.branches import Tree
from attention_atlas.viz.wire import payload, steps, tiles
from attention_atlas.viz.wire.codecs import ROOT, SMALL
from attention_atlas.viz.words import for_page
from bench.made.synthetic import random_trace


def test_the_whole_range_of_weights_survives():
    weights = np.concatenate([np.logspace(-12, 0, 5000), [0.0, 1.0]]).astype(np.float32)
    decoded = ROOT.decode(ROOT.encode(weights), weights.shape)
    assert decoded[-2] == 0 and decoded[-1] == 1
    assert (np.abs(decoded - weights) / np.maximum(weights, 1e-30))[:-2].max() < 0.05
    assert np.abs(np.log10(decoded[weights >= 1e-4]) - np.log10(weights[weights >= 1e-4])).max() < 2e-3


def test_a_translation_of_thirty_tokens_fits():
    packed = payload.payload(random_trace(30, 30))
    assert not packed["lazy"]
    assert len(json.dumps(packed, ensure_ascii=False).encode()) <= 350_000


def sent_bytes(content: dict) -> int:
    """Return the size of an answer as /ask sends it."""
    return len(json.dumps(for_page(content), ensure_ascii=False).encode())


OPUS_MT, NLLB = (6, 8), (12, 16)  # layers a side and heads of published models
DEEPEST = (24, 16)  # the largest dense M2M100


@pytest.mark.parametrize(
    ("shape", "tokens"),
    [
        (OPUS_MT, 40),
        (OPUS_MT, 60),
        (OPUS_MT, 333),
        (NLLB, 25),
        (NLLB, 40),
        (NLLB, 60),
        (NLLB, 95),
        (NLLB, 165),
        (DEEPEST, 60),
        (DEEPEST, 110),
        ((4, 8), 62),
        ((4, 8), 256),
    ],
)
def test_the_first_payload_has_at_most_one_megabyte(shape, tokens):
    """Random weights cannot be compressed. The number of tokens goes up to the limit for each shape."""
    layers, heads = shape
    trace = random_trace(tokens, tokens, layers=layers, heads=heads)
    packed, tree = payload.payload(trace), Tree.of(trace)
    assert sent_bytes(packed) <= 1_000_000
    small = ["cross"] if tokens <= tiles.SIDE else []  # thumbnails of larger maps are sent layer by layer
    assert not packed["lazy"] or [thumbnails["kind"] for thumbnails in packed["thumbnails"]] == small
    # Texts of ordinary length come with at least one layer.
    assert packed["blocks"] or tokens > 90
    opened = {"tree": steps.tree_payload(tree), "path": steps.path_payload(trace, tree.branches[0])}
    assert sent_bytes(opened) <= 1_000_000
    rows = steps.rows_payload(trace, 0)
    assert sent_bytes(rows) <= 500_000 and rows["last"] > 0
    for kind in trace.kinds:
        assert sent_bytes({"layers": [], "thumbnails": [payload.thumbnails(trace, kind)]}) <= 450_000


def test_long_texts_are_sent_layer_by_layer():
    trace = random_trace(128, 128, layers=4)
    packed = payload.payload(trace)
    assert packed["lazy"] and len(packed["blocks"]) == 1
    for kind, thumbnails in zip(TRANSFORMER_KINDS, map(payload.thumbnails, [trace] * 3, TRANSFORMER_KINDS)):
        size = (4, 8, thumbnails["rows"], thumbnails["columns"])
        values, expected = SMALL.decode(thumbnails["data"], size), reduce.pool(trace.maps(kind).weights)
        assert size[2:] == (40, 40) and np.array_equal(values == 0, expected < (0.5 / 255) ** 4)
        # Thin lines are not averaged away.
        assert values.max() == pytest.approx(trace.maps(kind).weights.max(), abs=0.01)
        for transform in Transform:  # the difference is invisible on every colour scale
            scale = ColourScale(transform=transform)
            assert np.abs(scale.apply(values) - scale.apply(expected)).max() < 0.01
    for kind in TRANSFORMER_KINDS:
        block = payload.block(trace, kind, 2, 3)
        decoded = ROOT.decode(block["data"], trace.maps(kind).weights[2:3].shape)
        assert np.abs(decoded - trace.maps(kind).weights[2:3]).max() < 3.1e-5
    with pytest.raises(ValueError, match="layers 0 to 3"):
        payload.block(trace, AttentionKind.CROSS, 4, 5)


def test_pooling_takes_the_largest_of_each_block():
    weights = np.random.default_rng(3).random((2, 50, 7))
    pooled = reduce.pool(weights, 16)
    assert pooled.shape == (2, 16, 7)
    starts = [i * 50 // 16 for i in range(17)]
    for i in range(16):
        assert np.array_equal(pooled[:, i], weights[:, starts[i] : starts[i + 1]].max(1))


def test_colour_scales_match_their_ticks():
    for transform in Transform:
        for maximum in (1.0, 0.37):
            scale = ColourScale(transform=transform, maximum=maximum)
            places, texts = scale.ticks()
            assert places == sorted(places) and places[0] == 0 and places[-1] == 1
            for place, text in zip(places, texts):
                value = float(text.removeprefix("≤ "))
                assert scale.apply(np.array(value)) == pytest.approx(place, abs=2e-3)
    assert ColourScale(transform="log").apply(np.array([0.0, 1e-9, 1e-4, 1e-2, 1.0])).tolist() == [0, 0, 0, 0.5, 1]
    assert np.isnan(ColourScale().apply(np.array([np.nan]))[0])
    for wrong in ({"name": "rainbow"}, {"maximum": 0.0}, {"transform": "cubic"}):
        with pytest.raises(ValueError, match=str(next(iter(wrong.values())))):
            ColourScale(**wrong)
