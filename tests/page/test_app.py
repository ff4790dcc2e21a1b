"""The whole app in a real browser, with the shipped checkpoints: translating, errors, sizes, touch and print."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from attention_atlas.viz import shell
from tests.page.browser import no_violations, open_tab, screenshot, spaced

pytestmark = pytest.mark.browser


def test_opens_with_a_translation_and_translates_on_enter(app_url, open_page, shipped_translators):
    page = open_page(app_url)
    page.wait_for_selector("#translation-text")
    translator = next(iter(shipped_translators.values()))
    assert page.inner_text("#translation-text") == translator.translate("Ich möchte ein Bier, bitte.").translation
    box = page.locator("#source-text textarea, #source-text input").first
    box.fill("Der Hund\nschläft.")  # a line break, as in pasted text, becomes a space
    box.press("Enter")
    expected = translator.translate("Der Hund schläft.")
    page.wait_for_function(
        "text => document.querySelector('#translation-text').textContent === text", arg=expected.translation
    )
    written = page.locator(".atlas-translation .chip.shaded")
    assert written.count() == len(expected.target_ids)
    screenshot(page, "app")
    box.fill("Ich bin noch nicht")
    open_tab(page, "Positions")
    page.reload()
    expect(page.locator("#translation-text")).to_have_text(expected.translation)
    expect(page.locator("#tab-positions-button")).to_have_attribute("aria-selected", "true")
    expect(box).to_have_value("Ich bin noch nicht")
    page.locator(".display summary").click()
    language, colours, size = page.locator(".display select").all()
    colours.select_option("dark")
    size.select_option("1.3")
    no_violations(page, "#atlas-title")
    language.select_option("fr")
    expect(page.locator("#translate")).to_have_text("Traduire")
    assert page.evaluate("[document.body.className, document.documentElement.style.zoom]") == ["dark", "1.3"]
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


@pytest.mark.parametrize("tabs_open", [6, pytest.param(12, marks=pytest.mark.long)])
def test_many_tabs_of_one_browser_are_all_answered(tiny_url, open_page, tabs_open):
    """Over HTTP/1.1 a browser opens at most six connections to a host, so no tab may keep one open."""
    first = open_page(tiny_url)
    pages = [first, *(first.context.new_page() for _ in range(tabs_open - 1))]
    for page in pages[1:]:
        page.goto(tiny_url)
    for number, page in enumerate(pages):
        page.wait_for_selector("#translation-text")
        text = f"Ich habe {number + 2} Boote."
        page.locator("#source-text textarea").fill(text)
        page.locator("#source-text textarea").press("Enter")
        expect(page.locator(".atlas-translation .source")).to_have_text(text)


def test_an_error_message_leaves_the_translation_in_place(app_url, open_page, shipped_translators):
    page = open_page(app_url)
    page.wait_for_selector("#translation-text")
    before = page.inner_text("#translation-text")
    box = page.locator("#source-text textarea, #source-text input").first
    limit = next(iter(shipped_translators.values())).max_tokens
    for text, words in (("   ", "The text is empty"), ("Hund " * 1100, f"the limit is {spaced(limit)} tokens")):
        box.fill(text)
        box.press("Enter")
        page.wait_for_function(
            "words => document.querySelector('.notice.error')?.textContent.includes(words)", arg=words
        )
        assert page.inner_text("#translation-text") == before


def test_hostile_text_stays_text(app_url, open_page):
    page = open_page(app_url)
    page.wait_for_selector("#translation-text")
    box = page.locator("#source-text textarea, #source-text input").first
    text = '<img src=x onerror="window.hacked=1"> ${window.hacked=1} {{value}} </s> <2en>'
    box.fill(text)
    box.press("Enter")
    page.wait_for_function(
        "() => document.querySelectorAll('.atlas-translation .chip.byte, .atlas-translation .chip').length > 20"
    )
    assert page.evaluate("window.hacked") is None
    symbols = page.locator(".atlas-translation .row").first.locator(".chip.symbol").all_inner_texts()
    assert symbols == ["<2en>", "</s>"], "typed control symbols must not become symbols"


def test_no_two_scores_of_a_model_look_alike(app_url, open_page):
    """Scores on the development set and on the test set must be told apart."""
    page = open_page(app_url)
    page.wait_for_selector("#translation-text")
    rows = page.locator("#translation .details tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].slice(0, -2).map((cell) => cell.textContent).join('|'))"
    )
    assert len(rows) > 3 and len(set(rows)) == len(rows), rows


@pytest.mark.long
def test_at_200_percent_zoom_tabs_fit_and_a_tour_shows_four_lines(app_url, open_page):
    """A window of 1280 x 800 pixels at 200 % zoom has 640 x 400 CSS pixels."""
    page = open_page(app_url, width=640, height=400)
    page.wait_for_selector("#translation-text")
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
        "Positions": "#panel-position-table .figure",
        "Train": ".atlas-train summary",
    }
    for tab, part in first_parts.items():
        open_tab(page, tab)
        page.locator(part).first.wait_for()
        assert page.evaluate(SMALL_TARGETS) == []


def test_the_busy_animation_respects_reduced_motion(tiny_url, open_page):
    page = open_page(tiny_url)
    page.wait_for_selector("#translation-text")
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
    expect(page.locator(".atlas-translation .sentences")).to_be_visible()
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
def test_a_long_text_scrolls_to_the_translation_and_to_the_pinned_token(app_url, open_page, width):
    page = open_page(app_url, width=width)
    page.wait_for_selector("#translation-text")
    page.locator("#source-text textarea").fill(LONG)
    page.keyboard.press("Enter")
    box = page.locator(".atlas-translation .sentences")
    expect(box.locator(".source")).to_contain_text("steil geworden")
    assert box.evaluate("node => node.scrollHeight > node.clientHeight") and box.evaluate(CHIPS_IN_VIEW)["first"]
    box.locator("button.chip").last.click()
    expect(box.locator(".pinned")).to_have_count(1)
    box.evaluate("node => (node.scrollTop = 0)")
    box.locator("button.chip").first.dispatch_event("click")  # without the scrolling of a real click
    expect(box.locator(".pinned")).to_have_attribute("data-step", "0")
    assert box.evaluate(CHIPS_IN_VIEW)["pinned"]


def test_no_line_of_the_translation_begins_with_a_full_stop(app_url, open_page):
    page = open_page(app_url)
    page.wait_for_selector("#translation-text")
    page.fill("#source-text textarea", "Die Ärztin gab dem Jungen einen Apfel, weil er hungrig war.")
    page.press("#source-text textarea", "Enter")
    expect(page.locator("#translation-text")).to_contain_text("apple")
    assert page.locator("#translation-text button").last.inner_text() == "."
    for width in range(900, 1400, 5):
        page.set_viewport_size({"width": width, "height": 800})
        tops = page.evaluate("""() => [...document.querySelectorAll('#translation-text button')].slice(-2)
          .map((node) => node.getBoundingClientRect().bottom)""")
        assert tops[0] == tops[1], width
