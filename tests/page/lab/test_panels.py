"""Panels registered by a test work in a real browser: controls, needs, streams, and Gradio's queue on ZeroGPU."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.formulas import last_pair
from attention_atlas.viz.panels.menus import SIDES
from attention_atlas.viz.panels.panel import WAVES, Choice, Need, Panel, Slider
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire import blocks
from attention_atlas.viz.words import say
from tests.page.browser import no_faults, open_more, pick_example

pytestmark = pytest.mark.browser


def compute(scene: Scene, pair: int, side: str) -> list[dict]:
    return [blocks.text(f"{scene.trace.source_text}: pair {pair} of {side}")]


def compute_in_parts(scene: Scene) -> Iterator[list[dict]]:
    for part in range(3):
        yield [blocks.text(f"{scene.trace.source_text}: part {part}")]


def compute_slowly(scene: Scene, number: int) -> Iterator[list[dict]]:
    for part in range(100):
        yield [blocks.text(f"number {number}: part {part}")]
        time.sleep(0.2)


LOOK, SECTION = say("Look at this."), say("Paper, section 0")
LOOK.english, LOOK.values, SECTION.english, SECTION.values = str(LOOK), {}, str(SECTION), {}
DUMMY = Panel(
    "dummy",
    "Dummy",
    LOOK,
    SECTION,
    compute,
    needs=(WAVES,),
    controls=(Slider("Pair", 0, last_pair, 5), Choice("Side", SIDES, "encoder")),
)
LACKING = Panel(
    "lacking",
    "Lacking",
    LOOK,
    SECTION,
    compute,
    controls=DUMMY.controls,
    needs=(WAVES, Need(lambda scene: scene.translator.config.d_model > 9999, LOOK)),
)
NUMBERS = Panel(
    "numbers",
    "Numbers",
    LOOK,
    SECTION,
    lambda scene: [
        blocks.table(
            ("Place", "Time", "Share", "Word", "Weight"),
            [
                [str(3 * 10**i), f"{7 * 10**i} ms", blocks.bar(0.5, str(10**i)), "a b"[i:], blocks.shade(0.5, f"{i}")]
                for i in range(3)
            ],
        )
    ],
)
STREAMING = Panel("streaming", "Streaming", LOOK, SECTION, compute_in_parts)
SLOW = Panel("slow", "Slow", LOOK, SECTION, compute_slowly, controls=(Slider("Number", 0, 9, 1),), stops=True)
# Delay the page's view of panel answers until all of their parts have arrived.
LATE = """(() => {
  const fetch = window.fetch;
  window.fetch = async (...request) => {
    const answer = await fetch(...request);
    if (String(request[0]).includes("/ask/page_panel")) await new Promise((done) => setTimeout(done, 1500));
    return answer;
  };
})()"""


# Where the texts of a table's columns end, [column][row], in pixels.
ENDS = """(table) => [...table.rows[1].cells].map((_, i) => [...table.rows].map(({ cells }) => {
  const range = document.createRange();
  range.selectNodeContents(cells[i].querySelector(".bar span, .shade") ?? cells[i]);
  return Math.round(range.getBoundingClientRect().right); }))"""


@pytest.fixture(scope="module")
def url(serve, tiny_translator) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.PANELS, "verify", (*registry.PANELS["verify"], DUMMY, LACKING, NUMBERS, STREAMING, SLOW))
        yield serve(shell.build(Translators([tiny_translator])))


def test_a_registered_panel_works_with_its_controls_and_needs(url, open_page, tiny_translator) -> None:
    page = open_page(f"{url}#tab=verify&panel=dummy")
    panel, text = page.locator("#panel-dummy .atlas-panel"), tiny_translator.examples["de-en"][0].text
    expect(panel).to_contain_text(f"{text}: pair 5 of encoder")
    page.locator("[role=tabpanel]:visible input[type=number]:visible").fill("15")
    page.keyboard.press("Tab")
    expect(panel).to_contain_text(f"{text}: pair 15 of encoder")
    page.get_by_label("decoder (writes the target)").locator("visible=true").check()
    expect(panel).to_contain_text(f"{text}: pair 15 of decoder")
    assert page.locator("[role=tabpanel]:visible input[type=range]:visible").get_attribute("max") == "15"
    pick_example(page, 1)
    expect(panel).to_contain_text(f"{tiny_translator.examples['de-en'][1].text}: pair 15 of decoder")
    no_faults(page, name="panel-registered")
    expect(page.get_by_role("tab", name="Lacking", exact=True)).to_be_hidden()
    page.evaluate("location.hash = '#tab=verify&panel=lacking'")
    expect(page.locator("#panel-lacking .atlas-panel")).to_contain_text("Not available for German → English: Lacking.")
    expect(page.locator("#panel-lacking .atlas-panel")).to_contain_text("Look at this.")
    expect(page.locator("[role=tabpanel]:visible input:visible")).to_have_count(0)  # no controls


def test_columns_of_numbers_are_aligned_at_their_right(url, open_page) -> None:
    page = open_page(f"{url}#tab=verify&panel=numbers")
    place, time_, share, word, weight = page.locator("#panel-numbers table").evaluate(ENDS)
    assert all(len(set(column)) == 1 for column in (place, time_, share[1:], weight[1:])), (place, time_, share, weight)
    assert len(set(word)) > 1, "words begin at one edge"


def test_moving_a_control_replaces_a_running_stream(url, open_page) -> None:
    page = open_page(f"{url}#tab=verify&panel=slow&set1=3")
    panel = page.locator("#panel-slow .atlas-panel")
    expect(panel).to_contain_text(re.compile("number 3: part [1-9]"))  # a part is seen for 0.2 s alone
    page.get_by_role("slider", name="Number").press("ArrowRight")
    expect(panel).to_contain_text(re.compile("number 4: part [1-9]"), timeout=15_000)  # the first would take 20 s
    panel.get_by_role("button", name="Stop").click()
    expect(panel).to_have_attribute("aria-busy", "false")


def test_an_error_takes_the_place_of_the_note_that_the_panel_computes(url, open_page) -> None:
    page = open_page("about:blank")
    page.route("**/ask/page_panel", lambda route: route.fulfill(json={"error": "not now"}))
    page.goto(f"{url}#tab=verify&panel=dummy")
    panel = page.locator("#panel-dummy .atlas-panel")
    expect(panel).to_have_text("not now")
    expect(panel).to_have_attribute("aria-busy", "false")


def test_a_panel_without_figures_needs_no_plotly(url, chromium) -> None:
    page = chromium.new_page()
    page.route("**/plotly.min.js", lambda route: route.abort())
    page.goto(f"{url}#tab=verify&panel=dummy")
    expect(page.locator("#panel-dummy .atlas-panel")).to_contain_text("pair 5 of encoder")
    page.close()


def test_a_page_on_zero_gpu_uses_gradios_queue(serve, tiny_translator, open_app) -> None:
    page = open_app(serve(shell.build(Translators([tiny_translator]), lend=lambda function: function)))
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    open_more(page, "Verify")
    expect(page.locator("#panel-verify .atlas-panel")).to_contain_text("Drawn on the page = trace")
    expect(page.locator("#panel-verify [aria-busy=true], #panel-verify .stop")).to_have_count(0)
    assert any("/gradio_api/call/page_panel" in url for url in urls) and not any("/ask/" in url for url in urls)


@pytest.mark.long
def test_a_stream_whose_parts_arrive_at_once_is_shown_whole(url, open_page, tiny_translator) -> None:
    page = open_page(f"{url}#tab=verify&panel=streaming")
    panel, (first, second, *_) = page.locator("#panel-streaming .atlas-panel"), tiny_translator.examples["de-en"]
    expect(panel).to_contain_text(f"{first.text}: part 2")
    page.evaluate(LATE)
    pick_example(page, 1)
    expect(panel).to_contain_text(f"{second.text}: part 2")
