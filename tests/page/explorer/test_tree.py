"""The tree of all maps, which the arrow keys walk, and a row as sound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.trace.maps import AttentionMaps
from attention_atlas.viz.maps.reduce import View, score_map
from bench.made.synthetic import random_trace
from tests.page.browser import no_violations
from tests.page.explorer.page import drawn, status, wait_for_selection

pytestmark = pytest.mark.browser

FOCUSED = """() => {
  const item = document.activeElement, read = (name) => item.getAttribute(`aria-${name}`);
  return [item.role, item.textContent, ...["level", "posinset", "setsize", "expanded", "current"].map(read)]; }"""
# An AudioContext that writes down what is scheduled: a frequency for each tone, "off" where the output is taken away.
STUB = """() => {
  window.tones = [];
  const parameter = { setValueAtTime() {}, linearRampToValueAtTime() {} };
  window.AudioContext = class {
    currentTime = 0;
    resume() {}
    createGain() { return { gain: parameter, connect() {}, disconnect: () => window.tones.push("off") }; }
    createOscillator() {
      const frequency = {};
      return { frequency, connect() {}, stop() {}, start: () => window.tones.push(frequency.value) };
    }
  }; }"""
# The frequency and the peak of each of three tones, rendered without a loudspeaker.
RENDER = """async (weights) => {
  const context = new OfflineAudioContext(1, 48000, 48000);
  const end = atlas.scheduleTones(context, context.destination, weights);
  const samples = (await context.startRendering()).getChannelData(0), size = end * 48000 / weights.length;
  return weights.map((_, i) => {
    const part = samples.slice(i * size + 0.25 * size, i * size + 0.65 * size);
    let crossings = 0;
    for (let j = 1; j < part.length; j++) if (part[j - 1] < 0 !== part[j] < 0) crossings++;
    return [(crossings / 2) / (part.length / 48000), Math.max(...part)];
  }); }"""


def open_tree(page: Page) -> None:
    """Open the tree, and go to the item of the selected head."""
    page.locator(".atlas-explorer .walk summary").press("Enter")
    page.locator(".atlas-explorer .tree [role=treeitem]").first.wait_for()
    page.keyboard.press("Tab")


def press(page: Page, *keys: str) -> list[str | None]:
    """Press keys, and return role, text, level, place, size, whether open, and whether current of the focused item."""
    for key in keys:
        page.keyboard.press(key)
    return page.evaluate(FOCUSED)


def test_arrow_keys_walk_from_kinds_to_cells(open_traces, hand_made_trace) -> None:
    page = open_traces(hand_made_trace, fragment="")
    open_tree(page)
    role, text, *about = page.evaluate(FOCUSED)
    assert role == "treeitem" and text.startswith("Head 1") and about == ["3", "1", "4", "false", "true"]
    assert press(page, "Home")[1:] == [
        "Cross-attention: the translation looks at the sentence",
        "1",
        "1",
        "3",
        "true",
        None,
    ]
    assert press(page, "ArrowRight")[1:] == ["Layer 1", "2", "1", "3", "true", None]
    assert press(page, "ArrowLeft")[5] == "false"
    assert press(page, "ArrowLeft")[2] == "1", "to the parent"
    assert press(page, "ArrowDown", "ArrowDown")[1] == "Layer 2"
    assert press(page, "ArrowRight", "ArrowRight", "ArrowDown")[1].startswith("Head 2")
    assert press(page, "End")[1].startswith("Decoder self-attention")
    assert press(page, "ArrowDown")[1].startswith("Decoder self-attention"), "the last item"
    items = page.locator(".tree [role=treeitem]")
    assert items.count() == 3 + 3 + 4, "closed branches have no nodes"
    assert page.locator(".tree [tabindex='0']").count() == 1
    no_violations(page, ".atlas-explorer .walk")
    assert press(page, "Tab")[0] != "treeitem" and press(page, "Shift+Tab")[1].startswith("Decoder self"), (
        "one tab stop"
    )


def test_opening_a_head_selects_it_and_opening_a_row_pins_it(open_traces, hand_made_trace) -> None:
    page = open_traces(hand_made_trace, fragment="")
    open_tree(page)
    press(page, "Home", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight")
    wait_for_selection(page, kind="cross", layer=1, head=1, query=None)
    assert drawn(page)["heading"] == "Layer 2 · Head 2"
    values = score_map(hand_made_trace, View("cross", 1, 1, words=True, special="hide", predicted=True))
    row = values.values[0]
    strongest = np.argsort(-row)[0]
    sentence = f"“{values.rows[0]}” attends to “{values.columns[strongest]}” {100 * row[strongest]:.0f}%"
    _, text, *about = press(page, "ArrowRight")
    assert text.startswith(sentence) and about == ["4", "1", str(len(values.rows)), "false", None]
    press(page, "ArrowRight")
    wait_for_selection(page, kind="cross", layer=1, head=1, query=0)
    assert status(page).startswith("Pinned: ")
    for column, label in enumerate(values.columns):
        _, text, level, place, size, *_ = press(page, "ArrowRight" if column == 0 else "ArrowDown")
        assert text.startswith(f"“{label}” ") and (level, place, size) == ("5", str(column + 1), str(len(row)))
        assert float(text.rpartition(" ")[2].rstrip("%")) == pytest.approx(100 * row[column], abs=0.51)
    press(page, "Enter")
    assert page.locator(".mark.pinned.cell").count() == 1, "a cell is pinned by Enter"
    press(page, "w")
    assert press(page)[1].startswith("Head 2"), "pieces have other rows, so the head is closed"
    pieces = score_map(hand_made_trace, View("cross", 1, 1, words=False, special="hide", predicted=True)).rows
    assert press(page, "ArrowRight", "ArrowRight")[4] == str(len(pieces)) != str(len(values.rows))


def test_a_row_of_a_long_text_requests_its_weights(open_traces) -> None:
    trace = random_trace(1024, 12, layers=1, heads=2)
    weights = np.full((1, 2, 1024, 1024), 1 / 1024, np.float32)
    weights[0, 1, 1] = 0
    weights[0, 1, 1, 600] = 1
    tokens = trace.source_tokens
    page = open_traces(replace(trace, encoder_self=AttentionMaps(weights, tokens, tokens)), fragment="")
    open_tree(page)
    press(page, "Home", "ArrowLeft", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown")
    press(page, "ArrowRight")
    wait_for_selection(page, kind="encoder_self", layer=0, head=1)
    expect(page.locator(".tree [aria-level='4']")).to_have_count(1024)
    press(page, "ArrowDown", "ArrowDown")
    names = [token.replace("▁", "") for token in (tokens[1], tokens[600])]
    page.wait_for_function("() => document.activeElement.textContent.includes('attends to')")
    assert all(name in press(page)[1] for name in names) and press(page)[1].endswith("100%")
    assert press(page, "ArrowRight", "ArrowRight")[1].endswith("100%"), (
        "the strongest cells are listed, the largest first"
    )


def test_a_row_sounds_on_a_key_until_escape(open_traces, hand_made_trace) -> None:
    page = open_traces(hand_made_trace, fragment="")
    page.evaluate(STUB)
    open_tree(page)
    press(page, "ArrowRight", "n")
    assert page.evaluate("tones") == [], "a head is no row"
    press(page, "ArrowRight", "ArrowRight", "n")
    row = score_map(hand_made_trace, View("cross", 0, 0, words=True, special="hide", predicted=True)).values[0]
    assert page.evaluate("tones") == pytest.approx(list(220 * 2 ** (3 * row)), rel=1e-2)
    press(page, "Escape")
    assert page.evaluate("tones").count("off") == 1
    wait_for_selection(page, query=0)
    press(page, "Escape")
    wait_for_selection(page, query=None)
    page.evaluate("tones.length = 0")
    page.keyboard.press("d")
    press(page, "ArrowDown", "n")
    assert page.evaluate("tones") == pytest.approx(list(220 * 2 ** (3 * row)), rel=1e-2), "of the map's row"
    page.evaluate("window.AudioContext = undefined")
    press(page, "n")
    assert status(page) == "This browser plays no sound."


def test_larger_weights_sound_higher_and_louder(open_modules) -> None:
    page = open_modules("explorer/sound.js")
    low, high, middle = page.evaluate(RENDER, [0, 1, 0.5])
    assert [tone[0] for tone in (low, high, middle)] == pytest.approx([220, 1760, 622], rel=0.05)
    assert 0 < low[1] < middle[1] < high[1] < 0.13, "quiet"
