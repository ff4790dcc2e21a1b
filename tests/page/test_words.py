"""The page in other languages than English, in a real browser whose locale asks for them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import no_violations
from tests.page.test_lab import DRAWN
from viz.export.standalone import to_html
from viz.ui import tabs
from viz.words import LANGUAGES, table

pytestmark = pytest.mark.browser

FIELD = re.compile(r"\{\w+\}")
# Every text and spoken label in the page, shown or not, but for tokens, sentences and what is English by nature.
TEXTS = """() => {
  const found = new Set();
  const skip = ".token, .chip, bdi, [lang=en], #translation-text, .atlas-examples button, script, style, svg text.node";
  const walk = document.createTreeWalker(document.querySelector('.gradio-container'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentElement.closest(skip)) found.add(walk.currentNode.data.trim());
  for (const node of document.querySelectorAll('.gradio-container *'))
    for (const name of ['aria-label', 'title', 'placeholder', 'aria-roledescription', 'alt'])
      if (node.hasAttribute(name)) found.add(node.getAttribute(name).trim());
  return [...found]; }"""


def english_in(texts: list[str], language: str) -> set[str]:
    """Which texts are the table's English, in whole or in a piece long enough to be told."""
    at, escaped = LANGUAGES.index(language), set()
    for rows in table().values():
        for english, row in rows.items():
            if not re.search("[A-Za-z]{4}", FIELD.sub("", english)) or row[at] == english:
                continue
            whole = re.compile("(.+)".join(map(re.escape, FIELD.split(english))), re.DOTALL)
            pieces = [p for p in FIELD.split(english) if len(p) > 11 and " " in p.strip() and p not in row[at]]
            escaped |= {text for text in texts if whole.fullmatch(text) or any(piece in text for piece in pieces)}
    return escaped


def tab(page: Page, group: str, name: str) -> None:
    page.locator(f"{group} > .tab-wrapper [role=tab][data-tab-id={name}]").first.click()


def panels(page: Page, group: str) -> list[str]:
    return page.locator(f"{group} > .tab-wrapper").first.locator("[role=tab]").evaluate_all(
        "tabs => [...new Set(tabs.map(t => t.dataset.tabId))]")


def walk(page: Page) -> list[str]:
    """Open all there is; the texts found on the way."""
    texts = set()

    def look() -> None:
        texts.update(page.evaluate(TEXTS))

    explorer = page.locator(".atlas-explorer")
    expect(explorer.locator(".detail")).to_be_visible()
    for key in "ltcmhhh":
        explorer.locator(".atlas-map button, .thumbnail").first.press(key)
        look()
    page.keyboard.press("?")
    look()
    page.keyboard.press("Escape")
    no_violations(page, ".atlas-explorer")
    tab(page, "#tabs", "stepper")
    for button in page.locator("#stepper .choose-panel button").all():
        button.click()
        look()
    page.keyboard.press("ArrowRight")
    look()
    for group, name in (("#positions-tabs", "positions"), ("#inside-tabs", "inside"), ("#checks-tabs", "verify")):
        tab(page, "#tabs", name)
        for panel in panels(page, group):
            tab(page, group, panel)
            page.wait_for_function(DRAWN)
            look()
    box = page.locator("#source-text textarea, #source-text input").first
    box.fill(" ")
    box.press("Enter")
    expect(page.locator(".atlas-translation .notice.error")).to_be_visible()
    look()
    return sorted(texts)


def test_a_german_and_a_korean_browser_get_their_languages(app_url, open_page) -> None:
    rows = {english: row for section in table().values() for english, row in section.items()}
    page = open_page(app_url, locale="de-DE")
    page.wait_for_selector("#translation-text")
    assert page.evaluate("document.documentElement.lang").startswith("de")
    texts = walk(page)
    assert len(texts) > 300
    assert english_in(texts, "de") == set()
    assert {rows["Translate"][0], rows["Embedding"][0], rows["Beam search"][0]} <= set(texts)

    page = open_page(app_url, locale="ko-KR")
    page.wait_for_selector("#translation-text")
    assert page.evaluate("document.documentElement.lang").startswith("ko")
    titles = page.locator("#tabs > .tab-wrapper").first.locator("[role=tab]").all_inner_texts()
    assert set(titles) == {rows[title.key][3] for title, _, _ in tabs.TABS}
    texts = page.evaluate(TEXTS)
    assert english_in(texts, "ko") == set()
    assert rows["Tokens and probabilities"][3] in texts


def test_an_exported_page_speaks_them_too(chromium, tiny_translator, tmp_path) -> None:
    path = tmp_path / "export.html"
    path.write_text(to_html(tiny_translator.translate("Der Hund schläft.")), encoding="utf-8")
    context = chromium.new_context(locale="de-DE")
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    expect(page.locator(".detail .main-svg, .detail canvas").first).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "de"
    texts = page.evaluate(TEXTS.replace(".gradio-container", "body"))
    assert len(texts) > 40 and english_in(texts, "de") == set()
    context.close()
    assert not problems
