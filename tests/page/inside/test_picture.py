"""The picture of the whole model in a real browser: opening and closing, the page's selection, links, keys and Play."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.trace.kinds import AttentionKind
from tests.page.browser import load_modules, no_faults, open_tab, submit, use_modules

pytestmark = pytest.mark.browser

TEXT = "Der kleine Hund schläft unter dem Tisch."
LINK = "#text=Der+kleine+Hund+schläft+unter+dem+Tisch.&direction=de-en&tab=inside&panel=map"


def at(page: Page, place: str) -> None:
    """Wait until the picture shows a place and stands still."""
    inside = page.locator(".inside")
    expect(inside).to_have_attribute("data-place", place)
    expect(inside).to_have_attribute("data-moving", "false")
    expect(inside).to_have_attribute("data-busy", "false")


def click(page: Page, part: str) -> None:
    """Open a part by its name in the list beside the canvas."""
    details = page.locator(".inside .list")
    if details.get_attribute("open") is None:
        details.locator("summary").click()
    details.get_by_role("button", name=re.compile(part)).first.click()


@pytest.fixture()
def picture(tiny_url, open_page):
    """Return open(fields of a link) -> page."""

    def open_link(fields: str = "", **options) -> Page:
        page = open_page(tiny_url + LINK + fields, **options)
        page.wait_for_selector(".inside canvas")
        return page

    return open_link


def test_a_stage_opens_and_back_escape_and_the_breadcrumb_close_it(picture):
    page = picture()
    at(page, "")
    click(page, "Decoder layer 2")
    at(page, "dec2.cross")
    click(page, "head 3")
    at(page, "dec2.cross.h3")
    assert "inside=dec2.cross.h3" in page.url
    page.go_back()
    at(page, "dec2.cross")
    page.go_back()
    at(page, "")
    page.go_forward()
    at(page, "dec2.cross")
    page.locator(".inside .scene").press("Escape")
    at(page, "")
    click(page, "Next word")
    at(page, "out")
    page.locator(".inside .crumbs").get_by_role("button", name="Whole model").click()
    at(page, "")


def test_a_link_to_a_cell_shows_the_figures_of_the_models_pass(picture, tiny_translator):
    page = picture("&inside=dec2.cross.h3&cell=3,4")
    at(page, "dec2.cross.h3")
    trace = tiny_translator.translate(TEXT, "de-en")
    record = tiny_translator.inspect(trace.source_ids, trace.target_ids).attention(AttentionKind.CROSS, 1)
    q, k = (part[0, 2].double().numpy() for part in (record.queries[:, :, 2], record.keys[:, :, 3]))
    figures = page.locator(".inside .figures").first
    products = [float(text.replace("−", "-")) for text in figures.locator(".products li").all_inner_texts()]
    np.testing.assert_allclose(products, q * k, atol=0.006)
    expect(figures).to_contain_text(f"= {q @ k:.3f}".replace("-", "−"))
    expect(figures).to_contain_text(f"= {float(record.weights[0, 2, 2, 3]):.4f}")
    expect(page.locator(".inside .step")).to_contain_text("word 3 of")  # the cell's query is pinned
    page.locator(".inside .follow").click()
    expect(page.locator(".inside .figures").last).to_contain_text("the other")
    click_rows = page.locator(".inside .list")
    click_rows.locator("summary").click()
    cells = click_rows.locator("tbody tr").nth(3).locator("td").all_inner_texts()
    assert float(cells[-1]) == pytest.approx(float(record.weights[0, 2, 2, 3]), abs=1e-5)


def test_a_link_to_a_cell_pins_its_word_while_the_picture_is_open(picture):
    page = picture()
    at(page, "")
    for cell, word in (("3,4", 3), ("2,1", 2)):
        page.evaluate("(hash) => (location.hash = hash)", f"{LINK}&inside=dec2.cross.h3&cell={cell}")
        at(page, "dec2.cross.h3")
        expect(page.locator(".inside .step")).to_contain_text(f"word {word} of")
        expect(page.locator(".inside .figures").first).to_be_visible()


def test_layer_and_head_are_the_pages_selection_in_both_directions(picture):
    page = picture("&inside=dec2.cross.h3")
    at(page, "dec2.cross.h3")
    open_tab(page, "Attention")
    heading = page.locator(".atlas-explorer .heading-line")
    expect(heading).to_have_text("Layer 2 · Head 3")
    use_modules(page, "core/links.js")
    page.evaluate("atlas.tabOpeners.explorer({ kind: 'encoder_self', layer: 1, head: 0 })")
    expect(heading).to_have_text("Layer 2 · Head 1")
    open_tab(page, "Inside")
    at(page, "enc2.self.h1")


def test_the_step_is_the_pinned_word(picture):
    page = picture("&inside=out")
    at(page, "out")
    slider = page.locator(".inside input[type=range]")
    for word in ("1", "2"):
        slider.fill(word)
        expect(page.locator(".inside .step")).to_contain_text(f"word {word} of")
    use_modules(page, "store/store.js", "store/question.js")
    page.wait_for_function("atlas.store.state.pinned === 1")
    page.evaluate("atlas.pin(0)")
    expect(page.locator(".inside .step")).to_contain_text("word 1 of")
    at(page, "out")


def test_the_output_is_ten_tokens_and_all_others(picture, tiny_translator):
    page = picture("&inside=out")
    at(page, "out")
    page.locator(".inside .list summary").click()
    rows = page.locator(".inside .list tbody tr")
    expect(rows).to_have_count(11)
    shares = [float(row.locator("td").last.inner_text()) for row in rows.all()]
    assert sum(shares) == pytest.approx(1, abs=1e-4)


def test_the_keyboard_walks_stages_heads_and_cells(picture):
    page = picture()
    at(page, "")
    scene, status = page.locator(".inside .scene"), page.locator(".inside .status")
    scene.press("ArrowRight")
    expect(status).to_have_text("Words.")
    scene.press("ArrowRight")
    scene.press("ArrowRight")
    expect(status).to_contain_text("Encoder layer 1")
    scene.press("Enter")
    at(page, "enc1.self")
    scene.press("ArrowRight")
    expect(status).to_contain_text("head 2")
    scene.press("Enter")
    at(page, "enc1.self.h2")
    scene.press("ArrowDown")
    expect(status).to_contain_text("softmax, ")
    scene.press("Escape")
    scene.press("Escape")
    at(page, "enc1.self")
    assert page.locator(".inside [tabindex='0']").count() == 1


# Keep the caption and the place of each beat of Play.
RECORD_BEATS = """() => {
  window.beats = [];
  const root = document.querySelector('.inside');
  new MutationObserver(() => {
    const number = parseInt(root.querySelector('.count')?.textContent);
    if (number) window.beats[number - 1] = [root.querySelector('.caption').textContent, root.dataset.place];
  }).observe(root, {subtree: true, childList: true, characterData: true, attributes: true});
}"""


@pytest.mark.long
def test_play_walks_through_the_stages_in_short_sentences(picture):
    page = picture()
    at(page, "")
    page.evaluate(RECORD_BEATS)
    page.locator(".inside .player").get_by_role("button", name="Play").click()
    count = page.locator(".inside .player .count")
    expect(count).to_contain_text("/ 10")
    expect(count).to_have_text("10 / 10", timeout=60_000)
    captions, places = zip(*page.evaluate("beats"))
    assert len(set(captions)) == 10 and max(len(caption.split()) for caption in captions) <= 20
    assert len(set(places)) == 3, "the model, a layer and a head"
    player = page.locator(".inside .player")
    player.get_by_role("button", name="Back").click()
    expect(count).to_have_text("9 / 10")
    player.get_by_role("button", name="Stop following").click()
    expect(count).to_have_count(0)
    player.get_by_role("button", name="Play").click()
    player.get_by_role("button", name="Pause").click()
    stopped = count.inner_text()
    page.wait_for_timeout(1500)
    expect(count).to_have_text(stopped)


def test_a_later_sentence_replaces_the_picture_and_keeps_the_place(picture):
    page = picture("&inside=enc1.ff")
    at(page, "enc1.ff")
    submit(page, "Der Hund.")
    expect(page.locator(".inside .step")).not_to_contain_text("of 0")
    at(page, "enc1.ff")


def test_long_texts_show_a_window_of_keys(picture, tiny_url, open_page):
    text = "+".join(["Der+kleine+Hund+schläft"] * 3)
    page = open_page(f"{tiny_url}#text={text}&direction=de-en&tab=inside&panel=map&inside=dec1.cross.h1")
    page.wait_for_selector(".inside canvas")
    at(page, "dec1.cross.h1")
    window = page.locator(".inside .window")
    expect(window).to_contain_text(re.compile(r"keys \d+ to \d+ of \d+"))
    before = window.inner_text()
    window.get_by_role("button", disabled=False).first.click()
    expect(window).not_to_have_text(before)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_picture_has_no_faults(picture, width):
    page = picture("&inside=dec2.cross.h3&cell=2,2", width=width)
    at(page, "dec2.cross.h3")
    page.locator(".inside .list summary").click()
    no_faults(page, "#panel-map", name=f"inside-{width}")


def test_places_and_cells_are_read_as_links_name_them(open_page):
    page = open_page("about:blank")
    load_modules(page, "inside/place.js")
    page.evaluate("""() => {
      const side = (layers, heads, parts) => ({ layers, heads, parts });
      window.model = { sides: {
        encoder: side(2, 4, ["self_attention", "feed_forward"]),
        decoder: side(3, 4, ["self_attention", "cross_attention", "feed_forward"]),
      } };
    }""")
    read = "(text) => atlas.formatPlace(atlas.parsePlace(text, model))"
    for text, place in {
        "dec3.cross.h4": "dec3.cross.h4",
        "enc2": "enc2.self",
        "dec1": "dec1.cross",
        "dec2.ff.h1": "dec2.ff",
        "dec2.self.h9": "dec2.self",
        "out": "out",
        "enc3": "",
        "enc1.cross": "",
        "kitchen": "",
        "": "",
    }.items():
        assert page.evaluate(read, text) == place, text
    assert page.evaluate("atlas.parseCell('4,2')") == [3, 1]
    assert page.evaluate("['0,1', '1', 'a,b', null].map(atlas.parseCell)") == [None] * 4
