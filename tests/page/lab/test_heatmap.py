"""Small matrices of the panels on an empty page: pointer and arrow keys read the values that Python sent."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from attention_atlas.viz.assets import WEB
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import for_page

pytestmark = pytest.mark.browser

VALUES = np.array([[0.5, -1.25, np.nan], [3e-7, 0.0, 2.0]])

PANEL = "{ describePicture: (title) => ({ title: () => title, caption: () => '' }) }"


@pytest.fixture()
def page(open_modules):
    page = open_modules("core/dom.js", "lab/maps.js", "lab/heads.js")
    for name in ("core/base.css", "lab/panel.css"):
        page.add_style_tag(path=WEB / name)
    page.evaluate("document.body.className = 'atlas-root atlas-panel'")
    return page


def test_row_names_of_a_grid_are_whole_and_its_columns_aligned(page) -> None:
    cells = [{"value": 0.5, "text": "+0.50", "name": "of a head"}] * 2
    grid = {
        "name": "grid",
        "columns": ["1", "2"],
        "rows": [{"label": label, "cells": cells} for label in ("a", "Schicht 12")],
    }
    page.evaluate(
        """(grid) => document.body.append(atlas.el("div", { class: "heads" },
        atlas.drawGrid(grid, () => {}).root))""",
        grid,
    )
    labels = page.locator(".heading.row").evaluate_all(
        "(all) => all.map((node) => node.scrollWidth <= node.clientWidth)"
    )
    assert labels == [True, True]
    lefts = page.locator(".cell:first-of-type, .heading.row + .cell").evaluate_all(
        "(all) => all.map((cell) => cell.getBoundingClientRect().left)"
    )
    assert len(lefts) == 2 and lefts[0] == lefts[1]


def test_arrow_keys_and_the_pointer_read_every_number(page) -> None:
    heatmap = blocks.heatmap(VALUES, "title", rows=("<b>", "b"), columns=("x", "y", "z"), note="a note")
    page.evaluate(f"(block) => document.body.append(atlas.maps(block, [], {PANEL}))", for_page(blocks.maps(heatmap)))
    canvas, reading = page.locator("canvas"), page.locator("output")
    expect(reading).to_have_text("a note")
    canvas.focus()
    readings = {
        (0, 0): "<b>, x: 0.5",
        (0, 1): "<b>, y: −1.25",
        (0, 2): "<b>, z: masked",
        (1, 2): "b, z: 2",
        (1, 1): "b, y: 0",
        (1, 0): "b, x: 3·10⁻⁷",
    }
    for key, words in zip(("Right", "Right", "Right", "Down", "Left", "Left"), readings.values()):
        page.keyboard.press(f"Arrow{key}")  # the first key press selects the first cell
        expect(reading).to_have_text(words)
    page.keyboard.press("ArrowLeft")
    expect(reading).to_have_text(readings[1, 0])  # the edge
    canvas.blur()
    expect(reading).to_have_text("a note")
    box = canvas.bounding_box()
    for (row, column), words in readings.items():
        page.mouse.move(box["x"] + box["width"] * (column + 0.5) / 3, box["y"] + box["height"] * (row + 0.5) / 2)
        expect(reading).to_have_text(words)
