"""The map of a recurrent network in the tab Inside, in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.page.browser import no_faults

pytestmark = pytest.mark.browser

LINK = "#text=Der+Hund+schläft.&direction=de-en&checkpoint=gru-de-en&tab=inside&panel=map"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_map_has_both_networks_and_opens_their_parts(app_url, open_app, shipped_translators, width, dark):
    page = open_app(f"{app_url}{LINK}", width=width, dark=dark)
    maps = page.locator("#panel-map .networks svg")
    expect(maps).to_have_count(2)
    translator = shipped_translators["de-en (gru-de-en)"]
    d, tokens = translator.config.d_model, len(translator.encode("Der Hund schläft."))
    shapes = [set(re.findall(r"\[[\d, ]+\]", maps.nth(i).text_content())) for i in range(2)]
    for own in shapes:
        assert {
            f"[{tokens}]",
            f"[{tokens}, {d}]",
            f"[{tokens}, {d // 2}]",
            f"[{d}]",
            f"[{translator.config.vocabulary_size}]",
        } <= own
    assert f"[{3 * d}]" in shapes[0] - shapes[1] and f"[{2 * d}]" in shapes[1] - shapes[0]
    assert page.evaluate("""() => [...document.querySelectorAll('#panel-map .networks svg')].every((svg) => {
      const frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('text, rect')].every((node) => {
        const box = node.getBoundingClientRect();
        return box.left >= frame.left - 1 && box.right <= frame.right + 1;
      });
    })"""), "every label is inside its map"
    no_faults(page, "#panel-map", name=f"network-{'dark' if dark else 'light'}-{width}")
    maps.nth(0).get_by_role("button", name="attention").click()
    expect(page.locator("#panel-additive")).to_contain_text("softmax")
    page.locator("#tab-inside-button").click()
    maps.nth(1).get_by_role("button", name="GRU →").press("Enter")
    expect(page.locator("#panel-gates")).to_contain_text("Encoder, from the left, token")
