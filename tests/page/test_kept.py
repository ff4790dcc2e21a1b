"""The state that a page restores after a reload, after going back in the history, and after a restart of its server."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from tests.conftest import SENTENCES, serving
from tests.page.browser import FIELD, open_more, open_tab, settle, translate
from tests.page.lab.test_lab import open_panel

pytestmark = pytest.mark.browser

TYPED = "Ich bin noch nicht"


def prepare(page: Page) -> str:
    """Translate a sentence, type another one, and open the table of positions. Return the translation."""
    page.wait_for_selector("#translation-text", state="attached")
    translate(page, SENTENCES[4])
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "false")
    written = page.inner_text("#translation-text")
    page.locator(FIELD).fill(TYPED)
    open_more(page, "Table")
    return written


@pytest.mark.long
def test_going_back_restores_the_translation_the_typed_text_and_the_tab(tiny_url, open_page) -> None:
    page = open_page(tiny_url)
    translation = prepare(page)
    page.goto("about:blank")
    page.go_back()
    expect(page.locator("#translation-text")).to_have_text(translation)
    expect(page.locator(".atlas-translation .source")).to_have_text(SENTENCES[4])
    expect(page.locator(FIELD)).to_have_value(TYPED)
    expect(page.locator("#panel-position-table")).to_be_visible()


def test_a_reload_restores_the_tab_even_if_the_address_changes_on_unload(tiny_url, open_app) -> None:
    page = open_app(tiny_url)
    open_more(page, "Table")
    page.wait_for_function("location.hash.includes('tab=more')")
    page.evaluate("history.replaceState(null, '', location.hash.replace('tab=more', 'tab=explorer'))")
    page.evaluate("""addEventListener("beforeunload", () =>
      history.replaceState(null, "", location.hash.replace("tab=explorer", "tab=more")))""")
    page.reload()
    expect(page.locator("#panel-position-table")).to_be_visible()


@pytest.mark.long
def test_a_page_continues_after_its_server_was_restarted(tiny_translator, open_page) -> None:
    """The page itself holds the head, the question and a forced branch. A text submitted while the server is down is
    translated once it is up again."""
    ports: list[int] = []
    with serving(ports) as start:
        page = open_page(start(shell.build(Translators([tiny_translator]))))
        page.outlives = True
        translation = prepare(page)
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
        expect(page.locator(FIELD)).to_have_value(TYPED)
        assert translation and page.evaluate("window.before")
    page.locator(FIELD).press("Enter")
    page.wait_for_timeout(500)
    with serving(ports) as start:
        start(shell.build(Translators([tiny_translator])))
        expect(page.locator(".atlas-translation .source")).to_have_text(TYPED)
        probabilities = 100 * np.exp(tiny_translator.translate(TYPED).log_probability)
        open_tab(page, "Why")
        settle(page)
        chips = page.locator(".atlas-question .chips").first.locator("button.chip").all()
        percentages = [re.search(r"probability ([\d.]+)", chip.get_attribute("aria-label"))[1] for chip in chips]
        assert np.allclose(np.array(percentages, float), probabilities, atol=0.5, rtol=0)
        assert page.evaluate("window.before")
