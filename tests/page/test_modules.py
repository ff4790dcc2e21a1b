"""The page's JavaScript modules: each is fetched once, from one versioned address."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz import assets
from tests.page.browser import open_tab

pytestmark = pytest.mark.browser

MODULES = {path.relative_to(assets.WEB).as_posix() for path in assets.WEB.rglob("*.js")}
INLINE = {"page/early.js", "explorer/alone.js"}  # inline scripts, never fetched
NAMES = "() => performance.getEntriesByType('resource').map((entry) => entry.name)"
VERSIONED = re.compile(r"/atlas/[0-9a-f]{16}/(.*\.js)$")


def count_fetches(page: Page) -> Counter:
    """Count how often each module was fetched, by name. A browser runs a module again for each of its addresses."""
    matches = filter(None, map(VERSIONED.search, page.evaluate(NAMES)))
    return Counter(match[1] for match in matches if match[1] in MODULES)


@pytest.mark.long
def test_every_module_runs_once_however_many_components_need_it(app_url, open_page) -> None:
    page = open_page("about:blank")
    page.goto(f"{app_url}#present=1")
    page.wait_for_selector(".atlas-lectern:popover-open")
    page.keyboard.press("Escape")
    page.locator(".atlas-title .tour").click()
    expect(page.locator(".atlas-tour .count")).to_be_visible()
    expect(page.locator(".atlas-pointed")).to_be_visible()  # the stop has opened its tab
    page.get_by_role("button", name="Leave the tour").click()
    for entry, closes in (
        ("Worksheets", "Close the worksheet"),
        ("My views", "Close my views"),
        ("A link for a workshop", "Close"),
    ):
        page.locator(".atlas-title .teach summary").click()
        page.locator(".atlas-title .teach").get_by_role("button", name=entry).click()
        page.get_by_role("button", name=closes, exact=True).last.click()
    page.locator(".atlas-title .glossary").click()
    page.get_by_role("button", name="Close the glossary").click()
    for title in ("Step by step", "Why", "Inside", "Train", "More", "Attention"):
        open_tab(page, title)
    for name in (".atlas-stepper", ".atlas-question", ".atlas-train", ".atlas-panel"):
        expect(page.locator(name).first).to_have_attribute("data-mounted", "")
    expect(page.locator(".inside canvas")).to_be_attached()
    fetches = count_fetches(page)
    assert set(fetches.values()) == {1} and fetches.keys() == MODULES - INLINE
    assert all(VERSIONED.search(name) for name in page.evaluate(NAMES) if "/atlas/" in name and name.endswith(".js"))


def test_the_imports_of_each_module_are_parsed_from_its_text() -> None:
    """The preload links and the standalone files rely on this list of imports."""
    for path in assets.WEB.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        written = re.findall(r"^\s*(?:import|export)\b[^=;(]*?(?:from\s*)?[\"'`]([^\"'`]+)[\"'`]", text, re.MULTILINE)
        assert written == assets.IMPORT.findall(text), path
        named = assets.with_names(path)
        assert set(assets.IMPORT.findall(named)) == set(), path
    whole = assets.modules(assets.module("explorer"))
    assert len(set(whole)) == len(whole) > 20 and whole[-1] == assets.module("explorer")
    assert not any(path.parent.name in ("tour", "present", "stepper") for path in whole)
