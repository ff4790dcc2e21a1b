"""Tours in a real browser: every stop with its view and its claim, questions, keys and links."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.viz.tours import guide
from attention_atlas.viz.tours.tour import tours
from attention_atlas.viz.words import Words
from tests.page.browser import FIELD, no_faults, no_violations, open_tab

pytestmark = pytest.mark.browser

EVERY = tours()
# Whether the beginning of the part that a stop points at is in sight, and the tour's sheet covers none of it: the sheet
# is beside the page, or the part is above the sheet, or it is higher than the room there and begins at its top. While
# the part is redrawn there is none.
IS_UNCOVERED = """() => {
  const pointed = document.querySelector('.atlas-pointed');
  if (!pointed) return false;
  const { top, bottom, right, height } = pointed.getBoundingClientRect();
  const sheet = document.querySelector('.atlas-tour').getBoundingClientRect();
  const free = sheet.left > 0 ? innerHeight : sheet.top;
  if (sheet.left > 0 ? right > sheet.left : sheet.height > 0.4 * innerHeight + 1) return false;
  return top >= -1 && top < free - 60 && (bottom <= free + 1 || height > free - 24); }"""
SIZES = ((1280, 800), (390, 844), (640, 400))  # the last is a small laptop at 200 % zoom

# Whether the translation and the open tab are disabled.
INERT = """[...new Set([...document.querySelectorAll('.atlas-translation, #tabs > [role=tabpanel]')]
  .map((part) => part.inert))]"""
REQUESTED = "(name) => performance.getEntriesByType('resource').some((entry) => entry.name.endsWith(name))"

# Whether no ancestor clips the outline of an element.
UNCUT = """(element) => {
  for (let node = element.parentElement; node && !node.matches('.gradio-container'); node = node.parentElement)
    if (getComputedStyle(node).overflow !== 'visible') return false;
  return true; }"""


def at_stop(page: Page, number: int, stops: int) -> None:
    """Wait until the page is at this stop, and the part that it points at is uncovered."""
    expect(page.locator(".atlas-tour .count")).to_have_text(f"{number} of {stops}")
    expect(page.locator(".atlas-tour")).to_have_attribute("aria-busy", "false")
    expect(page.locator(".atlas-pointed")).to_have_count(1)
    expect(page.locator(".atlas-pointed")).to_be_visible()
    page.wait_for_function(IS_UNCOVERED)


def scroll_to_top(page: Page) -> None:
    """Turn the wheel until the page is at its top: a stop may still be scrolling to what it points at."""
    for _ in range(50):
        page.mouse.wheel(0, -5000)
        page.wait_for_timeout(100)
        if page.evaluate("scrollY === 0"):
            return
    raise AssertionError(f"the page stays at {page.evaluate('scrollY')}")


def english_text(words: str) -> str:
    """Return a text of the server as the English page writes it."""
    values = (
        {name: english_text(value) if isinstance(value, str) else f"{value:,}" for name, value in words.values.items()}
        if isinstance(words, Words)
        else {}
    )
    return words.english.format(**values) if isinstance(words, Words) else words


def answer(page: Page, ask: dict, *, right: bool) -> None:
    """Answer a stop's question rightly or wrongly, and check that the page says so."""
    choices = page.locator(".atlas-tour .choices button:not(.give-up)")
    expect(choices).to_have_text([english_text(choice) for choice in ask["choices"]])
    number = next(i for i in range(len(ask["choices"])) if (i in ask["right"]) is right)
    choices.nth(number).click()
    expect(page.locator(".atlas-tour .told")).to_have_text(
        f"{'Right.' if right else 'Not quite.'} {english_text(ask['answer'])}"
    )
    expect(page.locator(".atlas-tour .choices .right")).to_have_count(len(ask["right"]))
    expect(page.locator(".atlas-tour .choices .wrong")).to_have_count(0 if right else 1)


def walk(page: Page, translators, name: str) -> None:
    """Go through a tour by its buttons, and check the claim and the view of each stop, also in smaller windows."""
    tour = EVERY[name]
    for number, stop in enumerate(tour.stops, 1):
        payload = guide.stop_payload(
            translators, EVERY, {"tour": name, "stop": number, "direction": tour.directions[0]}
        )
        if stop.ask:  # the answer must not be visible before the question is answered
            expect(page.locator(".atlas-tour .count")).to_have_text(f"{number} of {len(tour.stops)}")
            expect(page.locator(".atlas-tour .claim, .atlas-pointed")).to_have_count(1)
            expect(page.locator(".atlas-tour .claim")).to_be_hidden()
            assert "query=" not in page.evaluate("location.hash")
            assert page.evaluate(INERT) == [True]
            answer(page, payload["ask"], right=bool(number % 2))
        at_stop(page, number, len(tour.stops))
        assert page.evaluate(INERT) == [False]
        expect(page.locator("#translation-text")).to_have_text(
            translators[tour.directions[0]].translate(payload["open"]["text"]).translation
        )
        expect(page.locator(".atlas-tour h2")).to_have_text(english_text(payload["title"]))
        claim = page.locator(".atlas-tour .claim:visible")
        if payload["claim"]:
            expect(claim).to_contain_text(english_text(payload["claim"]["text"]))
            assert payload["claim"]["holds"] == ("holds" in claim.get_attribute("class"))
        expect(page.locator(f"#tab-{stop.open['tab']}")).to_be_visible()
        if "panel" in stop.open:
            panel = page.locator(f"#panel-{stop.open['panel']}")
            expect(panel).to_be_visible()
            # Wait, because Gradio answers 422 if a stream is left while it is being requested.
            expect(panel.locator("[aria-busy=true], .stop")).to_have_count(0)
        for width, height in SIZES[1:] + SIZES[:1]:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_function(IS_UNCOVERED)
        if number < len(tour.stops):
            page.locator(".atlas-tour").get_by_role("button", name="Next", exact=True).click()
    onward = page.locator(".atlas-tour").get_by_role("button", name="Next tour:")
    following = [*EVERY][([*EVERY].index(name) + 1) % len(EVERY)]
    expect(onward).to_have_text(f"Next tour: {english_text(EVERY[following].title)}")
    page.locator(".atlas-tour").get_by_role("button", name="Try your own sentence").click()
    expect(page.locator(".atlas-tour")).to_be_hidden()
    expect(page.locator(FIELD)).to_be_focused()


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_first_tour_starts_from_its_button(app_url, open_app, shipped_translators, whole):
    page = open_app(app_url)
    assert not page.evaluate(REQUESTED, "/tour/tour.js"), "the page pays for tours before one is started"
    button = page.locator(".atlas-title .tour")
    button.click()
    at_stop(page, 1, 8)
    no_violations(page, ".atlas-tour")
    if whole:
        walk(page, shipped_translators, "attention")
    else:
        page.keyboard.press("Escape")
        expect(page.locator(".atlas-tour")).to_be_hidden()
        expect(button).to_be_focused()
    assert "tour=" not in page.evaluate("location.hash")


def test_the_page_follows_the_tour_until_the_visitor_scrolls(app_url, open_page):
    page = open_page(f"{app_url}#tour=paper&stop=9&direction={EVERY['paper'].directions[0]}")
    at_stop(page, 9, 11)
    page.wait_for_function("scrollY > 0")
    page.evaluate("scrollTo(0, 0)")  # as happens when a picture shrinks the page for a moment
    page.wait_for_function(IS_UNCOVERED)
    page.mouse.wheel(0, -5000)
    page.wait_for_function("scrollY === 0")
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") == 0


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_a_link_opens_a_stop_and_keys_move_between_stops(app_url, open_page, width, dark):
    page = open_page(f"{app_url}#tour=attention&stop=3", width=width, height=844, dark=dark)
    at_stop(page, 3, 8)
    following = page.get_by_role("button", name="Next", exact=True)
    expect(following).to_be_focused()
    no_faults(page, ".atlas-tour", name=f"tour-{'dark' if dark else 'light'}-{width}")
    page.keyboard.press("ArrowRight")
    at_stop(page, 4, 8)
    expect(following).to_be_focused()
    page.keyboard.press("ArrowLeft")
    at_stop(page, 3, 8)
    page.go_back()
    at_stop(page, 4, 8)
    back = page.get_by_role("button", name="Back to this stop's view")
    expect(back).to_be_hidden()
    scroll_to_top(page)  # on a narrow page the tabs are a screen above what the stop points at
    open_tab(page, "Train")
    back.click()
    at_stop(page, 4, 8)
    expect(back).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator(".atlas-tour")).to_be_hidden()
    expect(page.locator(".atlas-pointed")).to_have_count(0)
    assert "tour=" not in page.evaluate("location.hash") and "text=" in page.evaluate("location.hash")


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("attention", "lesson")])
def test_every_stop_of_the_other_tours(app_url, open_page, shipped_translators, name):
    """All tours except the lesson, which test_sheets.py covers."""
    page = open_page(f"{app_url}#tour={name}&stop=1&direction={EVERY[name].directions[0]}")
    walk(page, shipped_translators, name)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_sheet_leaves_room_for_what_it_explains(app_url, open_page, width, height) -> None:
    page = open_page(f"{app_url}#tour=attention&stop=2", width=width, height=height)
    at_stop(page, 2, 8)
    expect(page.locator(".atlas-tour .moves .strong")).to_be_in_viewport(ratio=0.9)
    sheet, story = page.locator(".atlas-tour").bounding_box(), page.locator(".atlas-tour .story")
    if width >= 1280:
        assert (sheet["x"], sheet["width"], sheet["height"]) == (width - 360, 360, height)
        for part in (".detail .cells", ".sentence-lines .sheet"):
            box = page.locator(part).bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= sheet["x"] and box["y"] + box["height"] <= height, part
    else:
        assert (sheet["width"], sheet["y"] + sheet["height"]) == (width, height)
    if height < 600:  # the text scrolls, also by keyboard
        story.focus()
        page.keyboard.press("End")
        page.wait_for_function("document.querySelector('.atlas-tour .story').scrollTop > 0")
        no_violations(page, ".atlas-tour")


def test_the_last_card_offers_the_next_tour(app_url, open_page) -> None:
    page = open_page(f"{app_url}#tour=attention&stop=8")
    at_stop(page, 8, 8)
    expect(page.get_by_role("button", name="Try your own sentence")).to_be_focused()
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Next tour:").click()
    expect(page.locator(".atlas-tour select")).to_have_value([*EVERY][[*EVERY].index("attention") + 1])
    expect(page.locator(".atlas-tour .count")).to_contain_text("1 of ")


@pytest.mark.long
def test_the_frame_of_a_stop_is_not_clipped(app_url, open_page) -> None:
    page = open_page(f"{app_url}#tour=heads&stop=4")
    pointed = page.locator("#panel-why-heads.atlas-pointed")
    expect(pointed).to_be_visible()
    assert pointed.evaluate(UNCUT)
    assert pointed.evaluate("(node) => parseFloat(getComputedStyle(node).outlineOffset)") >= 4


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
def test_a_question_covers_the_page_until_it_is_answered(app_url, open_page, width) -> None:
    page = open_page(f"{app_url}#tour=lesson&stop=4", width=width, height=800)
    sheet = page.locator(".atlas-tour")
    expect(sheet.locator(".give-up")).to_be_visible()
    assert sheet.bounding_box() == {"x": 0, "y": 0, "width": width, "height": 800}
    no_violations(page)
    for part in (".read .source", ".prompt"):  # large, in the middle
        box = sheet.locator(part).first.bounding_box()
        assert abs(box["y"] + box["height"] / 2 - 400) < 250, part
        assert float(sheet.locator(part).first.evaluate("(node) => parseFloat(getComputedStyle(node).fontSize)")) >= 20
    sheet.locator(".give-up").click()
    expect(page.locator(".atlas-pointed")).to_be_visible()
    page.wait_for_function(IS_UNCOVERED)
    expect(page.locator(FIELD)).to_have_value(sheet.locator(".read .source").first.inner_text())
