"""Strips of tabs: the keyboard, lazy mounting, and panels that cannot answer for the current model."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz.panels import registry
from attention_atlas.viz.wire.summary import INVITATION
from tests.page.browser import no_faults, open_tab

pytestmark = pytest.mark.browser

# Three tabs on an empty page; `filled` records when each is filled.
STRIP = """() => {
  window.filled = [];
  const parts = ["one", "two", "three"].map((name) => ({ name, title: name }));
  const fill = ({ name }, panel) => (filled.push(name), panel.append(`about ${name}`));
  window.strip = atlas.createTabs("place", parts, fill);
  document.body.append(strip.element);
}"""


@pytest.fixture()
def strip(open_modules) -> Page:
    page = open_modules("lab/tabs.js")
    page.evaluate(STRIP)
    return page


def tab(page: Page, name: str):
    return page.get_by_role("tab", name=name, exact=True)


def test_keys_move_the_focus_along_a_strip_and_enter_opens_a_tab(strip) -> None:
    strip.evaluate("window.strip.open('one')")
    tab(strip, "one").focus()
    moves = {"ArrowRight": ("two", "three", "one"), "ArrowLeft": ("three",), "Home": ("one",), "End": ("three",)}
    for key, names in moves.items():
        for name in names:
            strip.keyboard.press(key)
            expect(tab(strip, name)).to_be_focused()
    assert strip.evaluate("filled") == ["one"], "moving the focus must not open a panel, which may take seconds"
    strip.keyboard.press("Enter")
    expect(strip.get_by_role("tabpanel")).to_have_text("about three")
    strip.keyboard.press("Control+Home")  # a key of the browser
    expect(tab(strip, "three")).to_be_focused()


def test_a_strip_is_a_single_tab_stop_and_fills_each_panel_once(strip) -> None:
    strip.evaluate("window.strip.open('two')")
    assert strip.get_by_role("tab").evaluate_all("(all) => all.map((tab) => tab.tabIndex)") == [-1, 0, -1]
    expect(strip.get_by_role("tabpanel", name="two")).to_have_text("about two")
    for name in ("one", "two", "one"):
        tab(strip, name).click()
        expect(tab(strip, name)).to_have_attribute("aria-selected", "true")
        expect(strip.get_by_role("tabpanel")).to_have_count(1)
    assert strip.evaluate("filled") == ["two", "one"], "each once"


def test_the_first_available_tab_is_open_by_default(strip) -> None:
    strip.evaluate("strip.open(strip.disable((name) => (name === 'one' ? 'Not here.' : '')))")
    expect(strip.get_by_role("tabpanel")).to_have_text("about two")
    expect(tab(strip, "one")).to_have_attribute("aria-disabled", "true")
    expect(tab(strip, "one")).to_have_attribute("title", "Not here.")
    strip.evaluate("strip.disable((name) => (name === 'two' ? 'Not here.' : ''))")  # another model
    expect(strip.get_by_role("tabpanel")).to_have_text("about one")
    assert tab(strip, "one").get_attribute("aria-disabled") is None
    tab(strip, "two").press("Enter")
    strip.evaluate("strip.disable((name) => (name === 'two' ? 'Not there.' : ''))")
    expect(strip.get_by_role("tabpanel")).to_have_text("about two")
    expect(tab(strip, "two")).to_have_attribute("title", "Not there.")


def test_a_panel_is_mounted_when_it_is_first_opened(app_url, open_app) -> None:
    page, requests = open_app(app_url), []
    page.on("request", lambda request: "ask/page_panel" in request.url and requests.append(request.post_data_json))
    open_tab(page, "Inside")
    expect(page.locator("#panel-map .atlas-panel")).to_have_attribute("aria-busy", "false")
    assert page.locator("#tab-inside .atlas-panel").count() == 1
    open_tab(page, "Layer", "#inside-tabs")
    expect(page.locator("#panel-heads .atlas-panel")).to_have_attribute("aria-busy", "false")
    assert [request["fields"]["panel"] for request in requests] == ["map", "heads"]
    expect(page.locator("#inside-layer-tabs > .strip [role=tab]")).to_have_count(4)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_unavailable_panels_are_marked_and_say_why(tiny_url, tiny_translator, open_app, width, dark) -> None:
    trace = tiny_translator.translate(tiny_translator.examples["de-en"][0].text)
    lacking = {entry["name"]: str(entry["why"]) for entry in registry.lacking(trace, tiny_translator)}
    page = open_app(tiny_url, width=width, dark=dark)
    open_tab(page, "Positions")
    marked = page.locator("#positions-tabs > .strip [role=tab][aria-disabled=true]")
    names = [panel.name for panel in registry.PANELS["positions"] if panel.name in lacking]
    expect(marked).to_have_count(len(names) or 1)
    assert marked.evaluate_all("(all) => all.map((tab) => tab.dataset.tabId)") == names
    expect(marked.first).to_have_attribute("title", lacking[names[0]])
    marked.first.press("Enter")
    panel = page.locator(f"#panel-{names[0]} .atlas-panel")
    expect(panel).to_have_text(lacking[names[0]])
    expect(page.locator("#tab-positions .controls:visible")).to_have_count(0)
    assert str(INVITATION) not in panel.inner_text()
    no_faults(page, "#tab-positions", name=f"panel-unavailable-{width}")
