"""A map of 1,024 x 1,024 tokens in a real browser: a single bright cell is visible at every zoom."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.viz.export.standalone import to_html
from attention_atlas.viz.panels.scene import Selection
from bench.made.synthetic import random_trace
from tests.page.explorer.page import choose, status

pytestmark = pytest.mark.browser
ROW, COLUMN = 311, 17
# The visible cells, by the places of their labels: left, right, top and bottom.
VISIBLE = """(() => {
  const style = document.querySelector('.large .plot')?.style;
  const range = (kind, side, room) => {
    const places = [...document.querySelectorAll(`.large .axis-label.${kind}`)]
      .filter((label) => /wort/.test(label.textContent))
      .map((label) => [Number(label.textContent.match(/\\d+/)[0]) + 1.5, parseFloat(label.style[side])]);
    if (places.length < 2) return [0, 0];
    const [from, to] = [places[0], places.at(-1)], cell = (to[1] - from[1]) / (to[0] - from[0]);
    const first = from[0] - (from[1] - parseFloat(style[side])) / cell;
    return [first, first + parseFloat(style[room]) / cell];
  };
  return [...range('column', 'left', 'width'), ...range('row', 'top', 'height')];
})()"""


@pytest.fixture(scope="module")
def needle():
    """Return a trace of 1,024 source tokens, one of which attends to a single key; a second sentence begins at 600."""
    trace = random_trace(1024, 12, layers=1, heads=2)
    weights = np.full((1, 2, 1024, 1024), 1 / 1024, np.float32)
    weights[0, 1, ROW] = 0
    weights[0, 1, ROW, COLUMN] = 1
    tokens = tuple(type(t)(f"{t}." if i == 599 else t, t.kind, t.word) for i, t in enumerate(trace.source_tokens))
    cross = AttentionMaps(trace.cross.weights, trace.cross.query_tokens, tokens)
    return replace(trace, source_tokens=tokens, encoder_self=AttentionMaps(weights, tokens, tokens), cross=cross)


def bright(page) -> list[tuple[float, float]]:
    """Return the positions (x, y) of the brightest, yellow pixels, as shares of the picture's width and height."""
    picture = Image.open(io.BytesIO(page.locator(".large .plot").screenshot())).convert("RGB")
    pixels = np.asarray(picture).astype(int)
    rows, columns = np.nonzero((pixels[..., 0] > 200) & (pixels[..., 1] > 200) & (pixels[..., 2] < 90))
    return list(zip((columns + 0.5) / pixels.shape[1], (rows + 0.5) / pixels.shape[0]))


@pytest.mark.long
@pytest.mark.parametrize("turn", [-500, -170])
def test_a_needle_is_visible_at_every_zoom_and_its_value_is_exact(open_traces, needle, turn):
    page = open_traces(needle)
    page.locator(".atlas-explorer .segmented button", has_text="Encoder self").click()
    page.wait_for_function(f"{VISIBLE}[3] > 1000")  # the cross-attention before it has 12 rows
    page.locator(".thumbnail[data-layer='0'][data-head='1']").click()
    # The heading changes at once, but the map of the previous head stays until the new one arrives.
    page.wait_for_function("document.querySelector('.large')?.ariaLabel.endsWith('Head 2')")
    page.locator(".large").focus()
    width = 1024.0
    while width > 24:
        left, right, top, bottom = page.evaluate(VISIBLE)
        width = right - left
        page.mouse.move(4, 4)  # away from the map, which would mark the cell below the pointer
        page.wait_for_timeout(250)
        expected = (COLUMN + 0.5 - left) / width, (ROW + 0.5 - top) / (bottom - top)
        pixels = bright(page)
        assert pixels, f"no bright pixel among {width:.0f} x {bottom - top:.0f} cells"
        assert max(np.abs(np.array(pixels) - expected).max(1)) < 1.5 / width + 0.004
        box = page.locator(".large .plot").bounding_box()
        at = box["x"] + expected[0] * box["width"], box["y"] + expected[1] * box["height"]
        page.mouse.move(*at)
        page.mouse.wheel(0, turn)  # around the pointer
        page.wait_for_function(f"width => {VISIBLE}[1] - {VISIBLE}[0] < width - 1e-3", arg=width)
    page.wait_for_function("document.querySelector('.atlas-explorer .status strong')?.textContent === '1.000'")
    assert f"▁wort{ROW - 1}" in status(page) and f"▁wort{COLUMN - 1}" in status(page)

    left, right, *_ = page.evaluate(VISIBLE)
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"left => {VISIBLE}[0] > left + 1e-3", arg=left)
    moved = page.evaluate(VISIBLE)
    assert moved[1] - moved[0] == pytest.approx(right - left)
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 150, steps=4)
    page.mouse.up()
    page.wait_for_function(f"left => {VISIBLE}[0] > left + 1e-3", arg=moved[0])
    assert page.evaluate(VISIBLE)[2] > moved[2]
    assert page.locator(".large .mark.pinned").count() == 0, "a drag is no click"
    page.keyboard.press("0")
    page.wait_for_function(f"{VISIBLE}[1] > 1000")
    box = page.locator(".large .plot").bounding_box()
    for side, room in (("left", "width"), ("top", "height")):
        ends = page.locator(f".large .bound.{side}").evaluate_all(
            "(all, side) => all.map((i) => parseFloat(i.style[side]))", side
        )
        assert ends == [pytest.approx(box[room] * 600 / 1024, abs=0.1)], "the end of a sentence, on either axis"
    choose(page, "Range", "own")
    assert bright(page)
    page.locator(".atlas-explorer .segmented button", has_text="Decoder self").click()
    page.wait_for_selector(".atlas-explorer .detail:not(.large)")


def test_an_exported_file_of_a_long_text_opens_with_its_large_map(needle, open_page, tmp_path):
    path = tmp_path / "long.html"
    path.write_text(to_html(needle, Selection(AttentionKind.ENCODER_SELF, head=1)), encoding="utf-8")
    page = open_page(path.as_uri())
    page.wait_for_selector(".atlas-explorer .large .plot")
    assert page.locator(".heading-line").inner_text() == "Layer 1 · Head 2"
