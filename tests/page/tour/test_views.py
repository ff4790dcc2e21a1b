"""My views: collected, ordered, played as slides, kept as a file. In a real browser."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import no_faults, open_tab, save_file, upload_json

pytestmark = pytest.mark.browser

VIEWS, LECTERN = ".atlas-views", ".atlas-lectern"


def opened(page: Page) -> None:
    page.locator(".atlas-title .teach summary").press("Enter")
    page.locator(".atlas-title .teach").get_by_role("button", name="My views").press("Enter")
    expect(page.locator(f"{VIEWS} h2")).to_be_focused()


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_views_are_collected_ordered_played_and_kept(tiny_url, open_page, width, dark):
    page = open_page(tiny_url, width=width, height=844, dark=dark)
    page.wait_for_selector(".atlas-explorer .detail .heatmaplayer image")
    opened(page)
    expect(page.get_by_role("button", name="Play")).to_be_disabled()
    page.get_by_role("button", name="Add this view").click()
    open_tab(page, "Step by step")
    page.get_by_role("button", name="Add this view").click()
    open_tab(page, "Inside")
    expect(page.locator("#tab-inside [id^=panel-]:visible")).to_have_count(1)
    page.get_by_role("button", name="Add this view").click()
    titles = page.get_by_label("Title of the view")
    expect(titles).to_have_count(3)
    page.get_by_role("button", name="Move up").last.press("Enter")
    expect(page.locator(f"{VIEWS} .status")).to_have_text("View 2 of 3")
    titles.nth(1).fill("The machine <b>")
    page.get_by_role("button", name="Remove this view").last.press("Enter")
    expect(titles).to_have_count(2)
    no_faults(page, VIEWS, name=f"views-{'dark' if dark else 'light'}-{width}")
    file = json.loads(save_file(page.get_by_role("button", name="Save as a file")).read_text(encoding="utf-8"))
    assert file["views"][1]["title"] == "The machine <b>"
    page.locator(VIEWS).get_by_role("button", name="Play").click()
    expect(page.locator(VIEWS)).to_be_hidden()
    caption = page.locator(f"{LECTERN} .caption")
    expect(caption).to_contain_text("1 / 2 · Attention")
    expect(page.locator(".atlas-presented .detail")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(caption).to_have_text("2 / 2 · The machine <b>")
    expect(page.locator("#tab-inside")).to_be_visible()
    expect(page.locator(f"{LECTERN} [aria-disabled=true]")).to_have_accessible_name("Next")
    page.keyboard.press("ArrowLeft")
    expect(caption).to_contain_text("1 / 2 · Attention")
    page.keyboard.press("Escape")
    expect(page.locator(LECTERN)).to_be_hidden()
    page.reload()
    opened(page)
    expect(titles).to_have_count(2)  # the browser kept them
    page.get_by_role("button", name="Remove this view").first.press("Enter")
    upload_json(page.locator(VIEWS), file)
    expect(titles).to_have_count(2)


@pytest.mark.long
def test_a_view_of_a_panel_is_played_with_its_controls(tiny_url, open_page):
    page = open_page(f"{tiny_url}#tab=inside&panel=feed-forward")
    panel = page.locator("#panel-feed-forward .atlas-panel")
    expect(panel).to_have_attribute("aria-busy", "false")
    layer, side = page.get_by_role("spinbutton", name="Layer").locator("visible=true"), page.get_by_label("Decoder")
    side.locator("visible=true").check()
    expect(panel).to_have_attribute("data-drawn", "2")
    layer.fill("3")
    layer.press("Enter")
    expect(panel).to_have_attribute("data-drawn", re.compile("[34]"))
    opened(page)
    page.get_by_role("button", name="Add this view").click()
    side = page.get_by_label("Encoder").locator("visible=true")
    side.check()
    layer.fill("1")
    layer.press("Enter")
    page.locator(VIEWS).get_by_role("button", name="Play").click()
    expect(page.locator(LECTERN)).to_be_visible()
    page.keyboard.press("Escape")
    expect(layer).to_have_value("3")
    expect(page.get_by_label("Decoder").locator("visible=true")).to_be_checked()
    # The page's address is this view's, and does not follow what a script changes.
    opened(page)
    layer.evaluate("field => { field.value = '1'; field.dispatchEvent(new Event('change')); }")
    expect(layer).to_have_value("1")
    page.get_by_role("button", name="Play").evaluate("button => button.click()")
    expect(page.locator(LECTERN)).to_be_visible()
    page.keyboard.press("Escape")
    expect(layer).to_have_value("3")


GOOD = {"kind": "attention-atlas-views", "version": 1, "views": [{"title": "x", "link": "tab=inside"}]}
HOSTILE = {
    "no JSON": (b"\x00", "not a file with views"),
    "a worksheet": (GOOD | {"kind": "attention-atlas-worksheet"}, "not a file with views"),
    "no list": (GOOD | {"views": "x"}, "not a file with views"),
    "too many": (GOOD | {"views": GOOD["views"] * 101}, "the limit is 100"),
    "no view": (GOOD | {"views": [None]}, "View 1 of this file is not a view"),
    "no text": (GOOD | {"views": [{"title": [], "link": "x"}]}, "View 1 of this file is not a view"),
    "long": (GOOD | {"views": [{"title": "x", "link": "x" * 20_001}]}, "View 1 of this file is too long"),
    "large": (b" " * 2_000_001, "the limit is"),
}


@pytest.mark.long
def test_hostile_files_are_refused_in_words(tiny_url, open_page):
    page = open_page(tiny_url)
    opened(page)
    page.get_by_role("button", name="Add this view").click()
    for name, (file, words) in HOSTILE.items():
        upload_json(page.locator(VIEWS), file)
        expect(page.locator(f"{VIEWS} .status"), name).to_contain_text(words)
        expect(page.get_by_label("Title of the view")).to_have_count(1)
