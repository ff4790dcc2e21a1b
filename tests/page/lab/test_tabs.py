"""Strips of tabs: the keyboard, lazy mounting, and panels that the current model cannot show."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz.panels import registry
from tests.page.browser import no_faults, open_tab, plain_title

pytestmark = pytest.mark.browser

# Three tabs in two groups on an empty page; `filled` records when each is filled.
STRIP = """() => {
  window.filled = [];
  const part = (name) => ({ name, title: name });
  const group = (name, ...names) => ({ ...part(name), panels: names.map(part) });
  const fill = ({ name }, panel) => (filled.push(name), panel.append(`about ${name}`));
  window.strip = atlas.createTabs("place", [group("odd", "one", "three"), group("even", "two")], fill);
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
    moves = {"ArrowRight": ("three", "two", "one"), "ArrowLeft": ("two",), "Home": ("one",), "End": ("two",)}
    for key, names in moves.items():
        for name in names:
            strip.keyboard.press(key)
            expect(tab(strip, name)).to_be_focused()
    assert strip.evaluate("filled") == ["one"], "moving the focus must not open a panel, which may take seconds"
    strip.keyboard.press("Enter")
    expect(strip.get_by_role("tabpanel")).to_have_text("about two")
    strip.keyboard.press("Control+Home")  # a key of the browser
    expect(tab(strip, "two")).to_be_focused()


def test_a_strip_is_a_single_tab_stop_and_fills_each_panel_once(strip) -> None:
    strip.evaluate("window.strip.open('two')")
    assert strip.get_by_role("tab").evaluate_all("(all) => all.map((tab) => tab.tabIndex)") == [-1, -1, 0]
    expect(strip.get_by_role("tabpanel", name="two")).to_have_text("about two")
    for name in ("one", "two", "one"):
        tab(strip, name).click()
        expect(tab(strip, name)).to_have_attribute("aria-selected", "true")
        expect(strip.get_by_role("tabpanel")).to_have_count(1)
    assert strip.evaluate("filled") == ["two", "one"], "each once"


def test_only_available_tabs_are_in_the_strip(strip) -> None:
    strip.evaluate("strip.open(strip.show((name) => name !== 'one'))")
    expect(strip.get_by_role("tabpanel")).to_have_text("about three")
    assert strip.get_by_role("tab").all_inner_texts() == ["three", "two"]
    strip.evaluate("strip.show((name) => name === 'two')")  # another model
    expect(strip.get_by_role("tabpanel")).to_have_text("about two")
    expect(strip.get_by_text("odd")).to_be_hidden()  # the name of a group without tabs
    assert strip.evaluate("strip.firstOf('even')") == "two"
    tab(strip, "two").press("Enter")
    strip.evaluate("strip.show((name) => name !== 'two')")
    expect(strip.get_by_role("tabpanel")).to_have_text("about two")  # it was chosen: it stays open
    assert strip.get_by_role("tab").evaluate_all("(all) => all.map((tab) => tab.tabIndex)") == [0, -1]
    tab(strip, "one").focus()
    strip.keyboard.press("ArrowLeft")
    expect(tab(strip, "three")).to_be_focused()


def test_a_panel_is_mounted_when_it_is_first_opened(app_url, open_app) -> None:
    page, requests = open_app(app_url), []
    page.on("request", lambda request: "ask/page_panel" in request.url and requests.append(request.post_data_json))
    open_tab(page, "Inside")
    expect(page.locator("#panel-map .atlas-panel")).to_have_attribute("aria-busy", "false")
    assert page.locator("#tab-inside .atlas-panel").count() == 1
    open_tab(page, "Heads", "#inside-tabs")
    expect(page.locator("#panel-heads .atlas-panel")).to_have_attribute("aria-busy", "false")
    assert [request["fields"]["panel"] for request in requests] == ["map", "heads"]


@pytest.mark.parametrize("tab", ["Why", "Inside", "Train", "More"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_strip_is_one_line_and_shows_the_open_tab(tiny_url, open_app, tab, width) -> None:
    page = open_app(tiny_url, width=width)
    open_tab(page, tab)
    if tab == "Why":
        page.locator("#why-fold > summary").click()
    box = page.locator(f"#{tab.lower()}-tabs .strip")
    tabs = box.locator("[role=tab]:visible")
    expect(tabs.first).to_be_visible()
    tops = tabs.evaluate_all("(all) => all.map((tab) => Math.round(tab.getBoundingClientRect().top))")
    assert len(set(tops)) == 1
    assert box.bounding_box()["height"] < 40
    tabs.first.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(tabs.last).to_be_in_viewport(ratio=0.9)
    assert tabs.last.bounding_box()["x"] + tabs.last.bounding_box()["width"] <= width
    if width == 390 and tab == "More":
        page.locator("#more-tabs .end.before").click()
        expect(tabs.last).not_to_be_in_viewport(ratio=0.9)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_unavailable_panels_are_listed_with_the_model_and_say_why(
    tiny_url, tiny_translator, open_app, width, dark
) -> None:
    trace = tiny_translator.translate(tiny_translator.examples["de-en"][0].text)
    lacking = {entry["name"]: entry for entry in registry.lacking(trace, tiny_translator)}
    page = open_app(tiny_url, width=width, dark=dark)
    open_tab(page, "More")
    names = [panel.name for tab in registry.TABS if tab.name == "more" for panel in tab.panels]
    shown = page.locator("#more-tabs .strip [role=tab]:visible")
    expect(shown.first).to_be_visible()
    assert shown.evaluate_all("(all) => all.map((tab) => tab.dataset.tabId)") == [
        name for name in names if name not in lacking
    ]
    name = next(name for name in names if name in lacking)
    page.evaluate("(name) => { location.hash = `#tab=positions&panel=${name}` }", name)
    panel = page.locator(f"#panel-{name} .atlas-panel")
    expect(panel).to_contain_text(str(lacking[name]["why"]))
    expect(panel).to_contain_text(f"Not available for German → English: {plain_title(str(lacking[name]['panel']))}.")
    expect(panel).to_contain_text("No model that is served here has it.")
    expect(page.locator("#tab-more .controls:visible")).to_have_count(0)
    no_faults(page, "#tab-more", name=f"panel-unavailable-{width}")
    page.locator(".atlas-translation .more").click()
    for entry in lacking.values():
        about = page.locator(".atlas-translation .about p", has_text=str(entry["why"]))
        expect(about).to_have_text(
            re.compile(rf"^Not available for German → English: .*{re.escape(plain_title(str(entry['panel'])))}")
        )


def test_a_link_to_an_unavailable_panel_offers_a_model_that_has_it(app_url, open_page) -> None:
    page = open_page(f"{app_url}#text=Der+Hund.&direction=de-en&checkpoint=gru-de-en&tab=inside&panel=residual")
    panel = page.locator("#panel-residual .atlas-panel")
    title = plain_title("Residual stream")
    expect(panel).to_contain_text(f"Not available for German → English (recurrent): {title}.")
    expect(page.locator("#inside-tabs [role=tab]", has_text=title)).to_be_hidden()
    panel.get_by_role("button", name="Open it with German → English").click()
    expect(panel.locator(".figure, .pictured").first).to_be_visible()
    expect(page.locator("#inside-tabs [role=tab]", has_text=title)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".atlas-translation .source")).to_have_text("Der Hund.")


@pytest.mark.parametrize(
    ("link", "panel"),
    [
        ("tab=heads", "heads-survey"),
        ("tab=positions", "position-table"),
        ("tab=verify", "verify"),
        ("tab=positions&panel=position-curves", "position-curves"),
        ("tab=more&panel=bleu", "bleu"),
        ("tab=more", "heads-survey"),
    ],
)
def test_links_to_the_groups_of_more_open_their_panels(tiny_url, open_page, link, panel) -> None:
    page = open_page(f"{tiny_url}#{link}")
    expect(page.locator(f"#panel-{panel}")).to_be_visible()
    expect(page.locator("#tab-more-button")).to_have_attribute("aria-selected", "true")
