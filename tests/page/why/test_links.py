"""A link restores the settings of the panels of "Why": switched-off heads and a second sentence."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.conftest import SENTENCES
from tests.page.browser import CLIPBOARD
from tests.page.lab.test_lab import open_panel
from tests.page.test_links import copy_link

pytestmark = pytest.mark.browser

HEADS = {"cross.0.1", "encoder_self.1.2"}


@pytest.mark.long
def test_a_link_restores_the_basket_and_the_second_sentence(open_page, tiny_url) -> None:
    invalid = ("roof.1.1", "cross.99.0", "cross.0.99", "cross.x.1", "decoder_self.1", "")
    link = {
        "text": SENTENCES[0],
        "direction": "de-en",
        "checkpoint": "tiny",
        "tab": "why",
        "panel": "why-heads",
        "step": "3",
        "alone": "1",
        "off": ",".join((*HEADS, *invalid)),
        "second": SENTENCES[2],
    }
    page = open_page(f"{tiny_url}#{urlencode(link)}", **CLIPBOARD)
    panel = page.locator("#panel-why-heads")
    expect(panel.locator(".basket .chip")).to_have_count(len(HEADS))
    expect(panel.locator("button.cell[aria-pressed=true]")).to_have_count(len(HEADS))
    expect(panel.get_by_text("Sum of the single effects")).to_be_visible()

    for name, file in (("CSV", "heads-step3.csv"), ("SVG", "why.svg")):
        with page.expect_download() as download:
            panel.locator(".exports").get_by_role("button", name=name).click()
        assert download.value.suggested_filename == file
        text = download.value.path().read_text(encoding="utf-8")
        assert text.count("measured") == text.count("proxy") == 8 if name == "CSV" else text.count("<rect") > 32

    open_panel(page, "Why", "Patch")
    expect(page.get_by_label("Second sentence").locator("visible=true")).to_have_value(SENTENCES[2])
    expect(page.locator("#panel-why-patch").get_by_role("grid")).to_be_visible()
    fields = copy_link(page, "#tab-why")
    assert set(fields["off"].split(",")) == HEADS and fields["second"] == SENTENCES[2]
    assert (fields["panel"], fields["step"], fields["alone"]) == ("why-patch", "3", "1")
