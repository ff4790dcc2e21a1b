"""An export format or an overlay that is registered in one place works in the browser without further changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.viz.explorer.overlays import OVERLAYS, Overlay
from attention_atlas.viz.export import table
from attention_atlas.viz.export.formats import FORMATS, Format, Scope
from attention_atlas.viz.maps.reduce import View, label_scores, score_map
from attention_atlas.viz.panels.scene import Scene
from bench.made.synthetic import random_trace
from tests.page.browser import no_violations, screenshot
from tests.page.explorer.page import Z_ERROR, choose, download, drawn, show, status

pytestmark = pytest.mark.browser

RAW = Format(
    "application/x-raw",
    "The numbers alone",
    map=Scope(lambda trace, view, shown: shown.values.astype("<f4").tobytes(), lambda data: np.frombuffer(data, "<f4")),
)
COUNT = Format(
    "text/plain",
    "How many tokens",
    trace=Scope(
        lambda trace, selection: f"{len(trace.source_ids)} to {len(trace.target_ids)}".encode(), lambda data: {}
    ),
)


@pytest.mark.long
def test_a_registered_format_has_its_button(open_traces, hand_made_trace, monkeypatch, tmp_path):
    monkeypatch.setitem(FORMATS, "raw", RAW)
    monkeypatch.setitem(FORMATS, "count", COUNT)
    page = open_traces(hand_made_trace)
    names = page.locator(".exports button").all_inner_texts()
    assert names == ["PNG", "SVG", *(name.upper() for name in FORMATS), "Copy link"] and "RAW" in names
    assert page.locator(".exports button", has_text="RAW").get_attribute("title") == "The numbers alone"
    assert download(page, "COUNT", tmp_path) == b"8 to 6"
    page.locator(".thumbnail[data-layer='2'][data-head='1']").click()
    choose(page, "Tokens", "true")
    choose(page, "Heads", "max")
    view = View("cross", 2, 1, combine="max", words=True, predicted=True)
    assert np.array_equal(
        RAW.map.read(download(page, "RAW", tmp_path)), score_map(hand_made_trace, view).values.ravel()
    )
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".count", ".raw"]


def widgets(scene: Scene, view: View):
    """Return values of both signs and far larger than attention weights, different for each head."""
    values = 40 * (scene.trace.maps(view.kind).weights[view.layer, view.head].astype(np.float64) - 0.2)
    return replace(label_scores(values, scene.trace, view, "widgets"), signed=True, additive=True, limits=(-5, 50))


DUMMY = Overlay("Widgets", "How many widgets a cell has.", widgets, kinds=(AttentionKind.CROSS,))


def signed_values(page) -> np.ndarray:
    """Return the values of a signed map on a linear scale, read from its colours and its colour bar."""
    low, *_, high = (float(text.replace("−", "-")) for text in page.locator(".colour-bar span").all_inner_texts())
    assert low == -high
    return (2 * drawn(page)["z"] - 1) * high


def test_a_registered_overlay_is_drawn_with_its_own_scale_unit_and_texts(
    open_traces, hand_made_trace, monkeypatch, tmp_path
):
    monkeypatch.setitem(OVERLAYS, "widgets", DUMMY)
    page = open_traces(hand_made_trace, random_trace(9, 7, layers=3, heads=4))
    plain = drawn(page)
    assert page.locator(".colour-bar .unit").count() == 0
    guide, tip = page.locator(".atlas-explorer .guide"), page.locator(".atlas-explorer .tip")
    about_attention = [guide.inner_text(), tip.inner_text()]
    assert "the model looked at" in about_attention[0] and about_attention[1].startswith("Click a thumbnail")
    choose(page, "Measure", "widgets")
    expect(page.locator(".colour-bar .unit")).to_have_text("widgets")
    assert drawn(page)["heading"] == "Layer 1 · Head 1 · Widgets"
    assert page.inner_text(".reading") == "How many widgets a cell has."
    # The texts about the map describe the overlay. The thumbnails still show attention, and say so.
    assert guide.inner_text().startswith(
        "This map shows “Widgets”, not attention. Each row is still a step of the translation"
    )
    assert (
        tip.inner_text() == f"The thumbnails always show attention, whatever the large map shows. {about_attention[1]}"
    )
    weights = hand_made_trace.cross.weights
    for layer, head in ((0, 0), (2, 3)):
        page.locator(f".thumbnail[data-layer='{layer}'][data-head='{head}']").click()
        expect(page.locator(".reading")).to_contain_text("How many")
        expect(page.locator(".heading-line")).to_contain_text(f"Layer {layer + 1} · Head {head + 1}")
        values, expected = signed_values(page), 40 * (weights[layer, head] - 0.2)
        assert np.abs(values - expected).max() < 100 * Z_ERROR and values.min() < -1 < 1 < values.max()
        assert page.locator(".colour-bar span").all_inner_texts() == ["−50", "−25", "0", "25", "50"]
        assert "-50 to 50".replace("-", "−") in page.locator(".field:has(> span:text-is('Range')) select").inner_text()
        assert drawn(page)["rows"] == plain["rows"]
    assert page.locator(".field:has(> span:text-is('Heads')) select").is_disabled()
    cells = page.locator(".atlas-explorer .detail .cells").bounding_box()
    page.mouse.click(cells["x"] + 2.5 * cells["width"] / 8, cells["y"] + 1.5 * cells["height"] / 6)
    value = float(40 * (weights[2, 3, 1, 2] - 0.2))
    assert status(page).startswith("Pinned: ") and status(page).endswith(" (widgets)")
    number = status(page).removesuffix(" (widgets)").rsplit(": ", 1)[1]
    assert number[0] == ("+" if value > 0 else "−")
    assert float(number.replace("−", "-")) == pytest.approx(value, abs=6e-3)
    _, _, values = table.from_csv(download(page, "CSV", tmp_path).decode())
    assert np.allclose(values, 40 * (weights[2, 3] - 0.2), atol=1e-5)
    assert "widgets" in download(page, "SVG", tmp_path).decode() and download(page, "PNG", tmp_path)[:4] == b"\x89PNG"
    screenshot(page, "overlay-light")
    no_violations(page, ".atlas-explorer")
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    strokes = set(page.locator(".edges path").evaluate_all("paths => paths.map((path) => path.getAttribute('stroke'))"))
    assert page.locator(".head-key span").all_inner_texts() == ["above 0", "below 0"] and len(strokes) == 2
    screenshot(page, "overlay-lines")
    page.keyboard.press("t")
    page.locator(".sentence-row").first.locator(".piece").nth(1).focus()
    numbers = page.locator(".sentence-row").last.locator(".piece small").all_inner_texts()
    assert np.allclose([float(text.replace("−", "-")) for text in numbers], 40 * (weights[2, 3, 1] - 0.2), atol=0.02)
    screenshot(page, "overlay-text")
    page.keyboard.press("m")
    page.keyboard.press("2")  # encoder self-attention, which this overlay does not support
    page.wait_for_function("document.querySelector('.heading-line').textContent === 'Layer 2 · Head 4'")
    assert page.locator(".field:has(> span:text-is('Measure')) select").input_value() == ""
    assert "bright cells" in guide.inner_text() and tip.inner_text() == about_attention[1]
    choose(page, "Measure", "layer_difference")
    page.wait_for_function("document.querySelector('.guide').textContent.includes('Each row is still a source token')")


@pytest.mark.long
def test_the_layer_difference_is_opened_by_key_by_link_and_in_comparisons(open_traces, hand_made_trace):
    other = random_trace(9, 7, layers=3, heads=4)
    page = open_traces(hand_made_trace, other, dark=True)
    page.keyboard.press("o")
    page.wait_for_selector(".colour-bar .unit")

    def expected(trace, layer, head):
        return trace.cross.weights[layer, head] - trace.cross.weights[layer].mean(0)

    assert np.abs(signed_values(page) - expected(hand_made_trace, 0, 0)).max() < 4 * Z_ERROR
    screenshot(page, "overlay-dark")
    page.evaluate(
        "(f) => { location.hash = f; }",
        "text=der+der+%E2%80%A6&direction=de-en&checkpoint=hand-made"
        "&kind=cross&layer=2&head=3&overlay=layer_difference&words=1",
    )
    expect(page.locator(".heading-line")).to_contain_text("Layer 2 · Head 3 · ")
    expect(page.locator(".reading")).not_to_contain_text("…")
    values = signed_values(page)
    assert abs(values.sum(1)).max() < 0.02
    show(page, other)
    page.locator(".segmented button[data-value='compare']").click()
    page.wait_for_function("document.querySelectorAll('.compare-plot .plot').length === 2")
    shapes = page.evaluate("[...document.querySelectorAll('.compare-plot .plot')].map((plot) => plot.height)")
    assert shapes[1] > shapes[0] > 0
    page.keyboard.press("o")
    page.keyboard.press("m")
    page.wait_for_function("document.querySelector('.heading-line').textContent === 'Layer 2 · Head 3'")
    assert page.locator(".colour-bar .unit").count() == 0


def test_a_refused_overlay_is_reported_and_not_requested_again(open_traces, hand_made_trace, monkeypatch):
    views = []

    def refuse(scene: Scene, view: View):
        views.append(view)
        raise Refusal("The sentence is empty.")

    monkeypatch.setitem(OVERLAYS, "refused", Overlay("Refused", "Nothing.", refuse, kinds=(AttentionKind.CROSS,)))
    page = open_traces(hand_made_trace)
    choose(page, "Measure", "refused")
    page.wait_for_function("document.querySelector('.atlas-explorer .status').textContent.includes('empty')")
    for scale in ("sqrt", "log", "linear"):  # each is a redraw
        choose(page, "Scale", scale)
        page.wait_for_timeout(300)
    assert status(page) == "The sentence is empty." and len(views) == 1
    assert page.locator(".atlas-explorer .detail-pane p").filter(has_text="…").count() == 0, "still waiting"
    page.locator(".thumbnail[data-layer='1'][data-head='1']").click()
    page.wait_for_function("document.querySelector('.heading-line').textContent.startsWith('Layer 2 · Head 2')")
    choose(page, "Measure", "")
    page.wait_for_function("document.querySelector('.atlas-explorer .detail .axis-label')")
