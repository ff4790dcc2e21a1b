"""Worksheets in a real browser: from a tour or from typed sentences, shared by link or file, and printed."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import CLIPBOARD, no_faults, save_file, upload_json
from tests.page.tour.test_tours import EVERY, walk

pytestmark = pytest.mark.browser

SHEET, PAPER = ".atlas-worksheet", ".atlas-worksheet .paper"
OWN = {
    "kind": "attention-atlas-worksheet",
    "version": 1,
    "title": "Unsere Sätze <b>",
    "direction": "de-en",
    "checkpoint": "",
    "items": [
        {"text": "Der Hund beißt den Mann.", "ask": "read_most", "word": "dog"},
        {"text": "Der Hund beißt den Mann.", "ask": "read_most", "word": "zebra"},
        {"text": "Der Hund beißt den Mann.", "ask": "reordered", "word": ""},
    ],
}
# The pictures and lines that reach beyond the sheet of paper: printing would cut them.
CUT = """() => [...document.querySelectorAll('.paper *')].filter((node) => {
  const box = node.getBoundingClientRect(), sheet = document.querySelector('.paper').getBoundingClientRect();
  return box.width && (box.right > sheet.right + 1 || box.left < sheet.left - 1); }).map((node) => node.outerHTML)"""


def wait_until_ready(page: Page) -> None:
    expect(page.locator(SHEET)).to_have_attribute("aria-busy", "false", timeout=60_000)


def open_file(page: Page, url: str, sheet: object) -> None:
    """Open the editor of worksheets, and upload a file."""
    page.goto(f"{url}#sheet=")
    wait_until_ready(page)
    upload_json(page.locator(SHEET), sheet)


def pages_of(pdf: bytes) -> tuple[int, set[tuple[int, int]]]:
    """Return the number of pages of a PDF, and their sizes in points."""
    sizes = {(round(float(w)), round(float(h))) for w, h in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)}
    return len(re.findall(rb"/Type /Page\b(?!s)", pdf)), sizes


@pytest.mark.long
def test_the_lesson_is_completed_and_its_worksheet_printed(app_url, open_page, shipped_translators):
    page = open_page(app_url)
    page.locator(".atlas-title .teach summary").click()
    page.get_by_role("button", name="A 45-minute lesson").click()
    walk(page, shipped_translators, "lesson")
    assert EVERY["lesson"].minutes == 45
    page.evaluate("location.hash = 'tour=lesson&stop=1'")
    page.get_by_role("button", name="Worksheet", exact=True).click()
    page.locator("#atlas-sheet-key").check()
    wait_until_ready(page)
    asks = EVERY["lesson"].asks
    expect(page.locator(f"{PAPER} .prompt")).to_have_count(asks)
    expect(page.locator(f"{PAPER} .answer")).to_have_count(asks)
    assert not page.evaluate(CUT)
    saved = save_file(page.get_by_role("button", name="Save as a page")).read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!http://127)", saved)
    inside = page.pdf(prefer_css_page_size=True)
    page.goto("about:blank")
    page.set_content(saved)  # without any other file
    printed = page.pdf(prefer_css_page_size=True)
    for pdf in (inside, printed):
        count, sizes = pages_of(pdf)
        assert 4 <= count <= 9 and all(abs(w - 595) <= 1 and abs(h - 842) <= 1 for w, h in sizes), (count, sizes)
    assert page.evaluate("getComputedStyle(document.querySelector('.paper')).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_worksheet_of_typed_sentences_is_restored_by_its_link(app_url, open_page, width, dark):
    page = open_page(app_url, width=width, height=844, dark=dark, **CLIPBOARD)
    page.locator(".atlas-title .teach summary").press("Enter")
    page.locator(".atlas-title .teach").get_by_role("button", name="Worksheets").press("Enter")
    wait_until_ready(page)
    expect(page.locator(f"{SHEET} h2").first).to_be_focused()
    page.get_by_label("Title").fill("Meine Sätze & <i>")
    first = page.get_by_label("Sentence", exact=True).and_(page.locator(f"{SHEET} textarea")).first
    first.fill("Der Hund beißt den Mann.")
    page.get_by_label("Word of the translation (optional)").first.fill("man")
    expect(page.locator(f"{PAPER} .prompt").first).to_contain_text("“man” is")
    page.get_by_role("button", name="Remove this question").last.press("Enter")
    page.get_by_role("button", name="Add a question").press("Enter")
    page.locator(f"{SHEET} .rows select").last.select_option("costs_most")
    expect(page.locator(f"{PAPER} .prompt")).to_have_count(2)
    page.locator("#atlas-sheet-key").check()
    wait_until_ready(page)
    expect(page.locator(f"{PAPER} .answer b").first).to_have_text("1. Mann")
    expect(page.locator(f"{PAPER} h1")).to_have_text("Meine Sätze & <i>")
    assert not page.evaluate(CUT)
    no_faults(page, SHEET, name=f"worksheet-{'dark' if dark else 'light'}-{width}")
    page.locator(SHEET).get_by_role("button", name="Copy link").click()
    expect(page.locator(f"{SHEET} .status")).to_have_text("Link copied.")
    link, before = page.evaluate("navigator.clipboard.readText()"), page.locator(f"{PAPER} .questions").inner_text()
    page.keyboard.press("Escape")
    expect(page.locator(SHEET)).to_be_hidden()
    expect(page.locator(".atlas-title .teach summary")).to_be_visible()
    page.evaluate("(link) => (location.hash = new URL(link).hash)", link)
    wait_until_ready(page)
    expect(page.locator(f"{PAPER} .questions")).to_have_text(re.compile(r".+", re.DOTALL))
    assert page.locator(f"{PAPER} .questions").inner_text() == before


@pytest.mark.long
def test_a_worksheet_too_long_for_a_link_is_saved_as_a_file(app_url, open_page):
    page = open_page(app_url)
    open_file(page, app_url, OWN)
    expect(page.locator(f"{PAPER} .prompt")).to_have_count(2)
    expect(page.locator(f"{PAPER} .missing")).to_contain_text("which does not contain “zebra”")
    expect(page.locator(f"{PAPER} h1")).to_have_text("Unsere Sätze <b>")
    saved = json.loads(save_file(page.get_by_role("button", name="Save as a file")).read_text(encoding="utf-8"))
    assert saved["items"] == OWN["items"] and saved["title"] == OWN["title"]
    item = OWN["items"][2]
    for items in ([item] * 31, [item | {"text": "ß" * 900}] * 30):  # too many; few enough, but too long
        open_file(page, app_url, OWN | {"items": items})
        page.locator(SHEET).get_by_role("button", name="Copy link").click()
        expect(page.locator(f"{SHEET} .status")).to_contain_text("save it as a file")


def test_a_failed_question_is_requested_again_and_the_key_requests_nothing(tiny_url, open_app):
    page = open_app(tiny_url)
    requests = []
    page.on("request", lambda request: requests.append(request.post_data) if "/page_task" in request.url else None)
    page.route("**/ask/page_task", lambda route: route.fulfill(json={"error": "not now"}))
    page.evaluate("location.hash = 'sheet='")
    wait_until_ready(page)
    missing = page.locator(f"{PAPER} .missing").filter(has_text="not now")
    expect(missing).to_have_count(2)
    page.locator("#atlas-sheet-key").check()
    assert len(requests) == 2
    page.unroute("**/ask/page_task")
    page.get_by_label("Title").fill("Again")
    expect(missing).to_have_count(0)
    wait_until_ready(page)
    assert sorted(requests[2:]) == sorted(requests[:2])


HOSTILE = {
    "no JSON": (b"\x00\xff<script>", "not a worksheet"),
    "not an object": ([], "not a worksheet"),
    "another kind": (OWN | {"kind": "x"}, "not a worksheet"),
    "a later version": (OWN | {"version": 2}, "not a worksheet"),
    "no list": (OWN | {"items": {"length": 3}}, "no list of questions"),
    "too many": (OWN | {"items": OWN["items"] * 101}, "the limit is 300"),
    "no question": (OWN | {"items": [None]}, "Question 1 of this worksheet is not a question"),
    "unknown": (OWN | {"items": [OWN["items"][0] | {"ask": "__proto__"}]}, "does not know: __proto__"),
    "not a text": (OWN | {"items": [OWN["items"][0] | {"text": {"a": 1}}]}, "is not text"),
    "a long title": (OWN | {"title": "x" * 121}, "longer than 120"),
    "large": (b"[" * 1_000_001, "the limit is"),
}


@pytest.mark.long
def test_hostile_files_and_links_are_refused_with_a_message(app_url, open_page):
    page = open_page(f"{app_url}#sheet=%00")
    refused, status = re.compile("not a worksheet|longer than"), page.locator(f"{SHEET} .status")

    def reopened(field: str) -> None:
        page.keyboard.press("Escape")
        expect(page).not_to_have_url(re.compile("sheet="))  # the dialog's close event clears it
        page.evaluate("(field) => (location.hash = `sheet=${field}`)", field)

    expect(status).to_contain_text(refused)
    for field in ("e30", "x" * 70_000, "__proto__"):
        reopened("")  # a new worksheet about the page's sentence
        expect(page.locator(PAPER)).to_have_count(1)
        wait_until_ready(page)
        expect(status).not_to_contain_text(refused)
        reopened(field)
        expect(status).to_contain_text(refused)
        expect(page.locator(PAPER)).to_have_count(0)
    for name, (sheet, words) in HOSTILE.items():
        reopened("")
        expect(page.locator(PAPER)).to_have_count(1)
        wait_until_ready(page)
        upload_json(page.locator(SHEET), sheet)
        expect(status, name).to_contain_text(words)
        expect(page.locator(PAPER), name).to_have_count(0)
