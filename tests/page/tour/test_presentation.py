"""Presentations in a real browser: a picture fills the screen, and keys move through heads, steps or stops."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import FIELD, no_violations, screenshot, use_modules

pytestmark = pytest.mark.browser

LECTERN, PRESENTED = ".atlas-lectern", ".atlas-presented"
SIZE = """(selector) => { const { width, height } = document.querySelector(selector).getBoundingClientRect();
  return [width, height]; }"""
REFUSED = "() => { document.documentElement.requestFullscreen = () => Promise.reject(new Error('refused')); }"
REACHED = f"""document.activeElement === document.body
  || Boolean(document.activeElement.closest('{LECTERN}, {PRESENTED}'))"""


def link(page: Page) -> dict[str, str]:
    """Return the fields of the page's address."""
    return {name: values[0] for name, values in parse_qs(urlparse(page.url).fragment).items()}


def drawn_within(page: Page, selector: str, width: int, height: int) -> tuple[float, float]:
    """Wait until an element lies within the window. Return its width and height as shares of the window's."""
    page.wait_for_function(
        """([selector, width, height]) => {
      const box = document.querySelector(selector).getBoundingClientRect();
      return box.left >= -1 && box.top >= -1 && box.right <= width + 1 && box.bottom <= height + 1; }""",
        arg=[selector, width, height],
    )
    across, down = page.evaluate(SIZE, selector)
    return across / width, down / height


@pytest.mark.long
@pytest.mark.parametrize(("width", "height", "dark"), [(1280, 720, False), (390, 844, True)])
def test_a_picture_fills_the_screen(tiny_url, open_page, width, height, dark) -> None:
    page = open_page(tiny_url, width=width, height=height, dark=dark)
    page.wait_for_selector(".atlas-explorer .detail .heatmaplayer image")
    before = page.evaluate(SIZE, ".atlas-explorer .axis-label.row")
    page.locator(FIELD).press("f")
    assert page.locator(FIELD).input_value().endswith("f")
    assert page.locator(LECTERN).count() == 0, "a typed letter must not start a presentation"
    if width < 600:  # as in a frame without the permission for full screen
        page.evaluate(REFUSED)
    page.locator(".atlas-title .present").click()
    expect(page.locator(LECTERN)).to_be_visible()
    shares = drawn_within(page, f"{PRESENTED} .detail", width, height)
    assert max(shares) > 0.55, shares
    if width > 600:
        assert page.evaluate("Boolean(document.fullscreenElement)")
        assert page.evaluate(SIZE, f"{PRESENTED} .axis-label.row")[1] > 1.3 * before[1], "larger type"
        expect(page.locator(f"{LECTERN} .hint")).to_have_text("← → heads · ↑ ↓ layers · Esc ends the presentation")
    for _ in range(6):
        page.keyboard.press("Tab")
        assert page.evaluate(REACHED)
    no_violations(page)
    screenshot(page, f"presentation-{width}")
    title, place = page.locator(f"{LECTERN} h2"), link_of_head(page)
    page.keyboard.press("ArrowUp") if place[0] > 1 else page.keyboard.press("ArrowDown")
    page.locator(LECTERN).get_by_role("button", name="Back" if place[1] > 1 else "Next").click()
    now = (place[0] + (-1 if place[0] > 1 else 1), place[1] + (-1 if place[1] > 1 else 1))
    expect(title).to_contain_text(f"Layer {now[0]} · Head {now[1]}")
    page.wait_for_function("(fields) => location.hash.includes(fields)", arg=f"layer={now[0]}&head={now[1]}")
    on, off = page.locator(f"{LECTERN} [aria-disabled=false]"), page.locator(f"{LECTERN} [aria-disabled=true]")
    expect(on).to_have_count(2)
    while off.count() == 0:  # until the last head of the last layer
        head = title.inner_text()
        page.keyboard.press("PageDown")
        expect(off.or_(title.filter(has_not_text=head))).not_to_have_count(0)
    expect(off).to_have_accessible_name("Next")
    page.keyboard.press("PageUp")
    expect(on).to_have_count(2)
    assert link(page)["present"] == "1" and link(page)["tab"] == "explorer"
    page.keyboard.press("Escape")
    expect(page.locator(PRESENTED)).to_have_count(0)
    expect(page.locator(".atlas-title .present")).to_be_focused()
    assert page.locator("[inert]").count() == 0 and "present" not in link(page)
    assert not page.evaluate("document.fullscreenElement")
    if width > 600:  # in another tab the same keys move between steps
        page.locator("#tab-stepper-button").click()
        expect(page.locator(".atlas-stepper .counter")).to_contain_text("Step 1")
        page.keyboard.press("f")
        expect(title).to_contain_text("Step 1")
        page.keyboard.press("PageDown")
        expect(title).to_contain_text("Step 2")


def link_of_head(page: Page) -> tuple[int, int]:
    """Return the layer and the head in the address of a presentation."""
    page.wait_for_function("location.hash.includes('present=1')")
    fields = link(page)
    return int(fields["layer"]), int(fields["head"])


@pytest.mark.long
def test_the_title_of_a_presentation_quotes_tokens(app_url, open_page) -> None:
    page = open_page(f"{app_url}#tab=why")
    named = page.locator(".atlas-question .headline em")
    expect(named.first).to_be_visible()
    words = set(named.all_inner_texts())
    page.locator(".atlas-title .present").click()
    title = page.locator(f"{LECTERN} h2")
    for word in words:
        expect(title).to_contain_text(f"“{word}”")
    assert "““" not in title.inner_text()


def test_page_down_goes_through_the_heads_of_all_layers_to_the_end(tiny_url, open_page) -> None:
    """A step that waits for the server is not the end."""
    page = open_page(tiny_url)
    page.wait_for_selector(".atlas-explorer .detail .heatmaplayer image")
    layers = page.locator(".atlas-explorer .thumbnails .line")
    heads = layers.nth(1).locator(".thumbnail")
    heads.last.click()
    count = heads.count()
    page.locator(".atlas-title .present").click()
    title = page.locator(f"{LECTERN} h2")
    expect(title).to_contain_text(f"Layer 1 · Head {count}")
    page.keyboard.press("ArrowRight")
    expect(title).to_contain_text(f"Layer 1 · Head {count}")
    page.keyboard.press("PageDown")
    expect(title).to_contain_text("Layer 2 · Head 1")
    page.keyboard.press("PageUp")
    expect(title).to_contain_text(f"Layer 1 · Head {count}")
    page.locator(LECTERN).get_by_role("button", name="Next").click()
    expect(title).to_contain_text("Layer 2 · Head 1")
    page.evaluate("document.querySelector('.atlas-explorer').setAttribute('aria-busy', 'true')")
    for _ in range(count * layers.count()):  # to the end and against it
        page.keyboard.press("PageDown")
    page.wait_for_timeout(700)
    expect(page.locator(f"{LECTERN} [aria-disabled=true]")).to_have_count(0)
    page.evaluate("document.querySelector('.atlas-explorer').setAttribute('aria-busy', 'false')")
    expect(page.locator(f"{LECTERN} [aria-disabled=true]")).to_have_accessible_name("Next")


def test_a_link_presents_a_tour(tiny_url, open_page) -> None:
    page = open_page(f"{tiny_url}#tour=attention&stop=3&present=1")
    count, sheet = page.locator(".atlas-tour .count"), page.locator(".atlas-tour")
    expect(count).to_have_text("3 of 8")
    expect(page.locator(f"{LECTERN} .hint")).to_have_text("← → stops of the tour · Esc ends the presentation")
    expect(page.locator(f"{PRESENTED} .detail")).to_be_visible()
    drawn_within(page, f"{PRESENTED} .detail", 1280, round(900 - sheet.bounding_box()["height"]))
    page.keyboard.press("ArrowRight")
    expect(count).to_have_text("4 of 8")
    expect(page.locator(f"{PRESENTED} .thumbnails")).to_be_visible()
    page.keyboard.press("PageUp")
    expect(count).to_have_text("3 of 8")
    page.get_by_role("button", name="Next", exact=True).last.click()
    expect(count).to_have_text("4 of 8")
    page.wait_for_function("location.hash.includes('stop=4') && location.hash.includes('present=1')")
    page.keyboard.press("Escape")
    expect(page.locator(PRESENTED)).to_have_count(0)
    expect(sheet).to_be_visible()
    assert "present" not in link(page) and link(page)["stop"] == "4"


def test_a_presentation_without_a_picture_says_so(tiny_url, open_page) -> None:
    page = open_page(f"{tiny_url}#text=Guten+Tag.&direction=de-en&tab=train", width=390)
    tab = page.locator("#tab-train-button")
    expect(tab).to_have_attribute("aria-selected", "true")
    expect(tab).to_be_in_viewport(ratio=1)  # of a strip that is wider than a phone
    expect(page.locator("#train-corpus")).to_be_visible()
    page.locator(".atlas-title .present").click()
    expect(page.locator(f"{LECTERN} .room")).to_contain_text("open the tab, then present again")
    page.keyboard.press("Escape")
    expect(page.locator(LECTERN)).to_be_hidden()


def test_there_is_one_presentation_and_a_tour_without_buttons_can_be_left(tiny_url, open_page) -> None:
    page = open_page(f"{tiny_url}#tour=attention&stop=3&present=1")
    expect(page.locator(".atlas-tour .count")).to_have_text("3 of 8")  # until then the map of the page is presented
    expect(page.locator(f"{PRESENTED} .detail")).to_be_visible()
    use_modules(page, "present/start.js")
    page.evaluate("atlas.present()")
    assert page.locator(LECTERN).count() == 1
    page.evaluate("for (const button of document.querySelectorAll('.atlas-tour .moves button')) button.hidden = true")
    expect(page.locator(f"{LECTERN} [aria-disabled=true]")).to_have_count(2)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".atlas-tour .count")).to_have_text("3 of 8")
    page.keyboard.press("Escape")
    expect(page.locator(LECTERN)).to_be_hidden()
