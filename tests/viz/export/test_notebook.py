"""Explorers in notebook cells; tests/page/explorer tests them in a browser."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from attention_atlas import viz
from attention_atlas.viz.export.standalone import from_html


def test_a_cell_contains_the_exact_weights_and_escapes_text(hand_made_trace):
    output = viz.explore(hand_made_trace)._repr_html_()
    assert output.count("<") == 2 + 2 * 2 and output.count("<iframe") == 1  # two of </p>, <b> and <iframe> each
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', output)[1])
    for kind, weights in from_html(page).items():
        assert np.array_equal(weights, hand_made_trace.maps(kind).weights)


def test_invalid_views_and_comparisons_are_refused(hand_made_trace):
    with pytest.raises(ValueError, match="heads 0 to 3, found layer 0, head 9"):
        viz.explore(hand_made_trace, viz.View("cross", 0, 9))
    with pytest.raises(ValueError, match="one twice"):
        viz.compare(hand_made_trace, hand_made_trace)
