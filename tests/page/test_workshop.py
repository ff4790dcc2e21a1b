"""Workshop links: the model, a tour and the visible tabs, and the panel that makes such links."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz import shell
from tests.page.browser import CLIPBOARD, FIELD, no_faults, open_more, translate

pytestmark = pytest.mark.browser

MENU = "#direction input"


def tabs(page: Page) -> list[str]:
    return page.locator("#tabs > .tab-wrapper [role=tab]:visible").all_inner_texts()


def test_a_link_names_the_visible_tabs_and_the_address_keeps_them(tiny_url, open_app) -> None:
    page = open_app(f"{tiny_url}#tabs=stepper+more")
    expect(page.locator("#tab-stepper-button")).to_have_attribute("aria-selected", "true")
    assert tabs(page) == ["Step by step", "More"]
    translate(page, "Der Hund.")
    for title in ("Schemes", "BLEU"):
        open_more(page, title)
        expect(page.locator("#tab-more .atlas-panel:visible")).to_have_attribute("aria-busy", "false")
    page.wait_for_function("/tab=more.*tabs=stepper/.test(location.hash)")
    page.evaluate("location.hash = '#text=Die+Katze.&direction=de-en'")
    expect(page.locator(".atlas-translation .source")).to_have_text("Die Katze.")
    page.wait_for_function("location.hash.includes('tabs=stepper')")
    page.reload()
    expect(page.locator(".atlas-translation .source")).to_have_text("Die Katze.")
    assert tabs(page) == ["Step by step", "More"]
    page.evaluate("location.hash = '#tabs=more'")
    expect(page.locator("#tab-more-button")).to_have_attribute("aria-selected", "true")
    assert tabs(page) == ["More"]
    page.evaluate("location.hash = '#tabs='")
    expect(page.locator("#tab-inside-button")).to_be_visible()


@pytest.mark.parametrize("link", ["tabs=roof", "tabs=%22%5D+x", "tabs="])
def test_a_link_that_names_no_tab_hides_none(tiny_url, open_app, link) -> None:
    page = open_app(f"{tiny_url}#{link}")
    assert tabs(page) == [str(title) for title, *_ in shell.TABS]


@pytest.mark.parametrize("name", [name for _, name, _ in shell.TABS])
def test_each_tab_can_be_the_only_one(tiny_url, open_app, name) -> None:
    page = open_app(f"{tiny_url}#tabs={name}")
    expect(page.locator(f"#tab-{name}-button")).to_have_attribute("aria-selected", "true")
    assert len(tabs(page)) == 1


@pytest.mark.parametrize("locale", ["it-IT", "en-US"])
def test_a_link_names_a_model_without_a_text(app_url, open_page, shipped_translators, locale) -> None:
    translator = shipped_translators["en-fr"]
    page = open_page(
        f"{app_url}#direction=en-fr&checkpoint={translator.name}&digest={translator.digest[:12]}", locale=locale
    )
    text = translator.examples["en-fr"][0].text
    expect(page.locator(".atlas-translation .source")).to_have_text(text)
    expect(page.locator(FIELD)).to_have_value(text)
    expect(page.locator(MENU)).to_have_value("English → French")


def test_a_model_that_is_not_served_is_named(app_url, open_page) -> None:
    words = "This link is for a model that is not served here (digest ffff)."
    page = open_page(f"{app_url}#direction=de-en&digest=ffff")
    expect(page.locator(".notice.error")).to_have_text(words)
    expect(page.locator("#translation-text")).to_contain_text("beer")
    page.evaluate("location.hash = '#tour=attention&direction=de-en&digest=ffff'")
    expect(page.locator(".atlas-tour h2")).to_have_text(words)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), pytest.param(390, True, marks=pytest.mark.long)])
def test_the_panel_makes_a_link_that_opens_what_it_says(app_url, open_app, open_page, width, dark) -> None:
    page = open_app(app_url, width=width, dark=dark, **CLIPBOARD)
    page.locator(".atlas-title .teach summary").click()
    page.locator(".atlas-title .teach").get_by_role("button", name="A link for a workshop").click()
    expect(page.locator("#atlas-workshop-title")).to_be_focused()
    panel = page.locator(".atlas-views")
    panel.get_by_label("Tour").select_option("verbs")
    panel.get_by_label("Model").select_option(label="English → French")  # it has no tour of verbs
    expect(panel.get_by_label("Tour")).to_have_value("")
    panel.get_by_label("Tour").select_option("attention")
    panel.get_by_label("Wording").select_option("technical")
    for name in ("Inside", "Train", "More"):
        panel.get_by_label(name).uncheck()
    panel.get_by_role("button", name="Copy link").click()
    expect(panel.get_by_role("status")).to_have_text("Link copied.")
    no_faults(page, ".atlas-views", name=f"workshop-{width}")
    link = page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator(".atlas-tour .count")).to_be_visible()
    expect(page.locator(MENU)).to_have_value("English → French")
    assert tabs(page) == ["Attention", "Step by step", "Why"]
    assert "wording=technical" in link
    page.locator(".display summary").click()
    expect(page.locator(".display").get_by_label("Wording")).to_have_value("technical")
