"""The explorer in a real browser, over a hand-made trace with hostile tokens and over a shipped checkpoint."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from playwright.sync_api import expect

from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.viz.maps import labels
from attention_atlas.viz.maps.reduce import View, score_map
from tests.page.explorer.page import KEYS, Z_ERROR, choose, drawn, status, wait_for_selection

pytestmark = pytest.mark.browser


def test_every_map_on_the_page_equals_the_trace(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    for kind in TRANSFORMER_KINDS:
        page.keyboard.press(KEYS[kind])
        maps = hand_made_trace.maps(kind)
        assert page.locator(".atlas-explorer .thumbnails .thumbnail").count() == maps.num_layers * maps.num_heads
        for layer, head in product(range(maps.num_layers), range(maps.num_heads)):
            page.locator(f".thumbnail[data-layer='{layer}'][data-head='{head}']").click()
            plot = drawn(page)
            assert np.abs(plot["z"] - maps.weights[layer, head]).max() < Z_ERROR
            assert plot["heading"] == f"Layer {layer + 1} · Head {head + 1}"
        both = kind is not AttentionKind.ENCODER_SELF
        tokens = zip(maps.query_tokens, hand_made_trace.target_tokens) if both else zip(maps.query_tokens)
        expected = [
            " → ".join(labels.shorten(labels.display(token), 12 if both else 18) for token in row) for row in tokens
        ]
        assert plot["rows"] == expected
        title = "query: the token it reads → writes" if both else "query: source token"
        assert page.inner_text(".axis-label.row-title") == title
        assert plot["columns"] == [labels.shorten(labels.display(token)) for token in maps.key_tokens]
        for layer, head in ((0, 0), (1, 3)):
            canvas = page.locator(f".thumbnail[data-layer='{layer}'][data-head='{head}'] canvas")
            height, width, shades = canvas.evaluate(
                "(c) => [c.height, c.width, [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]]"
            )
            green = np.array(shades).reshape(height, width, 4)[..., 1]  # rises steadily along viridis
            weights = maps.weights[layer, head]
            order = np.argsort(weights, axis=None)
            assert green.shape == weights.shape and (np.diff(green.ravel()[order].astype(int)) >= -1).all()


def test_every_option_draws_the_same_map_as_python(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    page.locator(".thumbnail[data-layer='1'][data-head='2']").click()
    for combine, words, special, predicted in (
        ("single", True, "show", False),
        ("mean", False, "hide", True),
        ("max", True, "hide", True),
        ("rollout", False, "renormalise", False),
        ("rollout", True, "show", True),
        ("single", False, "renormalise", False),
    ):
        tokens, by = "whole words" if words else "subwords", f"the token it {'writes' if predicted else 'reads'}"
        for label, value in (("Heads", combine), ("Tokens", tokens), ("Special tokens", special), ("Rows", by)):
            choose(page, label, value)
        view = View("cross", 1, 2, combine=combine, words=words, special=special, predicted=predicted)
        expected, plot = score_map(hand_made_trace, view), drawn(page)
        assert np.allclose(plot["z"], expected.values, atol=Z_ERROR, equal_nan=True)
        assert plot["rows"] == [labels.shorten(label) for label in expected.rows]
        reading = page.inner_text(".atlas-explorer .reading")
        if combine != "single":
            assert expected.unit in reading
        if expected.hidden is not None:
            assert f"{100 * expected.hidden:.1f}% of the weight is on" in page.inner_text(".atlas-explorer .share")
        assert page.inner_text(".axis-label.row-title") == f"query: {by}"
    for value, ticks in (
        ("log", ["≤ 0.0001", "0.001", "0.01", "0.1", "1"]),
        ("sqrt", ["0", "0.05", "0.2", "0.5", "1"]),
    ):
        choose(page, "Scale", value)
        assert page.locator(".colour-bar span").all_inner_texts() == ticks
    choose(page, "Scale", "linear")
    choose(page, "Range", "own")
    assert float(page.locator(".colour-bar span").last.inner_text()) == pytest.approx(np.nanmax(plot["z"]), abs=6e-3)


def test_pointing_and_pinning_update_the_status_line(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    cells = ".atlas-explorer .detail .cells"
    page.wait_for_selector(cells)
    weights = hand_made_trace.cross.weights

    def at(row: int, column: int) -> tuple[float, float]:
        # Measure each time, because a click may scroll the page; in one call, because a new width replaces the cells.
        box = page.evaluate(f"document.querySelector('{cells}').getBoundingClientRect().toJSON()")
        return box["x"] + (column + 0.5) * box["width"] / 8, box["y"] + (row + 0.5) * box["height"] / 6

    page.mouse.move(*at(2, 3))
    assert status(page).startswith("reads ▁the → writes </b> · <img src=x onerror=alert(1)>: ")
    assert float(status(page).rsplit(": ", 1)[1]) == pytest.approx(weights[0, 0, 2, 3], abs=6e-4)
    page.mouse.click(*at(4, 5))
    page.mouse.move(5, 5)
    assert status(page).startswith("Pinned: reads ▁שלום → writes {{value}} · &amp;: ")
    page.locator(".thumbnail[data-layer='2'][data-head='3']").click()
    assert float(status(page).rsplit(": ", 1)[1]) == pytest.approx(weights[2, 3, 4, 5], abs=6e-4)
    assert page.locator(".mark.pinned").count() == 3
    wait_for_selection(page, kind="cross", layer=2, head=3, query=4, key=5)
    page.keyboard.press("Escape")
    assert page.locator(".mark.pinned").count() == 0
    page.mouse.click(at(3, -0.5)[0] - 20, at(3, 0)[1])  # a row's label
    assert status(page).startswith("Pinned: reads </b> → writes ▁שלום: attends to")
    page.mouse.click(at(0, 6)[0], at(-0.5, 6)[1] - 12)  # a column's label
    assert "gets most from" in status(page)


def test_the_explorer_works_by_keyboard(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    press = page.keyboard.press
    press("a")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        press(key)
    assert drawn(page)["heading"] == "Layer 2 · Head 3"
    assert page.evaluate("document.activeElement.dataset.head") == "2"
    press("2")
    assert drawn(page)["heading"] == "Layer 2 · Head 3" and drawn(page)["z"].shape == (8, 8)
    press("3")
    press("d")
    press("ArrowDown")
    press("ArrowDown")
    press("Enter")
    assert page.locator(".mark.pinned.cell").count() == 1 and "Pinned" in status(page)
    press("Escape")
    for key, expected in (("w", "true"), ("w", "false")):
        press(key)
        assert page.locator(".atlas-explorer .field:has(> span:text-is('Tokens')) select").input_value() == expected
    press("h")
    assert drawn(page)["heading"] == "Mean of all 4 heads of layer 2"
    press("x")
    press("Escape")
    press("l")
    page.wait_for_selector(".atlas-explorer .line-token")
    press("t")
    page.wait_for_selector(".atlas-explorer .piece")
    press("c")
    page.wait_for_selector(".atlas-explorer .compare")
    page.set_viewport_size({"width": 390, "height": 500})
    press("?")
    help_dialog = page.locator("dialog.help")
    assert help_dialog.is_visible() and "▁" in help_dialog.inner_text()
    assert help_dialog.evaluate("(node) => node.scrollTop === 0 && node.scrollHeight > node.clientHeight")
    press("Escape")
    assert not help_dialog.is_visible()
    page.wait_for_function("document.querySelector('.atlas-explorer > .sr-only').textContent.includes('Strongest')")


def test_lines_and_text_show_the_weights(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    press = page.keyboard.press
    press("l")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.querySelector('.lines svg').clientWidth < 390")
    assert page.evaluate("""[...document.querySelectorAll('.lines .caption')].map((title) => {
      const { x, width } = title.getBBox();
      return x >= 0 && x + width <= title.ownerSVGElement.clientWidth + 1; })""") == [True, True]
    page.set_viewport_size({"width": 1280, "height": 900})
    page.wait_for_function("document.querySelector('.lines svg').clientWidth > 390")
    paths = "[...document.querySelectorAll('.edges path')].map((p) => p.getAttribute('d').split('M').length - 1)"
    all_edges = sum(page.evaluate(paths))
    page.locator(".line-token").nth(2).focus()
    assert 0 < sum(page.evaluate(paths)) < all_edges and "writes </b>: attends to" in status(page)
    page.evaluate("document.activeElement.blur()")
    page.locator("#atlas-coverage").evaluate("(n) => { n.value = 100; n.dispatchEvent(new Event('input')); }")
    assert sum(page.evaluate(paths)) == int((hand_made_trace.cross.weights[0, 0] > 1e-20).sum())
    page.locator(".thumbnail[data-layer='1'][data-head='1']").click(modifiers=["Shift"])
    assert page.locator(".head-key span").all_inner_texts() == ["L1 H1", "L2 H2"]
    strokes = page.evaluate("[...document.querySelectorAll('.edges path')].map((p) => p.getAttribute('stroke'))")
    assert len(set(strokes)) == 2
    press("Escape")
    press("t")
    rows = page.locator(".sentence-row").first.locator(".piece")
    names = labels.row_names(hand_made_trace, AttentionKind.CROSS)
    assert rows.evaluate_all("(all) => all.map((row) => row.ariaLabel)") == [f"query {name}" for name in names]
    rows.nth(1).focus()
    keys = page.locator(".sentence-row").last.locator(".piece")
    texts = keys.locator("small").all_inner_texts()
    for text, value in zip(texts, hand_made_trace.cross.weights[0, 0, 1]):
        assert text == ("·" if value < 0.005 else f"{value:.2f}") or abs(float(text) - value) < 6e-3
    reds = keys.evaluate_all(
        "all => all.map((piece) => Number(getComputedStyle(piece).backgroundColor.match(/srgb ([\\d.]+)/)?.[1]))"
    )
    strongest = np.argsort(-hand_made_trace.cross.weights[0, 0, 1])
    assert np.all(np.diff(np.array(reds)[strongest]) >= 0) and min(reds) < 0.9 * max(reds), "the bluer, the more weight"
    assert keys.locator("bdi").all_inner_texts()[3:6] == list(hand_made_trace.source_tokens[3:6])


def test_several_heads_are_one_mean_in_the_map_and_one_colour_each_in_lines(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    heading, guide = page.locator(".heading-line"), page.locator(".atlas-explorer .guide")
    view = {name: page.locator(f".atlas-explorer [data-value={name}]") for name in ("map", "lines", "text")}
    first, second = (page.locator(f".thumbnail[data-layer='{layer}'][data-head='1']") for layer in (0, 1))
    first.click()
    second.click(modifiers=["Shift"])
    expect(heading).to_have_text("Mean of 2 chosen heads")
    expect(guide).to_contain_text("bright cells")
    view["lines"].click()
    expect(heading).to_have_text("2 heads, each in its colour")
    expect(page.locator(".head-key span")).to_have_text(["L1 H2", "L2 H2"])
    expect(guide).to_have_text("The thicker a line, the larger the weight.")
    view["text"].click()
    expect(heading).to_have_text("Mean of 2 chosen heads")
    expect(guide).to_have_text("")
    view["map"].click()
    first.click(modifiers=["Shift"])
    expect(heading).to_have_text("Layer 2 · Head 2")
    page.keyboard.press("Escape")
    page.keyboard.press("x")  # start selecting several heads from the current one
    page.keyboard.press("Shift+ArrowUp")
    expect(heading).to_have_text("Mean of 2 chosen heads")


def test_the_focus_stays_in_the_view_when_the_view_changes(open_traces, hand_made_trace):
    page = open_traces(hand_made_trace)
    focused = "() => document.querySelector('.atlas-explorer .stage').contains(document.activeElement)"
    page.keyboard.press("d")
    assert page.locator(".atlas-explorer .detail").evaluate(
        "(node) => getComputedStyle(node).outlineOffset === '-2px' && node.matches(':focus-visible')"
    ), "the ring around the map would be cut off"
    for key in "ltlm":
        page.keyboard.press(key)
        page.wait_for_function(focused)
    page.keyboard.press("l")
    page.keyboard.press("Tab")
    token = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowDown")  # another layer, whose lines replace these
    page.wait_for_function("() => document.querySelector('.heading-line').textContent.startsWith('Layer 2')")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == token
