"""Explorers in notebook cells; tests/page/explorer tests them in a browser."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest

from attention_atlas import viz
from attention_atlas.viz.export import notebook
from attention_atlas.viz.export.standalone import from_html


def has_scripts(output: str) -> bool:
    """Return whether a cell's output contains the explorer's scripts."""
    return 'id="bundle"' in html.unescape(output)


def request(run: str, cell: str | None = None) -> dict:
    return {"header": {"msg_id": run}, "metadata": {} if cell is None else {"cellId": cell}}


def test_the_first_explorer_and_rerun_cells_contain_the_scripts():
    carriers: dict[str, str] = {}
    needed = [
        notebook.needs_scripts(carriers, request(run, cell))
        for run, cell in (("1", "a"), ("1", "a"), ("2", "b"), ("3", "a"), ("3", "a"), ("4", "b"), ("5", "c"))
    ]
    assert needed == [True, False, False, True, False, True, False]
    unnamed: dict[str, str] = {}
    assert [notebook.needs_scripts(unnamed, request(run)) for run in "123"] == [True, False, False]


def test_a_cell_contains_the_exact_weights_and_escapes_text(hand_made_trace):
    output = viz.explore(hand_made_trace)._repr_html_()
    assert has_scripts(output), "outside a notebook each output is complete"
    assert output.count("<") == 2 + 2 * 2 and output.count("<iframe") == 1  # two of </p>, <b> and <iframe> each
    page = html.unescape(re.search(r'srcdoc="([^"]*)"', output)[1])
    for kind, weights in from_html(page).items():
        assert np.array_equal(weights, hand_made_trace.maps(kind).weights)


def test_invalid_views_and_comparisons_are_refused(hand_made_trace):
    with pytest.raises(ValueError, match="heads 0 to 3, found layer 0, head 9"):
        viz.explore(hand_made_trace, viz.View("cross", 0, 9))
    with pytest.raises(ValueError, match="one twice"):
        viz.compare(hand_made_trace, hand_made_trace)
