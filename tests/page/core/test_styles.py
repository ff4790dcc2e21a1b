"""Single style sheets applied to what single modules draw, on an empty page."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page

from attention_atlas.viz import theme
from attention_atlas.viz.assets import WEB

pytestmark = pytest.mark.browser

WORDS = [{"text": "Hund", "source": True, "special": False, "loss": 9.0, "p": p, "instead": [["cat", 0.18]]}
         for p in (0.0000034, 0.000012, 0.05)]  # fmt: skip


def apply_styles(page: Page, *names: str) -> None:
    """Load these style sheets and the theme's colours."""
    page.add_style_tag(content=theme.css_variables())
    for name in ("core/base.css", *names):
        page.add_style_tag(path=WEB / name)


def test_a_printed_worksheet_shows_the_bars_of_its_answers_and_no_controls(open_modules):
    page = open_modules("core/dom.js", "sheet/paper.js")
    apply_styles(page, "sheet/sheet.css", "sheet/paper.css")
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


def test_a_bar_is_visible_in_a_marked_row(open_modules):
    page = open_modules("core/dom.js")
    apply_styles(page, "lab/panel.css")
    page.evaluate(
        """() => document.body.append(atlas.el('div', { class: 'atlas-panel' }, atlas.el('table', {},
      atlas.el('tr', { class: 'marked' }, atlas.el('td', {},
        atlas.el('span', { class: 'bar', style: '--share: 0.5' }, '\u00a0'))))))"""
    )
    for dark in (False, True):
        page.evaluate("(dark) => document.body.classList.toggle('dark', dark)", dark)
        picture = Image.open(io.BytesIO(page.locator(".bar").screenshot(animations="disabled"))).convert("RGB")
        row = np.asarray(picture, int)[8]
        assert np.abs(row[30] - row[110]).max() > 30, "the filled part must differ from the rest"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_smallest_percentages_fit_beside_their_bars(open_modules, width):
    page = open_modules("core/dom.js", "why/question.js", width=width)
    apply_styles(page, "why/question.css")
    page.evaluate(
        """(words) => document.body.append(atlas.el('div', { class: 'atlas-question' },
      atlas.createWhyPicture({ p: 0.5, words }, 'dog')))""",
        WORDS,
    )
    page.add_style_tag(content="body { font-family: var(--atlas-font) }")
    values = page.locator(".bar-row .value")
    assert "0.0003%" in values.all_inner_texts()
    assert values.evaluate_all("(all) => all.every((value) => value.scrollWidth <= value.clientWidth)")
