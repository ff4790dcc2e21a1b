"""Every registered format reads back exactly."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest

from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.maps.reduce import View, score_map
from attention_atlas.viz.panels.scene import Selection


@pytest.mark.parametrize("name", FORMATS)
def test_formats_read_back_exactly(hand_made_trace, name):
    form = FORMATS[name]
    assert form.trace or form.map
    for kind, layer, head in product(TRANSFORMER_KINDS, (0, 1), (0, 3)):
        view = View(kind, layer, head)
        if form.map:
            numbers = form.map.read(form.map.write(hand_made_trace, view, score_map(hand_made_trace, view)))
            assert numbers.dtype == np.float32 and np.array_equal(
                numbers, hand_made_trace.maps(kind).weights[layer, head]
            )
    if form.trace:
        numbers = form.trace.read(form.trace.write(hand_made_trace, Selection(kind, layer, head)))
        assert set(numbers) == set(TRANSFORMER_KINDS)
        for kind, weights in numbers.items():
            assert weights.dtype == np.float32 and np.array_equal(weights, hand_made_trace.maps(kind).weights)


@pytest.mark.parametrize("data", [None, [], {}, {"kind": "cross"}, {"kind": 5, "heads": 3}])
def test_invalid_views_are_refused(data):
    with pytest.raises(ValueError, match="not a view"):
        View.from_plain(data)


def test_a_view_is_read_from_json():
    view = View("decoder_self", 1, 2, ((0, 1), (2, 3)), "max", True, "hide", True)
    assert View.from_plain(json.loads(json.dumps(asdict(view)))) == view
