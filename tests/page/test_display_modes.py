"""Forced colours, more contrast, and the headings of the tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz import shell
from tests.page.browser import no_violations, open_tab, screenshot

pytestmark = pytest.mark.browser

PRESSED, PLAIN = (f"#tab-why .against .chip[aria-pressed={value}]" for value in ("true", "false"))
COLOUR = "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]"
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
