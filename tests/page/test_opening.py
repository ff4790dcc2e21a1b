"""The page's opening in browsers set to English."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz.questions import opening
from tests.page.browser import FIELD, translate
from tests.page.test_first_sight import CELLS, SHIFTS

pytestmark = pytest.mark.browser

SOURCE, MENU = ".atlas-translation .source", "#direction input"


def opens(page: Page, text: str, direction: str) -> None:
    expect(page.locator(SOURCE)).to_have_text(text)
    expect(page.locator(FIELD)).to_have_value(text)
    expect(page.locator(MENU)).to_have_value(direction)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_an_english_browser_opens_with_english_and_asks_nothing(
    app_url, open_page, shipped_translators, width, height
) -> None:
    page, asked = open_page("about:blank", locale="en-US", width=width, height=height), []
    page.emulate_media(reduced_motion="reduce")  # the first visit's example of pointing moves otherwise
    page.on("request", lambda request: "/ask/" in request.url and asked.append(request.url))
    page.goto(app_url)
    page.wait_for_selector(CELLS)
    route = opening.own_route(shipped_translators)
    translator = shipped_translators[route.label]
    text = translator.examples["en-de"][0].text
    opens(page, text, "English → German")
    expect(page.locator("#translation-text")).to_have_text(translator.translate(text, "en-de").translation)
    expect(page.locator(".atlas-examples .example").first).to_have_text(text)
    shifts = page.evaluate(SHIFTS)
    assert sum(value for value, _ in shifts) < 0.05, shifts
    assert [url for url in asked if "page_translate" in url] == []
    page.emulate_media(reduced_motion="null")
    translate(page, "The dog sleeps.")
    expect(page.locator("#translation-text")).to_contain_text("Hund")
    page.reload()
    opens(page, "The dog sleeps.", "English → German")


def test_the_german_tour_is_one_click_away(app_url, open_page) -> None:
    page = open_page(app_url, locale="en-GB")
    expect(page.locator(MENU)).to_have_value("English → German")
    page.locator(".atlas-title .tour").click()
    expect(page.locator(MENU)).to_have_value("German → English")
    expect(page.locator(SOURCE)).to_contain_text("Hund")
    page.get_by_role("button", name="Leave the tour").click()
    translate(page, "Der Hund.")


def test_a_link_and_a_lost_opening_leave_the_pages_own(app_url, open_page) -> None:
    page = open_page(f"{app_url}#text=Der+Hund.&direction=de-en", locale="en-US")
    opens(page, "Der Hund.", "German → English")
    page = open_page("about:blank", locale="en-US")
    page.outlives = True  # the failed request is a console error
    page.route("**/opening.json", lambda route: route.abort())
    page.goto(app_url)
    opens(page, "Ich möchte ein Bier, bitte.", "German → English")
    expect(page.locator(FIELD)).not_to_have_css("color", "rgba(0, 0, 0, 0)")


def test_other_browsers_open_as_before(app_url, open_page) -> None:
    page, requests = open_page("about:blank", locale="fr-FR"), []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(app_url)
    opens(page, "Ich möchte ein Bier, bitte.", "Allemand → anglais")
    assert not any("opening" in url for url in requests if url.endswith(".json"))
