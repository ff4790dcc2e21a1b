"""The selected head: while another translation arrives, after quick changes, and when set by another part."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from bench.made.synthetic import random_trace
from tests.page.browser import use_modules
from tests.page.explorer.page import select, show, wait_for_selection

pytestmark = pytest.mark.browser


def test_a_selected_head_stays_when_another_sentence_arrives(open_traces, hand_made_trace) -> None:
    other = random_trace(9, 7, layers=3, heads=4)
    page = open_traces(hand_made_trace, other)
    use_modules(page, "store/store.js")
    page.evaluate("""() => {
      window.__seen = [];
      atlas.store.follow(["drawCount"], () => window.__seen.push(document.querySelector('.heading-line').textContent));
    }""")
    page.locator(".thumbnail[data-layer='1'][data-head='2']").click()
    show(page, other)
    assert page.evaluate("window.__seen") == ["Layer 2 · Head 3"]
    wait_for_selection(page, kind="cross", layer=1, head=2)


def test_the_view_of_a_refused_link_does_not_open_with_the_next_translation(open_traces, hand_made_trace) -> None:
    page = open_traces(hand_made_trace)
    page.route("**/ask/page_translate", lambda route: route.fulfill(json={"error": "refused"}))
    with page.expect_response("**/ask/page_translate"):
        page.evaluate("location.hash = 'text=unknown&kind=cross&layer=2&head=3'")
    use_modules(page, "store/store.js")
    page.wait_for_function("atlas.store.state.translation?.error === 'refused'")
    show(page, random_trace(9, 7, layers=3, heads=4))
    expect(page.locator(".heading-line")).to_have_text("Layer 1 · Head 1")


def test_the_last_selected_head_is_shown_whichever_part_of_the_page_selected_it(open_traces, hand_made_trace) -> None:
    page = open_traces(hand_made_trace)
    for head in (1, 2, 3):
        page.locator(f".thumbnail[data-layer='1'][data-head='{head}']").click()
    wait_for_selection(page, kind="cross", layer=1, head=3)
    expect(page.locator(".heading-line")).to_have_text("Layer 2 · Head 4")
    select(page, kind="encoder_self", layer=0, head=1, query=None, key=None)
    expect(page.locator(".heading-line")).to_have_text("Layer 1 · Head 2")
    wait_for_selection(page, kind="encoder_self", layer=0, head=1)
