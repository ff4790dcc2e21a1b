"""The option "Glosses": below each word its translation according to the model's word links."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from attention_atlas.model.analysis.alignment.links import glosses
from tests.page.browser import no_faults
from tests.page.explorer.page import choose

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_words_have_glosses_marked_as_the_models_guess(app_url, open_page, shipped_translators):
    translator = shipped_translators["de-en"]
    trace = translator.translate("Ich möchte ein Bier, bitte.", "de-en")
    source, target = glosses(trace, translator.survey.directions["de-en"].linked_by)
    page = open_page(app_url, dark=True, width=390)
    lines = page.locator(".sentence-lines .words")
    glossed = page.locator(".sentence-lines .gloss")
    expect(lines.first.locator("button.word").first).to_be_visible()
    expect(lines.first.locator(".gloss")).to_have_text([source[i] for i in range(1, len(source) - 1)])
    expect(lines.last.locator(".gloss")).to_have_count(0)  # English, as the page
    expect(page.locator(".sentence-lines .name .gloss")).to_have_text("a guess")
    choose(page, "Glosses", "none")
    expect(glossed).to_have_count(0)
    expect(page.locator(".reader .guess")).to_be_hidden()
    choose(page, "Glosses", "all")
    expect(page.locator(".reader .guess")).to_contain_text("A guess")
    expect(lines.first.locator(".gloss")).to_have_text([source[i] for i in range(1, len(source) - 1)])
    expect(lines.last.locator(".gloss")).to_have_text([target[i] for i in range(len(target) - 1)])
    word = lines.first.get_by_role("button", name="Bier, from the model's links: beer", exact=True)
    expect(word).to_have_count(1)
    lines.last.locator("button.word").first.focus()
    page.keyboard.press("ArrowDown")  # on a narrow page the words stand below each other
    expect(lines.last.locator("button.word").nth(1)).to_be_focused()
    no_faults(page, ".atlas-explorer", name="glosses")
    page.locator(".segmented button[data-value=decoder_self]").click()
    expect(lines.last.locator(".gloss")).to_have_text([target[i] for i in range(len(target) - 1)])
    assert "beer" in lines.first.inner_text() and "Bier" in lines.first.inner_text()
