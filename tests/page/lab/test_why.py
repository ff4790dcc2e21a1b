"""The tab "Why" in a real browser: pinned tokens, contrasts, the test of a cell, the keyboard and links."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.analysis.why.questions import list_contrasts
from attention_atlas.viz.panels.scene import PageQuestion
from attention_atlas.viz.wire.question import token_text
from tests.page.browser import CLIPBOARD, no_faults, open_tab

pytestmark = pytest.mark.browser

QUESTION, WRITTEN = ".atlas-question", ".atlas-question .chips >> nth=0"
PRESSED = (
    "[...document.querySelectorAll('.atlas-question .chips')].map("
    "(box) => [...box.children].findIndex((chip) => chip.getAttribute('aria-pressed') === 'true'))"
)


IDLE = (
    "() => [...document.querySelectorAll('.atlas-panel, .atlas-question')].every((node) => !node.offsetParent || "
    "node.ariaBusy === 'false') && "
    "![...document.querySelectorAll('.matrix .waiting')].some((node) => node.offsetParent)"
)

# Whether a column of a word in the headline is uncovered, and whether the table is marked as scrollable.
NAMED = """() => {
  const named = [...document.querySelectorAll('.atlas-question .headline em')].map((word) => word.textContent);
  const table = document.querySelector('#panel-why-tokens .matrix .scroll');
  const words = [...table.querySelectorAll('.word')];
  const columns = words.filter((word) => named.includes(word.textContent));
  table.scrollIntoView({ block: 'center' });
  const inSight = (column) => {
    const { left, right, top, bottom } = column.getBoundingClientRect();
    return document.elementFromPoint((left + right) / 2, (top + bottom) / 2) === column;
  };
  return [columns.some(inSight), table.matches('.before, .after')];
}"""


def wait_for_answer(page: Page, step: int, against: int) -> None:
    """Wait until the question about this step, against this alternative, is answered."""
    page.wait_for_function(
        f"([step, against]) => {{ const pressed = {PRESSED}; return pressed[0] === step && "
        f"pressed[1] === against && document.querySelector('{QUESTION}').ariaBusy === 'false'; }}",
        arg=[step, against],
    )


@pytest.fixture()
def trace(shipped_translators):
    """The translation that the page opens with."""
    translator = next(iter(shipped_translators.values()))
    return translator.translate(translator.examples["de-en"][0].text)


@pytest.mark.long
def test_a_token_is_pinned_compared_tested_and_linked(app_url, open_app, trace, shipped_translators) -> None:
    page = open_app(app_url, **CLIPBOARD)
    open_tab(page, "Step by step")
    page.locator(".atlas-translation button.chip").nth(2).click()
    page.locator(".atlas-translation").get_by_role("button", name=re.compile("Why “.+”?")).click()
    wait_for_answer(page, 2, 0)
    rival = token_text(next(iter(shipped_translators.values())).tokenizer.tokens([list_contrasts(trace, 2)[0]])[0])
    expect(page.locator(f"{QUESTION} .against .chip").first).to_contain_text(rival)
    expect(page.locator(f"{QUESTION} .headline")).to_contain_text("as likely as")
    expect(page.locator(".atlas-translation button.chip.pinned")).to_have_count(1)

    page.locator(WRITTEN).locator("button").nth(2).focus()  # all chips are one tab stop
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_for_answer(page, 3, 0)
    page.locator(f"{QUESTION} .against .chip").nth(2).click()
    wait_for_answer(page, 3, 2)

    field = page.locator(f"{QUESTION} input[type=text]")
    field.fill(trace.target_tokens[3].removeprefix("▁"))
    field.press("Enter")
    expect(page.locator(f"{QUESTION} .failed")).to_contain_text("is the written word")
    wait_for_answer(page, 3, 2)  # the previous question stays
    field.fill("kettle")
    field.press("Enter")
    page.wait_for_function(f"{PRESSED}[1] === 5 && {PRESSED}.length === 2")
    expect(page.locator(f"{QUESTION} .failed")).to_be_hidden()

    expect(page.locator("#why-tabs")).to_be_hidden()  # below the picture, all methods are folded
    page.locator("#why-fold > summary").click()
    expect(page.locator("#panel-why-tokens .matrix")).to_be_visible()
    page.wait_for_function(IDLE)
    cell = page.locator(".matrix td > button").first
    cell.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("[data-slot=test] table")).to_be_visible()
    expect(page.locator("[data-slot=test]")).to_contain_text("it is hidden")
    page.wait_for_function(IDLE)
    no_faults(page, name="why-tokens")

    page.get_by_role("tab", name="Parts", exact=True).click()
    page.locator(f"{QUESTION} .against .chip").first.click()
    row = page.evaluate(PRESSED)[0]
    wait_for_answer(page, row, 0)
    page.get_by_role("button", name="Copy link").locator("visible=true").click()
    link = page.wait_for_function("navigator.clipboard.readText().then((text) => text.includes('tab=why') && text)")
    address = link.json_value()
    assert "panel=why-parts" in address and "#" in address and "text=" not in address.split("#")[0]
    page.locator("#tab-explorer-button").click()
    page.wait_for_function("document.querySelectorAll('.mark.pinned').length > 0")
    expect(page.locator(".atlas-explorer .status")).to_contain_text(re.compile("Pinned"))

    linked = open_app(f"{app_url}#{address.split('#')[1]}")
    linked.wait_for_selector("#panel-why-parts .matrix")
    wait_for_answer(linked, row, 0)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_question_stands_above_its_answer_which_folds_to_its_headline(tiny_url, open_page, width) -> None:
    page = open_page(f"{tiny_url}#tab=why", width=width, height=844)
    headline, picture = page.locator(f"{QUESTION} .headline"), page.locator(".why-picture")
    expect(picture).to_be_visible()
    pressed = page.locator(f"{QUESTION} .chip[aria-pressed=true]")
    parts = [*pressed.all(), headline, picture]
    tops = [part.bounding_box()["y"] for part in parts]
    assert len(tops) == 4 and tops == sorted(tops), tops
    for chip in pressed.all():  # in a row that scrolls on a phone
        expect(chip).to_be_in_viewport(ratio=0.9)
    page.locator("#why-fold > summary").click()
    expect(picture).to_be_hidden()
    expect(headline).to_be_visible()
    expect(page.locator("#why-tabs")).to_be_visible()
    page.locator("#why-fold > summary").click()
    expect(picture).to_be_visible()


@pytest.mark.long
def test_a_narrow_page_opens_with_a_question(app_url, open_app, trace, shipped_translators) -> None:
    page = open_app(f"{app_url}#tab=why&panel=why-tokens", width=390, dark=True, locale="de-DE")
    question = PageQuestion.of(trace, None).question(next(iter(shipped_translators.values())), trace)
    wait_for_answer(page, question.step, list_contrasts(trace, question.step).index(question.contrast_id))
    page.wait_for_selector("#panel-why-tokens tr[data-key='integrated_gradients'] button")
    page.get_by_role("button", name="nichts", exact=True).click()
    page.wait_for_function(f"{PRESSED}[1] === 5")
    expect(page.locator(f"{QUESTION} .metric").first).to_contain_text("nicht log p")
    page.wait_for_function(IDLE)
    assert page.evaluate(NAMED) == [True, True], "a word of the headline is in sight, and the table can be scrolled"
    no_faults(page, name="why-390-dark")
