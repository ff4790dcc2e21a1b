"""Copying pictures of the page as images, to the clipboard or, where that is not allowed, to a file."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from attention_atlas.viz.theme import COLOURS, HEAD_COLOURS, SCALES
from tests.page.browser import CLIPBOARD, no_violations, open_more, open_tab
from tests.page.explorer.page import drawn

pytestmark = pytest.mark.browser

PAD = 24  # pixels around a picture
READ_CLIPBOARD = """async () => {
  const [item] = await navigator.clipboard.read(), png = await item.getType('image/png');
  const bytes = new Uint8Array(await png.arrayBuffer());
  return btoa([...bytes].map((byte) => String.fromCharCode(byte)).join(''));
}"""
# Remove the clipboard, which pages without HTTPS lack, and record the file that the page offers: [name, base64].
NO_CLIPBOARD = """() => {
  Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true });
  let made = null;
  const { createObjectURL } = URL;
  URL.createObjectURL = (blob) => createObjectURL.call(URL, (made = blob));
  HTMLAnchorElement.prototype.click = async function () {
    const bytes = new Uint8Array(await made.arrayBuffer());
    window.__saved = [this.download, btoa([...bytes].map((byte) => String.fromCharCode(byte)).join(''))];
  };
}"""


def pixels(png: str) -> np.ndarray:
    """Decode a PNG in base64 to uint8 [height, width, 3]."""
    return np.array(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"))


def count_pixels(image: np.ndarray, colour: object) -> int:
    """Count the pixels of a colour ("#rrggbb", or red, green and blue), with a tolerance of 2 of 255."""
    if isinstance(colour, str):
        colour = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(image.astype(int) - np.array(colour)).max(-1) <= 2).sum())


def viridis(values: np.ndarray) -> np.ndarray:
    """Return the colours [..., 3] of values between 0 and 1."""
    steps = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in SCALES["viridis"]])
    return np.stack([np.interp(values * (len(steps) - 1), range(len(steps)), channel) for channel in steps.T], axis=-1)


def save_picture(page: Page, picture: Locator) -> tuple[str, np.ndarray]:
    """Press a picture's copy button where there is no clipboard. Return the file's name and its pixels."""
    page.evaluate("window.__saved = null")
    picture.hover()
    picture.locator(".copy-picture").first.click()
    name, png = page.wait_for_function("window.__saved").json_value()
    expect(page.locator(".atlas-told")).to_contain_text(f"Saved as {name}")
    return name, pixels(png)


@pytest.mark.long
def test_a_map_is_copied_as_it_is_seen(open_traces, hand_made_trace) -> None:
    page = open_traces(hand_made_trace, **CLIPBOARD)
    button = page.locator(".detail-pane .copy-picture")
    expect(button).to_have_css("opacity", "0")
    button.focus()
    expect(button).to_have_css("opacity", "1")
    page.keyboard.press("Enter")
    expect(page.locator(".atlas-told")).to_have_text("Copied as an image: paste it into a slide.")
    image = pixels(page.evaluate(READ_CLIPBOARD))
    detail, cells = (page.locator(f".detail{part}").bounding_box() for part in ("", " .cells"))
    assert image.shape[1] == 2 * (detail["width"] + 2 * PAD) and image.shape[0] > 2 * detail["height"] + 4 * PAD
    z = drawn(page)["z"]
    far = np.abs(viridis(z).reshape(-1, 1, 3) - viridis(z).reshape(1, -1, 3)).max(-1)
    np.fill_diagonal(far, np.inf)
    unique = np.unravel_index(far.min(1).argmax(), z.shape)  # the cell whose colour is farthest from all others
    area = 4 * (cells["width"] / z.shape[1] - 1) * (cells["height"] / z.shape[0] - 1)  # less the lines between cells
    assert count_pixels(image, viridis(z[unique])) == pytest.approx(area, rel=0.06)
    assert count_pixels(image, COLOURS["ink"][0]) > 200, "the title"
    no_violations(page, ".atlas-explorer")

    page.evaluate(NO_CLIPBOARD)
    name, image = save_picture(page, page.locator(".atlas-pane .pictured"))
    assert name == "Cross-attention-3-layers-of-4-heads.png"
    thumbnail = page.locator(".thumbnail[data-layer='0'][data-head='0']").bounding_box()
    assert count_pixels(image, viridis(z[unique])) > 0.8 * 4 * thumbnail["width"] * thumbnail["height"] / z.size


# The words and thumbnails of a picture that its copy button covers.
COVERED = """(picture) => {
  const button = picture.querySelector(":scope > .copy-picture"), box = button.getBoundingClientRect();
  const isBelow = ({ left, right, top, bottom, width }) => width > 1 && left < box.right - 1 && right > box.left + 1
    && top < box.bottom - 2 && bottom > box.top + 2;
  const texts = document.createTreeWalker(picture, NodeFilter.SHOW_TEXT), covered = [];
  for (let text; (text = texts.nextNode());) {
    const range = document.createRange(), owner = text.parentElement;
    range.selectNodeContents(text);
    if (text.data.trim() && owner.checkVisibility({ opacityProperty: true }) && !owner.closest(".copy-picture")
      && [...range.getClientRects()].some(isBelow)) covered.push(text.data);
  }
  for (const cell of picture.querySelectorAll(".thumbnail"))
    if (cell.checkVisibility() && isBelow(cell.getBoundingClientRect())) covered.push(cell.ariaLabel);
  return [...new Set(covered)];
}"""


def test_the_copy_button_covers_no_part_of_its_picture(app_url, open_page) -> None:
    page = open_page(app_url)
    page.wait_for_selector(".atlas-explorer .thumbnail canvas")
    for pane in (".switched", ".atlas-pane"):
        assert page.locator(f"{pane} > .pictured").evaluate(COVERED) == []
    page.locator("#tab-stepper-button").click()
    first = page.locator(".atlas-stepper .candidate").first
    first.hover()
    assert page.locator(".next-token > .pictured").evaluate(COVERED) == []
    others = page.locator(".atlas-stepper .others .token")
    assert others.evaluate("words => words.scrollWidth <= words.clientWidth"), "words are cut"
    page.locator("#tab-inside-button").click()
    open_tab(page, "Masks", "#inside-tabs")
    mask = page.locator("#panel-masks .pictured", has=page.locator(".heatmap")).first
    mask.hover()
    assert mask.evaluate(COVERED) == []


@pytest.mark.long
def test_pictures_of_every_tab_can_be_saved(tiny_url, open_page) -> None:
    page = open_page(tiny_url, dark=True)
    page.wait_for_selector(".atlas-explorer .thumbnail canvas")
    page.evaluate(NO_CLIPBOARD)
    open_tab(page, "Step by step")
    expect(page.locator(".atlas-stepper .counter")).to_contain_text("Step 1")
    name, image = save_picture(page, page.locator(".atlas-stepper .reading-pane .pictured"))
    assert name.startswith("What-this-step-reads-Step-1-of-")
    assert count_pixels(image, COLOURS["paper"][1]) > image.shape[0] * image.shape[1] / 4, "dark, as it is seen"
    open_more(page, "Curves")
    figure = page.locator("#panel-position-curves .pictured", has=page.locator(".figure .main-svg")).first
    figure.wait_for()
    name, image = save_picture(page, figure)
    assert count_pixels(image, HEAD_COLOURS[0]) > 300, "a curve"
    assert count_pixels(image, COLOURS["paper"][1]) > image.shape[0] * image.shape[1] / 2
    page.locator("#tab-inside-button").click()
    whole = page.locator(".atlas-panel .pictured", has=page.locator(".inside[data-busy=false][data-moving=false]"))
    whole.wait_for()
    name, image = save_picture(page, whole)
    assert name == "Whole-model.png"
    assert image.shape[1] > 2 * whole.locator("canvas").bounding_box()["width"]
    assert count_pixels(image, COLOURS["paper"][1]) > image.shape[0] * image.shape[1] / 4
