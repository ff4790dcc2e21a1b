"""The explorer's exports, links, history, long inputs, touch and accessibility, in a real browser."""

from __future__ import annotations

from itertools import pairwise
from urllib.parse import urlparse

import numpy as np
import pytest
from playwright.sync_api import expect

from attention_atlas.model.trace import storage
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz.export import table
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.reduce import View, score_map
from attention_atlas.viz.wire.payload import payload
from bench.made.synthetic import random_trace
from tests.page.browser import no_violations, screenshot, use_modules
from tests.page.explorer.page import KEYS, SHOWN, Z_ERROR, choose, download, drawn, show, status, view_options
from tests.viz.export.test_export import assert_equal

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_every_view_is_exported_as_png_and_svg(open_traces, hand_made_trace, tmp_path):
    page = open_traces(hand_made_trace)
    for key in "mltc":
        page.keyboard.press(key)
        assert download(page, "PNG", tmp_path).startswith(b"\x89PNG")
        assert b"<svg" in download(page, "SVG", tmp_path)[:200]


def test_exports_contain_the_exact_weights(open_traces, open_page, hand_made_trace, tmp_path):
    page = open_traces(hand_made_trace)

    def downloaded(name: str) -> bytes:
        return download(page, name, tmp_path)

    assert_equal(storage.from_json(downloaded("JSON").decode()), hand_made_trace)
    assert_equal(storage.from_npz(downloaded("NPZ")), hand_made_trace)
    rows, columns, values = table.from_csv(downloaded("CSV").decode())
    assert np.array_equal(values, hand_made_trace.cross.weights[0, 0])
    assert list(rows) == labels.row_names(hand_made_trace, AttentionKind.CROSS)
    assert columns == tuple(map(labels.display, hand_made_trace.source_tokens))
    choose(page, "Colours", "greys")
    page.keyboard.press("w")
    downloaded("HTML")
    alone, requests = open_page("about:blank"), []
    alone.on("request", lambda request: requests.append(request.url))
    alone.goto(next(tmp_path.glob("*.html")).as_uri())
    alone.wait_for_selector(".detail .plot")
    fields = [alone.locator(f".field:has(> span:text-is('{label}')) select") for label in ("Colours", "Tokens")]
    assert [field.input_value() for field in fields] == ["greys", "true"], "the file keeps the view"
    alone.keyboard.press("w")
    for kind, layer, head in ((AttentionKind.CROSS, 2, 3), (AttentionKind.ENCODER_SELF, 1, 0)):
        alone.keyboard.press(KEYS[kind])
        alone.locator(f".thumbnail[data-layer='{layer}'][data-head='{head}']").click()
        _, _, values = table.from_csv(download(alone, "CSV", tmp_path).decode())
        assert np.array_equal(values.astype(np.float32), hand_made_trace.maps(kind).weights[layer, head])
    assert alone.locator("h1 img").count() == 0
    assert not [url for url in requests if url.startswith(("http", "ws"))]


@pytest.mark.long
def test_a_copied_link_restores_the_view_and_has_no_text_in_its_query(open_traces, hand_made_trace):
    other = random_trace(9, 7, layers=3, heads=4)
    page = open_traces(hand_made_trace, other)
    # Headless Chromium stops painting while its clipboard is in use: catch the text instead.
    page.evaluate("""() => Object.defineProperty(navigator, 'clipboard', {
      value: { writeText: async (text) => { window.__copied = text; } } })""")
    page.locator(".thumbnail[data-layer='2'][data-head='1']").click()
    page.locator(".thumbnail[data-layer='1'][data-head='3']").click(modifiers=["Shift"])
    for label, value in (
        ("Scale", "log"),
        ("Colours", "cividis"),
        ("Special tokens", "renormalise"),
        ("Rows", "false"),
    ):
        choose(page, label, value)
    expected = drawn(page)
    page.locator(".exports button", has_text="Copy link").click()
    page.locator(".atlas-explorer .status", has_text="Link copied").wait_for()
    address = urlparse(page.evaluate("window.__copied"))
    assert hand_made_trace.source_text not in address.query
    use_modules(page, "explorer/state.js")
    link = page.evaluate("(fragment) => atlas.parseFragment('#' + fragment)", address.fragment)
    state = link["state"]
    assert link["text"] == hand_made_trace.source_text and sorted(state["heads"]) == [[1, 3], [2, 1]]
    names = ("kind", "combine", "transform", "colours", "special")
    assert [state[name] for name in names] == ["cross", "mean", "log", "cividis", "renormalise"]
    assert state["predicted"]["cross"] is False
    show(page, other)
    page.evaluate("(fragment) => { location.hash = fragment; }", address.fragment)
    fresh = open_traces(other, hand_made_trace, fragment=f"#{address.fragment}")  # a new page, opened by the link
    for opened in (page, fresh):
        expect(opened.locator(".heading-line")).to_have_text(expected["heading"])
        expect(opened.locator(".detail .axis-label.row")).to_have_count(len(expected["rows"]))
        plot = drawn(opened)
        assert np.allclose(plot["z"], expected["z"]) and plot["rows"] == expected["rows"]
        assert opened.locator(".colour-bar span").first.inner_text() == "≤ 0.0001"


@pytest.mark.long
def test_sentences_are_compared_and_the_history_is_bounded(open_traces, hand_made_trace):
    traces = [hand_made_trace, *(random_trace(6 + i, 5 + i, layers=3, heads=4, seed=i) for i in range(7))]
    page = open_traces(*traces)
    page.keyboard.press("c")
    assert "Translate a second sentence" in page.inner_text(".compare-body")
    for i in range(1, 8):
        show(page, traces[i])
        expect(page.locator(SHOWN)).to_have_text(labels.shorten(traces[i].source_text, 60))
    assert page.locator(".field.history select option").count() == 6
    shapes = page.evaluate("[...document.querySelectorAll('.compare-plot .plot')].map((plot) => plot.height)")
    assert shapes == [len(traces[6].target_ids), len(traces[7].target_ids)]
    page.locator(".segmented button", has_text="Sentences").click()
    assert page.locator(".compare-row").count() == 6 and page.locator(".compare-row .thumbnail").count() == 24
    assert page.locator(".compare-row .heading").all_inner_texts() == ["H1", "H2", "H3", "H4"] * 6
    boxes = page.locator(".compare-row .thumbnail").evaluate_all(
        "(all) => all.map((thumbnail) => thumbnail.getBoundingClientRect())"
    )
    assert all(right["left"] - left["right"] >= 3 for left, right in pairwise(boxes[:4]))
    canvas = page.locator(".compare-row canvas").first
    assert canvas.evaluate("(node) => getComputedStyle(node).imageRendering") == "pixelated"
    edge = canvas.locator("..").evaluate("(node) => getComputedStyle(node).outlineColor")
    assert edge not in ("rgba(0, 0, 0, 0)", "rgb(255, 255, 255)"), "the frame must be visible around white cells"
    view_options(page)
    page.locator(".field.history select").select_option(index=5)
    page.keyboard.press("m")
    assert drawn(page)["z"].shape == (len(traces[2].target_ids), len(traces[2].source_ids))


@pytest.mark.long
def test_long_inputs_load_their_layers_on_demand(open_traces):
    trace = random_trace(128, 128, layers=3)
    other = random_trace(90, 110, layers=3, seed=1)
    page = open_traces(trace, other)
    assert payload(trace)["lazy"]
    page.locator(".thumbnail[data-layer='2'][data-head='5']").click()
    expect(page.locator(".heading-line")).to_have_text("Layer 3 · Head 6")
    page.wait_for_function("document.querySelector('.detail .plot')?.height === 128")
    assert np.abs(drawn(page)["z"] - trace.cross.weights[2, 5]).max() < Z_ERROR
    named, last = page.locator(".detail .axis-label.column"), labels.display(trace.source_tokens[-1])
    assert named.count() <= 40 and named.last.inner_text() == labels.shorten(last), "thinned, but for the last"
    choose(page, "Heads", "rollout")
    page.wait_for_function("document.querySelector('.detail .plot')?.width === 256")
    expected = score_map(trace, View("cross", 2, 5, combine="rollout")).values
    assert np.abs(drawn(page)["z"] - expected).max() < Z_ERROR
    assert page.locator(".axis-label.row").count() <= 40
    page.keyboard.press(KEYS[AttentionKind.ENCODER_SELF])  # its thumbnails are loaded later
    painted = """(within) => [...document.querySelectorAll(`${within} .thumbnail canvas`)].every((canvas) => {
      const { width, height } = canvas, data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
      return width >= 40 && data.every((value, i) => i % 4 < 3 || value === 255);
    })"""
    page.wait_for_function(painted, arg=".thumbnails")
    show(page, other)
    page.locator(".thumbnails .thumbnail").first.press("3")
    page.locator(".thumbnails .thumbnail").first.press("c")
    page.locator(".segmented button", has_text="Sentences").click()
    assert page.locator(".compare-body .thumbnail").count() == 16
    page.wait_for_function(painted, arg=".compare-body")  # of both sentences


@pytest.mark.parametrize("dark", [pytest.param(False, marks=pytest.mark.endure), True])
def test_every_view_is_accessible(open_traces, hand_made_trace, dark):
    other = random_trace(7, 6, layers=3, heads=4)
    page = open_traces(hand_made_trace, other, dark=dark)
    show(page, other)
    page.evaluate("document.activeElement.blur()")  # the explorer ignores keys pressed on other parts' buttons
    for key, part in (("m", ".detail .cells"), ("l", ".line-token"), ("t", ".piece"), ("c", ".compare-plot .plot")):
        page.keyboard.press(key)
        page.locator(f".atlas-explorer {part}").first.wait_for()
        no_violations(page, ".atlas-explorer")
    page.keyboard.press("?")
    page.locator("dialog.help").wait_for()
    no_violations(page, "dialog.help")


def test_the_explorer_works_by_touch_on_a_phone(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace, width=390, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".thumbnail[data-layer='1'][data-head='2']").tap()
    assert drawn(page)["heading"] == "Layer 2 · Head 3"
    page.locator(".head-chip[data-at='1.0']").tap()
    assert drawn(page)["heading"] == "Mean of 2 chosen heads"
    page.locator(".detail .cells").scroll_into_view_if_needed()
    box = page.locator(".detail .cells").bounding_box()
    page.touchscreen.tap(box["x"] + 5, box["y"] + 5)
    assert status(page).startswith("Pinned: ")
    screenshot(page, "explorer-hostile-390")


def test_copy_buttons_have_names_and_a_turned_label_begins_above_the_middle_of_its_column(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace, width=390)
    copies = page.locator(".copy-picture").evaluate_all("all => all.map((button) => button.ariaLabel)")
    names = ("What each word attends to", "All heads", "Selected head")
    assert {*copies[:3]} == {f"Copy as image: {name}" for name in names}
    off = page.evaluate("""() => [...document.querySelectorAll(".detail .axis-label.turned")].map((label) => {
      const { left } = label.getBoundingClientRect(), frame = label.parentElement.getBoundingClientRect();
      const corner = (label.offsetHeight / 2) * Math.sin((-parseFloat(label.style.rotate) * Math.PI) / 180);
      return left + corner - frame.left - parseFloat(label.style.left);
    })""")
    assert len(off) > 3 and max(map(abs, off)) < 1, off


# The room before the first word and after the last word of each sentence, in pixels.
ENDS = """all => all.map(({ firstChild, lastChild, parentElement }) => [firstChild.offsetLeft,
  parentElement.offsetWidth - lastChild.offsetLeft - lastChild.offsetWidth])"""


def test_every_word_of_a_long_sentence_can_be_scrolled_to_and_a_short_one_is_spread_along_it(open_traces):
    """Centred in a line that is too narrow, the first words would begin left of the scrollable area. Centred below a
    long sentence, a short one would be out of sight."""
    page = open_traces(random_trace(24, 22, layers=3, heads=4), width=390)
    ends = page.locator(".sentence-lines .words").evaluate_all(ENDS)
    assert len(ends) == 2 and all(before >= 0 and after >= -1 for before, after in ends), ends
    show(page, random_trace(4, 40, layers=3, heads=4))
    expect(page.locator(".sentence-lines .words").last).to_contain_text("word38")
    ends = page.locator(".sentence-lines .words").evaluate_all(ENDS)
    assert page.locator(".sentence-lines .sheet").evaluate("node => node.offsetWidth > node.parentElement.clientWidth")
    assert np.allclose(ends, [[ends[0][0], 0]] * 2, atol=1), ends
