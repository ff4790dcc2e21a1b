"""Minimal pairs of sentences side by side in the explorer, with a table of the similarity of their shared words."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from attention_atlas.model.analysis.sentence_pairs import compare_shared_words, minimal_pairs
from tests.page.browser import CLIPBOARD, FIELD, no_faults, submit
from tests.page.test_links import copy_link

pytestmark = pytest.mark.browser

MENU = ".compare-bar .minimal select"


@pytest.mark.long
def test_a_minimal_pair_is_compared_with_a_note_on_what_to_look_for(app_url, open_page, shipped_translators):
    page = open_page(app_url, dark=True, width=390, **CLIPBOARD)
    page.locator(".segmented button[data-value='compare']").click()
    menu = page.locator(MENU)
    menu.focus()
    menu.select_option(index=2)  # the second pair: one word of two senses
    pair = minimal_pairs("de")[1]
    expect(page.locator(".compare-title")).to_have_text([pair.first, pair.second])
    expect(page.locator(FIELD)).to_have_value(pair.second)
    translator = shipped_translators["de-en"]
    first, second = (translator.translate(text) for text in (pair.first, pair.second))
    expect(page.locator(".compare-written")).to_have_text([f"→ {first.translation}", f"→ {second.translation}"])
    expect(page.locator(".compare .look")).to_contain_text("What to look for: Does the marked word get two")
    rows = page.locator(".alike tbody tr")
    shared = compare_shared_words(translator, first, second)
    expect(rows).to_have_count(len(shared.words) + 1)
    row = page.locator(".alike tbody tr:has(mark)")
    expect(row.locator("th")).to_have_text("Bank")
    cosines = shared.cosine[shared.words.index("Bank")]
    numbers = [float(text) for text in row.locator("td").all_inner_texts()]
    assert numbers == pytest.approx(cosines.tolist(), abs=0.0061)  # sent with three digits, shown with two
    expect(menu).to_have_value("1")
    link = f"{app_url}#{urlencode(copy_link(page, '.atlas-explorer > .actions'))}"
    page.goto("about:blank")
    page.goto(link)  # it names both sentences
    expect(page.locator(".compare-title")).to_have_text([pair.first, pair.second])
    expect(menu).to_have_value("1")
    no_faults(page, ".atlas-explorer", name="minimal-pair")


@pytest.mark.long
def test_any_two_sentences_have_a_table_or_the_reason_why_not(tiny_url, open_page):
    page = open_page(tiny_url)
    page.locator(".segmented button[data-value='compare']").click()
    for text in ("Der Hund schläft.", "Katze", "Hund"):
        submit(page, text)
        expect(page.locator(".compare-title").last).to_have_text(re.compile(f"^{re.escape(text)}"))
    expect(page.locator(".alike")).to_have_text("The two sentences have no word in common.")
    expect(page.locator(".compare .look")).to_be_hidden()
    page.get_by_label("Compare with").select_option(label="Der Hund schläft.")
    expect(page.locator(".alike tbody tr").first.locator("th")).to_have_text("Hund")
