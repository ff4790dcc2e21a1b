"""The page after a reload, on the way back, and when its server was started again."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from tests.conftest import SENTENCES, serving
from tests.page.browser import open_tab, settle
from tests.page.lab.test_lab import open_panel

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


def test_a_page_goes_on_when_its_server_was_started_again(tiny_translator, open_page) -> None:
    """The server knows nothing of the page: the head, the question and a forced branch are the page's. A text that was
    asked for meanwhile is translated once the server is there again."""
    ports: list[int] = []
    with serving(ports) as start:
        page = open_page(start(shell.build(Translators([tiny_translator]))))
        page.outlives = True
        written = left(page)
        open_tab(page, "Step by step")
        page.locator(".atlas-stepper .candidate").nth(1).click()
        expect(page.locator(".atlas-stepper .tree .branch")).to_have_count(2)
        page.locator(".atlas-stepper .tree .branch").first.click()
        settle(page)
        open_tab(page, "Attention")
        page.locator(".thumbnail[data-layer='1'][data-head='2']").click()
        open_tab(page, "Why")
        page.locator(".atlas-question .chips button.chip").nth(1).click()
        settle(page)
        page.evaluate("window.before = true")
    with serving(ports) as start:
        start(shell.build(Translators([tiny_translator])))
        open_panel(page, "Inside", "Logits")
        settle(page)
        expect(page.locator("#tab-inside .failed:visible")).to_have_count(0)
        open_tab(page, "Step by step")
        page.locator(".atlas-stepper .candidate").nth(2).click()
        expect(page.locator(".atlas-stepper .tree .branch")).to_have_count(3)
        open_tab(page, "Why")
        expect(page.locator(".atlas-question .chips button.chip").nth(1)).to_have_attribute("aria-pressed", "true")
        open_tab(page, "Attention")
        expect(page.locator(".heading-line")).to_contain_text("Layer 2 · Head 3")
        expect(page.locator("#source-text textarea")).to_have_value(TYPED)
        assert written and page.evaluate("window.before")
    page.locator("#source-text textarea").press("Enter")
    page.wait_for_timeout(500)
    with serving(ports) as start:
        start(shell.build(Translators([tiny_translator])))
        expect(page.locator(".atlas-translation .source")).to_have_text(TYPED)
        probabilities = 100 * np.exp(tiny_translator.translate(TYPED).log_probability)
        open_tab(page, "Why")
        settle(page)
        about = page.locator(".atlas-question .chips").first.locator("button.chip").all()
        shown = [re.search(r"probability ([\d.]+)", chip.get_attribute("aria-label"))[1] for chip in about]
        assert np.allclose(np.array(shown, float), probabilities, atol=0.5, rtol=0)
        assert page.evaluate("window.before")
