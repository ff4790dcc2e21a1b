"""Links made by earlier versions (tests/samples/links.json) still open their view."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

import numpy as np
import pytest

from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.reduce import View, score_map
from tests import ROOT
from tests.page.explorer.page import Z_ERROR, drawn

pytestmark = pytest.mark.browser

LINKS = json.loads((ROOT / "tests" / "samples" / "links.json").read_text(encoding="utf-8"))
OPTIONS = """() => Object.fromEntries([...document.querySelectorAll('.atlas-explorer .field')].map(
  (field) => [field.querySelector('span').textContent, field.querySelector('select').value]))"""

FOLLOW = """(fragment) => new Promise((followed) => {
  window.addEventListener('hashchange', () => setTimeout(followed), { once: true });
  location.hash = fragment; })"""


def test_each_link_is_parsed_to_its_recorded_state(open_modules):
    page = open_modules("explorer/state.js")
    initial = page.evaluate("atlas.initialState()")
    for link in LINKS:
        parsed = page.evaluate("(f) => atlas.parseFragment('#' + f)", link["fragment"])
        recorded = link["opens"]["state"]  # without kinds of maps that were added later
        fields = dict(parse_qsl(link["fragment"]))
        rows = {kind: value for kind, value in recorded["predicted"].items() if f"{kind}_rows" in fields}
        state = {**initial, "glosses": "none", **recorded, "predicted": {**initial["predicted"], **rows}}
        assert parsed == {"interventions": "", **link["opens"], "state": state}


def test_each_link_restores_the_view(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    for link in LINKS:
        state = link["opens"]["state"]
        rows_field = dict(parse_qsl(link["fragment"])).get(f"{state['kind']}_rows")
        page.evaluate(FOLLOW, link["fragment"])
        predicted = {"read": False, "predicted": True}.get(rows_field, state["kind"] != "decoder_self")
        view = View.from_plain({**state, "predicted": predicted})
        expected, options = score_map(hand_made_trace, view), page.evaluate(OPTIONS)
        fields = {
            "Heads": "combine",
            "Special tokens": "special",
            "Scale": "transform",
            "Colours": "colours",
            "Range": "range",
        }
        assert {label: options[label] for label in fields} == {label: state[name] for label, name in fields.items()}
        pressed = page.locator(".atlas-explorer .segmented button[aria-pressed=true]").evaluate_all(
            "buttons => buttons.map((button) => button.dataset.value)"
        )
        assert {state["kind"], state["view"]} <= set(pressed)
        if state["view"] == "map":
            plot = drawn(page)
            rows = [labels.shorten(label) for label in expected.rows]
            if rows_field or state["words"] or state["kind"] == "encoder_self":
                assert plot["rows"] == rows
            else:  # a label names both of a row's tokens: the one it reads and the one it writes
                at = 0 if state["kind"] == "decoder_self" else 1
                assert [row.split(" → ")[at] for row in plot["rows"]] == [labels.shorten(row, 12) for row in rows]
            if (state["transform"], state["range"]) == ("linear", "fixed"):
                assert np.allclose(plot["z"], expected.values, atol=Z_ERROR, equal_nan=True)
            pinned = sum(state[axis] is not None for axis in ("query", "key"))
            assert page.locator(".mark.pinned").count() == (3 if pinned == 2 else pinned)
        elif state["view"] == "lines":
            assert page.locator(".head-key span").all_inner_texts() == ["L1 H1", "L2 H4"]
            assert page.locator("#atlas-coverage").input_value() == str(state["coverage"])
        elif state["view"] == "text":
            focused = page.locator(".sentence-row").last.locator(".piece.focused bdi")
            assert focused.inner_text() == labels.display(hand_made_trace.source_tokens[state["key"]]).lstrip("▁")
        else:
            assert page.locator(".compare-row").count() == 1
