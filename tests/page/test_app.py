"""The whole app in a real browser, with the shipped checkpoints: translating, errors, sizes, touch and print."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from attention_atlas.viz import shell
from tests.page.browser import FIELD, no_violations, open_more, open_tab, screenshot, submit, translate

pytestmark = pytest.mark.browser


def test_opens_with_a_translation_and_translates_on_enter(app_url, open_app, shipped_translators):
    page = open_app(app_url)
    translator = next(iter(shipped_translators.values()))
    assert page.inner_text("#translation-text") == translator.translate("Ich möchte ein Bier, bitte.").translation
    rows = page.locator("#translation .details tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].slice(0, -2).map((cell) => cell.textContent).join('|'))"
    )
    assert len(rows) > 3 and len(set(rows)) == len(rows), "scores on different sets must be told apart"
    submit(page, "Der Hund\nschläft.")  # a line break, as in pasted text, becomes a space
    expected, box = translator.translate("Der Hund schläft."), page.locator(FIELD)
    expect(page.locator("#translation-text")).to_have_text(expected.translation)
    assert page.locator(".atlas-translation .chip.shaded").count() == len(expected.target_ids)
    screenshot(page, "app")
    box.fill("Ich bin noch nicht")
    open_more(page, "Table")
    page.reload()
    expect(page.locator("#translation-text")).to_have_text(expected.translation)
    expect(page.locator("#panel-position-table")).to_be_visible()
    expect(box).to_have_value("Ich bin noch nicht")
    page.locator(".display summary").click()
    language, colours, size = (
        page.locator(f".display label:has(> span:text-is('{name}')) select")
        for name in ("Language", "Colours", "Text size")
    )
    colours.select_option("dark")
    size.select_option("1.3")
    no_violations(page, "#atlas-title")
    language.select_option("fr")
    expect(page.locator("#translate")).to_have_text("Traduire")
    expect(page.locator("body")).to_have_class(re.compile(r"\bdark\b"))
    assert page.evaluate("document.documentElement.style.zoom") == "1.3"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(box).to_have_value("Ich bin noch nicht")
    assert page.locator("footer").get_by_text("Settings").count() == 0, "Gradio's half-translates the page"


def test_gradios_api_page_opens_without_console_errors(tiny_url, open_page):
    page = open_page(tiny_url)
    with page.expect_response("**/gradio_api/info"):
        page.locator("footer button", has_text="API").first.click()
    page.get_by_text("API name: /why_smallest").wait_for()
    page.get_by_role("button", name="cURL").or_(page.locator(".api-docs").get_by_text("cURL", exact=True)).first.click()
    page.get_by_text("gradio_api/call/v2/why_smallest").first.wait_for()


@pytest.mark.long
def test_many_tabs_of_one_browser_are_all_answered(tiny_url, open_page):
    """Over HTTP/1.1 a browser opens at most six connections to a host, so no tab may keep one open."""
    first = open_page(tiny_url)
    pages = [first, *(first.context.new_page() for _ in range(7))]
    for page in pages[1:]:
        page.goto(tiny_url)
    for number, page in enumerate(pages):
        page.wait_for_selector("#translation-text", state="attached")
        translate(page, f"Ich habe {number + 2} Boote.")


def test_an_error_leaves_the_translation_in_place_and_hostile_text_stays_text(app_url, open_app, shipped_translators):
    page = open_app(app_url)
    before = page.inner_text("#translation-text")
    limit = next(iter(shipped_translators.values())).max_tokens
    for text, words in (("   ", "The text is empty"), ("Hund " * 1100, f"the limit is {limit:,} tokens")):
        submit(page, text)
        expect(page.locator(".notice.error")).to_contain_text(words)
        assert page.inner_text("#translation-text") == before
    translate(page, '<img src=x onerror="window.hacked=1"> ${window.hacked=1} {{value}} </s> <2en>')
    assert page.evaluate("window.hacked") is None
    symbols = page.locator(".atlas-translation .row").first.locator(".chip.symbol").all_inner_texts()
    assert symbols == ["<2en>", "</s>"], "typed control symbols must not become symbols"


@pytest.mark.long
def test_at_200_percent_zoom_tabs_fit_and_a_tour_shows_four_lines(app_url, open_app):
    """A window of 1280 x 800 pixels at 200 % zoom has 640 x 400 CSS pixels."""
    page = open_app(app_url, width=640, height=400)
    for title, *_ in shell.TABS:
        open_tab(page, str(title))
        assert page.evaluate("document.documentElement.scrollWidth") <= 640, title
    box = page.locator("#translation").bounding_box()
    assert box["height"] < 160, "the sticky header must leave room for the rest"
    page.locator(".atlas-title .tour").click()
    expect(page.locator(".atlas-tour")).to_have_attribute("aria-busy", "false")
    story = page.locator(".atlas-tour .story")
    line = story.locator(".text").evaluate("node => parseFloat(getComputedStyle(node).lineHeight)")
    seen = story.evaluate("node => Math.min(node.clientHeight, node.scrollHeight)")
    screenshot(page, "tour-200")
    assert seen >= 4 * line, (seen, line)


# The page's touch targets that are less than 24 px wide or high, counting the area that their pseudo-elements add.
SMALL_TARGETS = """() => [...document.querySelectorAll(".atlas-root :is(button, summary, select, [type=range], .acts)")]
  .filter((node) => node.checkVisibility({ visibilityProperty: true }))
  .map((node) => {
    const around = ["::before", "::after"].map((part) => getComputedStyle(node, part));
    const most = (side, own) => Math.max(own, ...around.map((style) => parseFloat(style[side]) || 0));
    return [node.textContent, most("width", node.offsetWidth), most("height", node.offsetHeight)];
  })
  .filter(([, width, height]) => width < 24 || height < 24)"""


def test_on_a_phone_the_tour_comes_first_and_no_touch_target_is_small(app_url, open_page):
    page = open_page(app_url, width=390, height=844)
    page.wait_for_selector(".atlas-explorer .thumbnail")
    expect(page.locator(".atlas-title p")).to_be_visible()
    entries = [page.locator(f".atlas-title {name}").bounding_box() for name in (".tour", ".present", ".teach")]
    assert entries == sorted(entries, key=lambda box: (box["y"], box["x"]))
    assert "lick" not in page.locator("#tab-explorer").inner_text()
    first_parts = {
        "Attention": ".atlas-explorer .thumbnail",
        "Step by step": ".atlas-stepper .candidate",
        "Why": ".atlas-question button.chip",
        "More": ".survey .head-cell",
        "Train": ".atlas-train summary",
    }
    for tab, part in first_parts.items():
        open_tab(page, tab)
        page.locator(part).first.wait_for()
        assert page.evaluate(SMALL_TARGETS) == []


def test_the_busy_animation_respects_reduced_motion(tiny_url, open_app):
    page = open_app(tiny_url)
    # Where the bar is at the start and at the end of its first way
    bar = """() => { const root = document.querySelector(".atlas-translation");
      root.ariaBusy = "true";
      const [animation] = root.getAnimations({ subtree: true }).filter((each) => each.animationName);
      const { delay, duration } = animation.effect.getTiming();
      const places = [delay, delay + duration].map((time) => {
        animation.currentTime = time;
        const { opacity, left } = getComputedStyle(root, "::before");
        return [opacity, parseFloat(left)];
      });
      root.ariaBusy = "false";
      return places; }"""
    for motion, moves in (("no-preference", True), ("reduce", False)):
        page.emulate_media(reduced_motion=motion)
        (visible, start), (still_visible, end) = page.evaluate(bar)
        assert visible == still_visible == "1" and (end > start) == moves
    page.emulate_media(reduced_motion="null")


def test_print_keeps_colours_and_hides_controls(app_url, open_page):
    page = open_page(app_url)
    page.wait_for_selector(".atlas-explorer .detail .heatmaplayer image")
    page.emulate_media(media="print")
    expect(page.locator("#translate")).to_be_hidden()
    expect(page.locator(".sentence-lines .sheet")).to_be_visible()
    chip = page.locator(".atlas-translation .chip.shaded").first
    assert chip.evaluate("node => getComputedStyle(node).printColorAdjust") == "exact"
    assert page.locator("#translation").evaluate("node => getComputedStyle(node).position") == "static"
    page.emulate_media(media="screen")
    expect(page.locator("#translate")).to_be_visible()


LONG = (
    "Als wir gestern Abend nach einem langen Tag im Garten endlich am Tisch saßen, erzählte meine Schwester, dass der "
    "alte Mann von nebenan sein Haus verkaufen will, weil ihm die Treppe zu steil geworden ist und seine Kinder in "
    "einer anderen Stadt wohnen."
)
CHIPS_IN_VIEW = """(box) => {
  const { top, bottom } = box.getBoundingClientRect();
  const seen = [...box.querySelectorAll("button.chip")].map((chip) => {
    const at = chip.getBoundingClientRect();
    return at.top >= top - 1 && at.bottom <= bottom + 1;
  });
  return { first: seen[0], pinned: seen[Number(box.querySelector(".pinned")?.dataset.step ?? -1)] };
}"""


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.long)])
def test_a_long_text_scrolls_to_the_translation_and_to_the_pinned_token(app_url, open_app, width):
    page = open_app(app_url, width=width)
    submit(page, LONG)
    open_tab(page, "Step by step")
    box = page.locator(".atlas-translation .sentences")
    expect(box.locator(".source")).to_contain_text("steil geworden")
    assert box.evaluate("node => node.scrollHeight > node.clientHeight") and box.evaluate(CHIPS_IN_VIEW)["first"]
    box.locator("button.chip").last.click()
    expect(box.locator(".pinned")).to_have_count(1)
    box.evaluate("node => (node.scrollTop = 0)")
    box.locator("button.chip").first.dispatch_event("click")  # without the scrolling of a real click
    expect(box.locator(".pinned")).to_have_attribute("data-step", "0")
    assert box.evaluate(CHIPS_IN_VIEW)["pinned"]


def test_no_line_of_the_translation_begins_with_a_full_stop(app_url, open_app):
    page = open_app(app_url)
    submit(page, "Die Ärztin gab dem Jungen einen Apfel, weil er hungrig war.")
    open_tab(page, "Step by step")
    text = page.locator("#translation-text")
    expect(text).to_contain_text("apple")
    assert text.locator("button").last.inner_text() == "."
    lines = text.evaluate("""(text) => Array.from({ length: 100 }, (_, i) => {
      Object.assign(text.style, { display: "block", width: `${150 + 5 * i}px` });
      const words = text.querySelectorAll(".word"), pieces = text.querySelectorAll("button");
      return [words[words.length - 2], ...[...pieces].slice(-2)].map((node) => node.getBoundingClientRect().bottom);
    })""")
    assert all(word == stop for _, word, stop in lines)
    assert any(word > before + 9 for before, word, _ in lines), "the last word must begin a line at some width"
