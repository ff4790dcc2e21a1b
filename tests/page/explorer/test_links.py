"""Links that people have kept open the view that they were made of. The samples were written by an earlier version."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

import numpy as np
import pytest

from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.reduce import View, score_map
from tests import ROOT
from tests.page.browser import load_modules
from tests.page.explorer.page import drawn

pytestmark = pytest.mark.browser

LINKS = json.loads((ROOT / "tests" / "samples" / "links.json").read_text(encoding="utf-8"))
CHOSEN = """() => Object.fromEntries([...document.querySelectorAll('.atlas-explorer .field')].map(
  (field) => [field.querySelector('span').textContent, field.querySelector('select').value]))"""

FOLLOW = """(fragment) => new Promise((followed) => {
  window.addEventListener('hashchange', () => setTimeout(followed), { once: true });
  location.hash = fragment; })"""


def test_each_link_says_what_it_said(open_page):
    page = open_page("about:blank")
    load_modules(page, "explorer/state.js")
    initial = page.evaluate("atlas.initialState()")
    for link in LINKS:
        found = page.evaluate("(f) => atlas.parseFragment('#' + f)", link["fragment"])
        said = link["opens"]["state"]  # of a kind of map that came later it says nothing
        named = dict(parse_qsl(link["fragment"]))
        rows = {kind: was for kind, was in said["predicted"].items() if f"{kind}_rows" in named}
        state = {**initial, **said, "predicted": {**initial["predicted"], **rows}}
        assert found == {"interventions": "", **link["opens"], "state": state}


def test_each_link_restores_the_view(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    for link in LINKS:
        state = link["opens"]["state"]
        named = dict(parse_qsl(link["fragment"])).get(f"{state['kind']}_rows")
        page.evaluate(FOLLOW, link["fragment"])
        view = View(
            state["kind"],
            state["layer"],
            state["head"],
            tuple(map(tuple, state["heads"])),
            state["combine"],
            state["words"],
            state["special"],
            {"read": False, "predicted": True}.get(named, state["kind"] != "decoder_self"),
        )
        expected, chosen = score_map(hand_made_trace, view), page.evaluate(CHOSEN)
        assert chosen["Heads"] == state["combine"] and chosen["Special"] == state["special"]
        assert chosen["Scale"] == state["transform"] and chosen["Colours"] == state["colours"]
        assert chosen["Range"] == state["range"]
        pressed = page.locator(".atlas-explorer .segmented button[aria-pressed=true]").evaluate_all(
            "buttons => buttons.map((button) => button.dataset.value)"
        )
        assert {state["kind"], state["view"]} <= set(pressed)
        if state["view"] == "map":
            found = drawn(page)
            rows = [labels.shorten(label) for label in expected.rows]
            if named or state["words"] or state["kind"] == "encoder_self":
                assert found["rows"] == rows
            else:  # both of a row's tokens, of which these are one
                at = 0 if state["kind"] == "decoder_self" else 1
                assert [row.split(" → ")[at] for row in found["rows"]] == [labels.shorten(row, 12) for row in rows]
            if (state["transform"], state["range"]) == ("linear", "fixed"):
                assert np.allclose(found["z"], expected.values, atol=5e-4, equal_nan=True)
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
