"""The first screen: whole words, the lit word, heads as chips, and the test of a word by hiding source words."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.trace.address import Address
from attention_atlas.viz.maps.reduce import View, score_map
from attention_atlas.viz.questions.registry import Context, ask
from attention_atlas.viz.questions.traces import Traces
from bench.made.synthetic import random_trace
from tests.page.browser import use_modules
from tests.page.explorer.page import Z_ERROR, drawn

pytestmark = pytest.mark.browser

TEA = "She gave the old man a cup of tea."
TARGET = ".sentence-lines .side.target .word"
WORDS = View("cross", 0, 0, words=True, special="hide", predicted=True)


def open_words(open_traces, *traces, **options) -> Page:
    """Open an explorer as a visitor without a link sees it."""
    return open_traces(*traces, fragment="", **options)


def test_the_page_opens_with_whole_words_and_shows_the_pieces_on_request(open_traces, hand_made_trace) -> None:
    page = open_words(open_traces, hand_made_trace)
    expected, plot = score_map(hand_made_trace, WORDS), drawn(page)
    assert np.allclose(plot["z"], expected.values, atol=Z_ERROR, equal_nan=True)
    assert plot["rows"] == list(expected.rows) and "\u2581" not in "".join(plot["rows"] + plot["columns"])
    share = page.locator(".atlas-explorer .share")
    expect(share).to_contain_text(f"{100 * expected.hidden:.1f}% of the weight")
    pieces = page.locator(".atlas-explorer .pieces")
    pieces.click()
    plot = drawn(page)
    assert np.abs(plot["z"] - hand_made_trace.cross.weights[0, 0]).max() < Z_ERROR
    expect(pieces).to_have_text("Show whole words")
    pieces.click()
    assert drawn(page)["rows"] == list(expected.rows)


def test_links_have_a_version_and_without_one_open_the_pieces(open_modules) -> None:
    page = open_modules("explorer/state.js")
    parse = "fragment => atlas.parseFragment(fragment).state"
    old, new = page.evaluate(parse, "#text=a"), page.evaluate(parse, "#v=2&text=a")
    fields = ("words", "special", "layer", "head")
    assert [old[name] for name in fields] == [False, "show", 0, 0]
    assert [new[name] for name in fields] == [True, "hide", None, None]
    trace = {"text": "a", "direction": "de-en", "checkpoint": "b"}
    for state in ({"words": False, "special": "show"}, {"words": True, "special": "hide"}):
        link = page.evaluate("([s, t]) => atlas.toFragment({ ...s, layer: 1, head: 2 }, t)", [{**new, **state}, trace])
        assert "v=2" in link.split("&")
        assert page.evaluate(parse, f"#{link}") == {**new, **state, "layer": 1, "head": 2}


def test_a_word_that_is_pointed_at_lights_up_everywhere(open_traces) -> None:
    trace = random_trace(9, 7, layers=3, heads=4)
    page = open_words(open_traces, trace)
    page.locator(TARGET).nth(2).hover()
    expect(page.locator(TARGET).nth(2)).to_have_class(re.compile("chosen"))
    expect(page.locator(f"{TARGET}.chosen")).to_have_count(1)
    weights = score_map(trace, WORDS).values[2]
    badges = page.locator(".side.source .badge:not(.without)").all_inner_texts()
    shown = [float(text.strip("%")) / 100 if text else 0 for text in badges]
    assert np.allclose(shown, np.where(weights >= 0.04, weights, 0), atol=5.1e-3)
    strongest = score_map(trace, WORDS).columns[int(weights.argmax())]
    expect(page.locator(".atlas-explorer .said")).to_contain_text(f"attends to “{strongest}”")
    expect(page.locator(".answer .bars .name").first).to_have_text(strongest)
    expect(page.locator(".detail .mark.lit")).to_have_count(1)
    expect(page.locator(".thumbnails")).to_have_attribute("data-lit", "row")
    cells = page.locator(".detail .cells").bounding_box()
    box = page.locator(".detail .mark.lit").bounding_box()
    row = (box["y"] + box["height"] / 2 - cells["y"]) / cells["height"] * len(score_map(trace, WORDS).rows)
    assert 2 < row < 3
    page.mouse.move(5, 5)
    expect(page.locator(f"{TARGET}.chosen")).to_have_count(1)  # it stays lit until another word is
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Escape")
    expect(page.locator(f"{TARGET}.chosen")).to_have_count(0)
    expect(page.locator(".detail .mark.lit")).to_have_count(0)


def test_words_are_walked_with_the_arrow_keys_and_never_move(open_traces) -> None:
    page = open_words(open_traces, random_trace(9, 7, layers=3, heads=4))
    words = page.locator(TARGET)
    before = words.evaluate_all("all => all.map((word) => word.getBoundingClientRect().left)")
    words.first.focus()
    page.keyboard.press("ArrowRight")
    expect(words.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator(".side.source .word").nth(1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(f"{TARGET}.chosen")).to_have_count(1)
    assert words.evaluate_all("all => all.map((word) => word.getBoundingClientRect().left)") == before


# Make the sentences narrower, and return how far the first word and a line move, in pixels, before the page draws them
# again. A printed page has another width, too, and is not drawn again.
MOVED = """() => {
  const left = (name) => document.querySelector(name).getBoundingClientRect().left;
  const places = () => [left(".sheet .word"), left(".sheet .lines path")], before = places();
  document.querySelector(".reader").style.width = "600px";
  return places().map((place, i) => place - before[i]);
}"""


def test_lines_stay_with_their_words_in_another_width(open_traces) -> None:
    page = open_words(open_traces, random_trace(9, 7, layers=3, heads=4))
    word, line = page.evaluate(MOVED)
    assert word < -20 and line == pytest.approx(word, abs=1)


def test_chips_combine_heads_and_lines_have_their_colours(open_traces) -> None:
    trace = random_trace(9, 7, layers=3, heads=4)
    page = open_words(open_traces, trace)
    chips = page.locator(".head-chip")
    expect(chips).to_have_count(4)
    chips.nth(2).click()
    expect(page.locator(".heading-line")).to_have_text("Mean of 2 chosen heads")
    mean = score_map(trace, replace(WORDS, heads=((0, 0), (0, 2)), combine="mean"))
    assert np.allclose(drawn(page)["z"], mean.values, atol=Z_ERROR)
    strokes = page.locator(".sheet .lines path").evaluate_all(
        "paths => [...new Set(paths.map((path) => path.parentElement.getAttribute('stroke')))]"
    )
    colours = [chip.evaluate("node => node.style.getPropertyValue('--c')") for chip in (chips.nth(0), chips.nth(2))]
    assert sorted(strokes) == sorted(colours) and len(set(colours)) == 2
    chips.nth(0).click()
    expect(page.locator(".heading-line")).to_have_text("Layer 1 · Head 3")
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")


def test_a_thumbnail_under_the_pointer_previews_its_head(open_traces) -> None:
    page = open_words(open_traces, random_trace(9, 7, layers=3, heads=4))
    page.locator(".thumbnail[data-layer='1'][data-head='2']").hover()
    expect(page.locator(".heading-line")).to_have_text("Layer 2 · Head 3")
    use_modules(page, "store/store.js")
    assert page.evaluate("atlas.store.state.selection.layer") == 0
    page.mouse.move(5, 5)
    expect(page.locator(".heading-line")).to_have_text("Layer 1 · Head 1")


def test_the_verdict_compares_what_matters_with_what_was_looked_at(open_modules) -> None:
    page = open_modules("explorer/lit.js")
    lit = {"items": [{"weight": 0.54}, {"weight": 0.06}], "strongest": [0, 1]}

    def verdict(first: float, second: float) -> dict:
        effects = {"all": [{"loss": first}, {"loss": second}], "order": [0, 1] if first > second else [1, 0]}
        return page.evaluate("([effects, lit]) => atlas.verdictOf(effects, lit)", [effects, lit])

    assert verdict(0.6, 0.5) == {"most": None, "own": 0, "agrees": "yes"}
    assert verdict(2.0, 0.5) == {"most": 0, "own": 0, "agrees": "yes"}
    assert verdict(0.7, 3.0) == {"most": 1, "own": 0, "agrees": "no"}
    assert verdict(2.0, 3.0) == {"most": 1, "own": 0, "agrees": "partly"}


@pytest.mark.long
def test_a_test_hides_each_source_word_and_names_what_matters(app_url, open_page, shipped_translators) -> None:
    translator = shipped_translators["en-de"]
    trace = translator.translate(TEA, "en-de")
    page = open_page(f"{app_url}#v=2&text={TEA}&direction=en-de")
    expect(page.locator(".side.source .words")).to_contain_text("cup")
    expect(page.locator(".heading-line")).to_have_text("Layer 3 · Head 5")
    expect(page.locator(".atlas-explorer .tag")).to_contain_text("51.9%")
    word = page.locator(TARGET, has_text="eine")
    word.hover()
    page.locator(".bubble .test-it").click()
    expect(page.locator(".answer .verdict")).to_contain_text("Not mainly: “cup” matters more.", timeout=30_000)
    step = trace.target_tokens.index("▁eine")
    context = Context(shipped_translators, Traces(shipped_translators))
    context.traces.add(trace)
    body = {"address": Address.of(trace).to_plain(), "fields": {"step": step}}
    removals = ask(context, "page_removals", body)["removals"]
    cup = next(word for word in removals["words"] if word["text"] == "cup")
    verdict = page.locator(".answer .verdict").inner_text()
    assert f"{removals['p']:.0%}" in verdict and f"{cup['p']:.1%}" in verdict and "einen" in verdict
    expect(page.locator(".detail .mark.decisive")).to_have_count(1)
    expect(page.locator(".thumbnails.decided")).to_have_count(1)
    left = page.locator(".side.source .badge.without").all_inner_texts()
    assert len(left) == 10 and all(left)
    expect(page.locator(".atlas-explorer > .sr-only[role=status]")).to_contain_text(verdict)
    page.locator(".answer .foot .link").first.click()
    expect(page.locator("#panel-why-tokens")).to_be_visible()
    use_modules(page, "store/store.js")
    page.wait_for_function("step => atlas.store.state.pinned === step", arg=step)


@pytest.mark.long
def test_the_first_visit_lights_words_once_and_not_under_reduced_motion(app_url, open_page) -> None:
    page = open_page(app_url)
    chosen = page.locator(f"{TARGET}.chosen")
    expect(chosen).to_have_count(1)
    page.keyboard.press("Shift")
    page.reload()
    expect(page.locator(TARGET).first).to_be_visible()
    page.wait_for_timeout(2500)
    expect(chosen).to_have_count(0)
    page.evaluate("localStorage.clear()")
    page.emulate_media(reduced_motion="reduce")
    page.goto("about:blank")
    page.goto(app_url)
    expect(page.locator(TARGET).first).to_be_visible()
    page.wait_for_timeout(2500)
    expect(chosen).to_have_count(0)
    page.emulate_media(reduced_motion="no-preference")
