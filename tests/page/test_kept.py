"""What was typed and shown is there again: after a reload, on the way back, when the server was started again."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

import app
from model.trace.translation import TranslationTrace
from model.translators import Translators
from tests.conftest import SENTENCES, serving
from tests.page.browser import open_tab, settle
from tests.page.lab.test_lab import open_panel
from viz.ui.asked import Asked
from viz.ui.session import Selection

pytestmark = pytest.mark.browser

TYPED = "Ich bin noch nicht"


def left(page: Page) -> str:
    """Translate, type on, go to another tab: what is translated."""
    page.wait_for_selector("#translation-text")
    box = page.locator("#source-text textarea")
    box.fill(SENTENCES[4])
    box.press("Enter")
    expect(page.locator(".atlas-translation .source")).to_have_text(SENTENCES[4])
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "false")
    written = page.inner_text("#translation-text")
    box.fill(TYPED)
    open_tab(page, "Positions")
    return written


def is_there_again(page: Page, written: str) -> None:
    expect(page.locator("#translation-text")).to_have_text(written)
    stands_there(page, SENTENCES[4])


def stands_there(page: Page, translated: str) -> None:
    expect(page.locator(".atlas-translation .source")).to_have_text(translated)
    expect(page.locator("#source-text textarea")).to_have_value(TYPED)
    expect(page.locator("#tab-positions-button")).to_have_attribute("aria-selected", "true")


@pytest.mark.long
def test_on_the_way_back(tiny_url, open_page) -> None:
    page = open_page(tiny_url)
    written = left(page)
    page.goto("about:blank")
    page.go_back()
    is_there_again(page, written)


def test_a_slow_page_is_awaited(tiny_url, open_page) -> None:
    """Gradio ends its heartbeat as soon as a page is to be left, which is no server that has ended."""
    page = open_page(tiny_url)
    page.wait_for_selector("#translation-text")

    def answer(route: Route) -> None:
        page.wait_for_timeout(1500)  # the page may ask for its server after 250 to 500 ms
        route.fulfill(body="<!doctype html><title>Slow</title>", content_type="text/html")

    page.route("**/slow", answer)
    page.goto(f"{tiny_url}slow")
    expect(page).to_have_title("Slow")


def test_an_answer_looked_for_at_another_server(tiny_url, open_page) -> None:
    """Of several servers behind one address: the page loads itself anew, and asks again."""
    page = open_page(tiny_url)
    page.outlives = True
    page.wait_for_selector("#translation-text")
    page.locator("#source-text textarea").fill(TYPED)
    page.route(
        "**/queue/data?*", lambda route: route.fulfill(status=404, json={"detail": "Session not found."}), times=1
    )
    page.locator("#source-text textarea").press("Enter")
    expect(page.locator(".atlas-translation .source")).to_have_text(TYPED)
    expect(page.locator("#source-text textarea")).to_have_value(TYPED)


def test_a_tab_stands_there_again_though_the_address_changed_while_the_page_was_left(tiny_url, open_page) -> None:
    page = open_page(tiny_url)
    page.wait_for_selector("#translation-text")
    open_tab(page, "Positions")
    page.wait_for_function("location.hash.includes('tab=positions')")
    page.evaluate("history.replaceState(null, '', location.hash.replace('tab=positions', 'tab=explorer'))")
    page.evaluate("""addEventListener("beforeunload", () =>
      history.replaceState(null, "", location.hash.replace("tab=explorer", "tab=positions")))""")
    page.reload()
    expect(page.locator("#tab-positions-button")).to_have_attribute("aria-selected", "true")


def test_another_server_answers_once_it_knows_the_page(tiny_translator, serve, open_page) -> None:
    """Before that it knows no visitor of the page, and would speak of the first example in every panel."""
    demo = app.build_demo(Translators([tiny_translator]))
    page = open_page(serve(demo))
    written = left(page)
    expect(page.locator("#panel-position-table .figure")).to_be_visible()
    settle(page)
    page.evaluate("document.querySelector('meta[name=atlas-process]').content = 'another'; window.before = true")
    demo.app.state_holder.session_data.clear()
    open_tab(page, "Why")
    expect(page.locator("#tab-why .atlas-root:visible").first).to_have_attribute("aria-busy", "false")
    probabilities = 100 * np.exp(tiny_translator.translate(SENTENCES[4]).log_probability)
    about = page.locator(".atlas-question .chips").first.locator("button.chip").all()
    shown = [re.search(r"probability ([\d.]+)", one.get_attribute("aria-label"))[1] for one in about]
    assert np.allclose(np.array(shown, float), probabilities, atol=0.5, rtol=0)
    expect(page.locator("#translation-text")).to_have_text(written)
    assert page.evaluate("window.before")


def test_a_server_that_knows_nothing_yet_goes_on_with_the_page(tiny_translator, serve, open_page) -> None:
    """It is told what is shown, which stays where it is: the sentence, the head, the question, what was typed. Nothing
    else is asked, and nothing comes twice."""
    demo = app.build_demo(Translators([tiny_translator]))
    page = open_page(serve(demo))
    written, sessions = left(page), demo.app.state_holder.session_data

    def known() -> tuple[object, ...]:
        # Lists at once: the server goes on meanwhile.
        found = {
            type(value): value for session in list(sessions.values()) for value in list(session.state_data.values())
        }
        trace, asked = found.get(TranslationTrace), found.get(Asked)
        return trace and trace.source_text, found.get(Selection), asked and (asked.step, asked.about)

    def becomes(wanted: Callable[[tuple], bool]) -> tuple[object, ...]:
        for _ in range(100):
            if wanted(known()):
                break
            page.wait_for_timeout(100)
        return known()

    open_tab(page, "Attention")
    page.locator(".thumbnail[data-layer='1'][data-head='2']").click()
    open_tab(page, "Why")
    page.locator(".atlas-question .chips button.chip").nth(1).click()
    before = becomes(lambda found: found[1] and found[1].head == 2 and found[2][0] == 1)
    assert before[0] == SENTENCES[4] and before[1].head == 2 and before[2][0] == 1
    settle(page)
    page.evaluate("window.before = true")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.post_data or ""))
    sessions.clear()
    page.evaluate("document.dispatchEvent(new CustomEvent('atlas-again'))")
    assert becomes(lambda found: found == before) == before
    settle(page)
    assert len(requests) == 1 and SENTENCES[4] in requests[0]
    expect(page.locator("[aria-busy=true]:visible")).to_have_count(0)
    expect(page.locator("#translation-text")).to_have_text(written)
    expect(page.locator("#source-text textarea")).to_have_value(TYPED)
    expect(page.locator(".atlas-question .chips button.chip").nth(1)).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("window.before")


def test_a_server_that_goes_on_with_a_page_answers_it(tiny_translator, serve, open_page) -> None:
    """Also what a slider asks that ends further on than for the first example, and what is asked of a branch that
    somebody forced at the server before: the page keeps the stepper's branches."""
    demo = app.build_demo(Translators([tiny_translator]))
    page, text = open_page(serve(demo)), f"{SENTENCES[4]} {SENTENCES[8]}"
    page.wait_for_selector("#translation-text")
    panel = open_panel(page, "Inside", "Logits")
    step = page.locator("[role=tabpanel]:visible input[type=number]:visible")
    first = int(step.get_attribute("max"))
    page.locator("#source-text textarea").fill(text)
    page.locator("#source-text textarea").press("Enter")
    expect(step).not_to_have_attribute("max", str(first))
    assert int(step.get_attribute("max")) > first
    open_tab(page, "Step by step")
    page.locator(".atlas-stepper .candidate").nth(1).click()
    expect(page.locator(".atlas-stepper .tree .branch")).to_have_count(2)
    page.locator(".atlas-stepper .tree .branch").first.click()  # what it wrote by itself: that can be said again
    settle(page)
    at = page.locator(".atlas-stepper").get_attribute("data-step")
    open_tab(page, "Inside")
    settle(page)
    page.evaluate("window.before = true")
    demo.app.state_holder.session_data.clear()
    page.evaluate("document.dispatchEvent(new CustomEvent('atlas-again'))")
    settle(page)
    drawn = int(panel.get_attribute("data-drawn"))
    step.fill(str(first + 1))
    page.keyboard.press("Tab")
    expect(panel).to_have_attribute("data-drawn", str(drawn + 1))
    expect(panel.locator(".failed")).to_have_count(0)
    open_tab(page, "Step by step")
    expect(page.locator(".atlas-stepper .tree .branch")).to_have_count(2)
    settle(page)
    assert page.locator(".atlas-stepper").get_attribute("data-step") == at
    page.locator(".atlas-stepper .candidate").nth(2).click()
    expect(page.locator(".atlas-stepper .tree .branch")).to_have_count(3)
    assert page.evaluate("window.before")


@pytest.mark.long
def test_when_the_server_was_started_again(tiny_translator, open_page) -> None:
    """Somebody asks while it is away: the page waits for it, loads itself anew, and asks again."""
    ports: list[int] = []
    with serving(ports) as start:
        page = open_page(start(app.build_demo(Translators([tiny_translator]))))
        page.outlives = True
        left(page)
        busy = page.locator("#tabs > [role=tabpanel]:visible .atlas-root[aria-busy=true]:visible")
        expect(page.locator("#panel-position-table .figure")).to_be_visible()
        expect(busy).to_have_count(0)
        page.evaluate("window.before = true")
    page.locator("#source-text textarea").press("Enter")
    expect(page.get_by_text("Connection to the server was lost").first).to_be_visible()
    with serving(ports) as start:
        start(app.build_demo(Translators([tiny_translator])))
        page.wait_for_function("() => !window.before", timeout=60_000)
        stands_there(page, TYPED)
        box = page.locator("#source-text textarea")
        box.fill(SENTENCES[2])
        box.press("Enter")
        expect(page.locator(".atlas-translation .source")).to_have_text(SENTENCES[2])
