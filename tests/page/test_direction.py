"""Changing the direction of translation in a real browser, and entering a text in another language."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.page.browser import FIELD, choose_direction, no_violations, translate

pytestmark = pytest.mark.browser

STRIP, EXPLORER = ".atlas-translation", ".atlas-explorer"


def test_another_direction_translates_its_example_or_the_typed_text(app_url, open_page, shipped_translators):
    examples = {
        name: [example.text for example in shipped_translators[name].examples[name]] for name in ("de-en", "en-de")
    }
    page = open_page(app_url)
    expect(page.locator(f"{STRIP} .source")).to_have_text(examples["de-en"][0])
    choose_direction(page, "English → German")
    expect(page.locator(FIELD)).to_have_value(examples["en-de"][0])
    expect(page.locator(f"{STRIP} .source")).to_have_text(examples["en-de"][0])
    translate(page, "The neighbour sings.")
    page.locator(FIELD).fill("The dog sings.")
    expect(page.locator("body")).to_have_class(re.compile("atlas-typing"))
    choose_direction(page, "English → French")
    expect(page.locator(f"{STRIP} .source")).to_have_text("The dog sings.")
    expect(page.locator(FIELD)).to_have_value("The dog sings.")
    expect(page.locator("body")).not_to_have_class(re.compile("atlas-typing"))


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_text_in_another_language_can_be_translated_in_its_own_direction(app_url, open_page, width, dark):
    page = open_page(app_url, width=width, dark=dark)
    text = "Hello, how are you today?"
    expect(page.locator(f"{STRIP} .source")).to_be_attached()
    translate(page, text)
    notice = page.locator(f"{STRIP} .notice")
    expect(notice).to_contain_text("looks like English")
    no_violations(page, STRIP)
    notice.get_by_role("button", name="Translate English → German").click()
    expect(notice).to_have_count(0)
    expect(page.locator("#direction input")).to_have_value("English → German")
    expect(page.locator(FIELD)).to_have_value(text)
    expect(page.locator("#translation-text")).to_contain_text("Hallo")
