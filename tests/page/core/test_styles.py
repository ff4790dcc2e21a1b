"""Single style sheets applied to what single modules draw, on an empty page."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page

from attention_atlas.viz import theme
from attention_atlas.viz.assets import WEB
from tests.page.browser import load_modules

pytestmark = pytest.mark.browser

WORDS = [{"text": "Hund", "source": True, "special": False, "loss": 9.0, "p": p, "instead": [["cat", 0.18]]}
         for p in (0.0000034, 0.000012, 0.05)]  # fmt: skip


def styled(page: Page, *names: str, modules: tuple[str, ...] = (), dark: bool = False) -> Page:
    """Load these modules and style sheets and the theme's colours into an empty page."""
    load_modules(page, "core/dom.js", *modules)
    page.add_style_tag(content=theme.css_variables())
    for name in ("core/base.css", *names):
        page.add_style_tag(content=(WEB / name).read_text(encoding="utf-8"))
    page.evaluate("(dark) => document.body.classList.toggle('dark', dark)", dark)
    return page


def pixels(part: Locator) -> np.ndarray:
    """Return a screenshot of a part of the page, int [height, width, 3]."""
    return np.asarray(Image.open(io.BytesIO(part.screenshot())).convert("RGB")).astype(int)


def test_a_printed_worksheet_shows_the_bars_of_its_answers_and_no_controls(open_page):
    page = styled(open_page("about:blank"), "sheet/sheet.css", "sheet/paper.css", modules=("sheet/paper.js",))
    page.evaluate(
        """() => {
      const picture = { type: 'bars', labels: ['a', 'b'], values: [0.5, 0.25], unit: 'share' };
      const editor = atlas.el('div', { class: 'editor' }, 'editor'), bar = atlas.el('div', { class: 'bar' }, 'buttons');
      const paper = atlas.el('article', { class: 'paper' }, atlas.drawPicture(picture, true));
      document.body.append(atlas.el('dialog', { class: 'atlas-worksheet own', open: true },
        bar, atlas.el('div', { class: 'both' }, editor, paper)));
    }"""
    )
    page.emulate_media(media="print")
    try:
        assert page.locator("svg .bar:visible").count() == 2
        assert not page.locator(".atlas-worksheet > .bar").is_visible() and not page.locator(".editor").is_visible()
    finally:
        page.emulate_media(media="screen")


@pytest.mark.parametrize("dark", [False, True])
def test_a_bar_is_visible_in_a_marked_row(open_page, dark):
    page = styled(open_page("about:blank"), "lab/panel.css", dark=dark)
    page.evaluate(
        """() => document.body.append(atlas.el('div', { class: 'atlas-panel' }, atlas.el('table', {},
      atlas.el('tr', { class: 'marked' }, atlas.el('td', {},
        atlas.el('span', { class: 'bar', style: '--share: 0.5' }, '\u00a0'))))))"""
    )
    row = pixels(page.locator(".bar"))[8]
    assert np.abs(row[30] - row[110]).max() > 30, "the filled part must differ from the rest"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_smallest_percentages_fit_beside_their_bars(open_page, width):
    page = styled(open_page("about:blank", width=width), "why/question.css", modules=("why/picture.js",))
    page.evaluate(
        """(words) => document.body.append(atlas.el('div', { class: 'atlas-question' },
      atlas.createWhyPicture({ p: 0.5, words }, 'dog')))""",
        WORDS,
    )
    page.add_style_tag(content="body { font-family: var(--atlas-font) }")
    values = page.locator(".bar-row .value")
    assert "0.0003%" in values.all_inner_texts()
    assert values.evaluate_all("(all) => all.every((value) => value.scrollWidth <= value.clientWidth)")
