"""The two levels of wording: plain titles by default, technical ones by a choice or a link."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.browser import plain_title

PANEL = "#tab=inside&panel=masks"


@pytest.mark.long
def test_a_choice_and_a_link_set_the_wording(app_url, open_app) -> None:
    plain = plain_title("Masks")
    page = open_app(f"{app_url}{PANEL}")
    tabs = page.locator("#inside-tabs .strip")
    expect(tabs.get_by_role("tab", name=plain, exact=True)).to_be_visible()
    page.locator(".display > summary").click()
    menu = page.get_by_label("Wording")
    assert menu.input_value() == "plain"
    with page.expect_navigation():
        menu.select_option("technical")
    expect(tabs.get_by_role("tab", name="Masks", exact=True)).to_be_visible()
    assert page.evaluate("JSON.parse(localStorage['atlas-display']).wording") == "technical"
    page.wait_for_function("location.hash.includes('wording=technical')")
    with page.expect_navigation():
        page.evaluate("location.hash = location.hash.replace('technical', 'plain')")
    expect(tabs.get_by_role("tab", name=plain, exact=True)).to_be_visible()


@pytest.mark.long
def test_a_link_is_technical_in_a_browser_that_chose_nothing(app_url, open_app) -> None:
    page = open_app(f"{app_url}{PANEL}&wording=technical")
    expect(page.locator("#inside-tabs .strip").get_by_role("tab", name="Masks", exact=True)).to_be_visible()
    assert page.evaluate("localStorage['atlas-display'] ?? null") is None
    page.goto("about:blank")
    page.goto(f"{app_url}#glossary=occlusion&wording=technical")
    expect(page.locator(".atlas-glossary [data-term=occlusion] h4")).to_have_text("Occlusion")


def test_plain_words_replace_technical_ones_where_they_are_said(open_modules) -> None:
    page = open_modules("core/wording.js", "core/language.js")
    assert page.evaluate("atlas.t('Masks')") == plain_title("Masks") != "Masks"
    assert page.evaluate("atlas.t('{name}: 1', { name: atlas.say('Masks') })") == f"{plain_title('Masks')}: 1"
    assert page.evaluate("atlas.isTechnical()") is False
