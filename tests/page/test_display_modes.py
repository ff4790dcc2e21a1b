"""Forced colours, more contrast, and the headings of the tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz import shell
from tests.page.browser import no_violations, open_tab, screenshot, translate

pytestmark = pytest.mark.browser

PRESSED, PLAIN = (f"#tab-why .against .chip[aria-pressed={value}]" for value in ("true", "false"))
COLOUR = "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]"
LEVELS = """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((heading) => heading.checkVisibility()).map(({ localName }) => Number(localName[1]))"""
# A variable of the style sheet as a colour that a computed style has.
VARIABLE = """(name) => {
  const probe = Object.assign(document.createElement("i"), { style: `color: var(--atlas-${name})` });
  probe.style.forcedColorAdjust = "none";
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color; }"""


@pytest.fixture()
def open_why(open_page, tiny_url) -> Iterator[Callable[..., Page]]:
    opened = []

    def start(**media: str) -> Page:
        page = open_page(f"{tiny_url}#tab=why")
        opened.append(page)
        page.emulate_media(**media)
        expect(page.locator(".why-picture")).to_be_visible()
        return page

    yield start
    for page in opened:  # is lent to other tests
        page.emulate_media(forced_colors="none", contrast="no-preference")


def test_with_forced_colours_bars_keep_theirs_and_chosen_parts_stand_out(open_why) -> None:
    page = open_why(forced_colors="active")
    screenshot(page, "forced-colours")
    bar = page.evaluate(COLOUR, [".why-picture .meter i", "backgroundColor"])
    assert bar == page.evaluate(VARIABLE, "accent")
    chosen, other = (page.evaluate(COLOUR, [selector, "backgroundColor"]) for selector in (PRESSED, PLAIN))
    assert chosen != other
    assert page.evaluate(COLOUR, [".why-picture .meter", "borderTopWidth"]) == "1px"  # where an empty bar would end


def test_with_more_contrast_no_text_is_muted(open_why) -> None:
    page = open_why(contrast="more")
    ink = page.evaluate(VARIABLE, "ink")
    for part in (".atlas-question .metric", ".atlas-translation .status"):
        assert page.evaluate(COLOUR, [part, "color"]) == ink, part
    no_violations(page, ".atlas-question")


def test_every_tab_has_headings(open_page, tiny_url) -> None:
    page = open_page(tiny_url)
    for title, *_ in shell.TABS:
        open_tab(page, str(title))
        panel = page.locator("#tabs > [role=tabpanel]:visible")
        expect(panel.get_by_role("heading", level=2).first).not_to_be_empty()
        levels = page.evaluate(LEVELS)
        assert levels[0] == 1 and all(after - before <= 1 for before, after in pairwise(levels)), levels


def test_every_panel_and_pane_has_a_heading(open_page, tiny_url) -> None:
    page = open_page(tiny_url)
    expect(page.locator(".atlas-explorer .panes > section h2")).to_have_count(4)
    for title in ("Inside", "More"):
        open_tab(page, title)
        frame = page.locator("#tabs > [role=tabpanel]:visible .atlas-frame")
        expect(frame.locator("> .atlas-prose > h2")).not_to_be_empty()


def test_the_first_stop_of_tab_skips_to_the_words(open_app, tiny_url) -> None:
    page = open_app(tiny_url)
    page.wait_for_selector(".sentence-lines .target .word")
    for title, words in (("Attention", ".sentence-lines .target .word"), ("Why", "#translation-text button")):
        open_tab(page, title)
        page.evaluate("document.activeElement.blur()")
        page.mouse.click(1, 1)  # the next Tab begins at the top
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Skip to the words")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(words).first).to_be_focused()


def test_tabbing_past_the_menu_of_directions_keeps_the_translation(open_app, tiny_url) -> None:
    page = open_app(tiny_url)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.locator("#direction input").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    translate(page, "ein hund")  # a choice would have been sent before it
    assert not [url for url in requests if "page_direction" in url]
    expect(page.locator(".atlas-explorer")).to_be_visible()


def test_a_screen_reader_is_told_a_new_translation(open_app, tiny_url) -> None:
    page = open_app(tiny_url)
    news = page.locator(".atlas-translation [role=status]")
    expect(news).to_be_empty()
    translate(page, "ein hund")
    expect(news).to_have_text(f"Translation: {page.locator('#translation-text').inner_text()}")


def test_words_that_count_against_the_token_are_underlined(open_why) -> None:
    page = open_why()
    key = page.locator(".why-picture .key")
    side, other = (
        key.locator(f"i.{name}").evaluate("(node) => getComputedStyle(node).borderBottom")
        for name in ("for", "against")
    )
    assert "2px dashed" in other != side
    lines = page.locator(".why-picture .word").evaluate_all(
        "(all) => all.map((node) => [node.matches('.lined'), getComputedStyle(node).textDecorationStyle, node.title])"
    )
    assert lines
    for is_lined, style, effect in lines:
        assert style == ("dashed" if is_lined else "solid")
        assert not is_lined or "(+" in effect, "without the word, the token is more probable"
