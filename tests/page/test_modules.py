"""The page's modules: each is fetched and runs once, from one address."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz import assets
from tests.page.browser import open_tab

pytestmark = pytest.mark.browser

MODULES = {path.relative_to(assets.WEB).as_posix() for path in assets.WEB.rglob("*.js")}
INLINE = {"page/early.js", "explorer/alone.js"}  # stand in a page themselves
NAMES = "() => performance.getEntriesByType('resource').map((one) => one.name)"
VERSIONED = re.compile(r"/atlas/[0-9a-f]{16}/(.*\.js)$")


def fetched(page: Page) -> Counter:
    """How often a module came to the page, by its name: two addresses of a module are two modules."""
    names = page.evaluate(NAMES)
    return Counter(found[1] for name in names if (found := VERSIONED.search(name)) and found[1] in MODULES)


def test_every_module_runs_once_however_many_components_need_it(app_url, open_page) -> None:
    page = open_page("about:blank")
    page.goto(f"{app_url}#present=1")
    page.wait_for_selector(".atlas-lectern:popover-open")
    page.keyboard.press("Escape")
    page.locator(".atlas-title .tour").click()
    expect(page.locator(".atlas-tour .count")).to_be_visible()
    expect(page.locator(".atlas-pointed")).to_be_visible()  # the stop's view is there, and opens no tab any more
    page.get_by_role("button", name="Leave the tour").click()
    for way, closes in (("Worksheets", "Close the worksheet"), ("My views", "Close my views")):
        page.locator(".atlas-title .teach summary").click()
        page.locator(".atlas-title .teach").get_by_role("button", name=way).click()
        page.get_by_role("button", name=closes).click()
    for title in ("Step by step", "Why", "Train", "Verify", "Attention"):
        open_tab(page, title)
    page.wait_for_function(
        "(names) => names.every((name) => document.querySelector(name)?.dataset.mounted === '')",
        arg=[".atlas-stepper", ".atlas-question", ".atlas-train", ".atlas-panel"],
    )
    found, expected = fetched(page), MODULES - INLINE
    assert set(found.values()) == {1} and found.keys() == expected
    assert all(VERSIONED.search(name) for name in page.evaluate(NAMES) if "/atlas/" in name and name.endswith(".js"))


def test_what_a_module_imports_is_read_off_its_text() -> None:
    """Of all imports: what is fetched early, and put into files, is what the browser will ask for."""
    for path in assets.WEB.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        written = re.findall(r"^\s*(?:import|export)\b[^=;(]*?(?:from\s*)?[\"'`]([^\"'`]+)[\"'`]", text, re.MULTILINE)
        assert written == assets.IMPORT.findall(text), path
        named = assets.with_names(path)
        assert set(assets.IMPORT.findall(named)) == set(), path
    whole = assets.modules(assets.module("explorer"))
    assert len(set(whole)) == len(whole) > 20 and whole[-1] == assets.module("explorer")
    assert not any(path.parent.name in ("tour", "present", "stepper") for path in whole)
