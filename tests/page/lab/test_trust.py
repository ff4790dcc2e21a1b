"""Doubts about a translation in a real browser: the line in the header and its panels, of a model with all signals."""

from __future__ import annotations

import shutil
import threading

import pytest
from playwright.sync_api import expect

from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.questions import header as questions
from tests.conftest import SENTENCES
from tests.page.browser import FIELD, no_faults, translate
from tests.page.explorer.page import SHOWN
from tests.page.lab.test_lab import open_panel
from tests.trusted import trusted

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def url(serve, tiny_checkpoint, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("trust")
    model = trusted(shutil.copytree(tiny_checkpoint, folder / "tiny"))
    other = model.edit({})
    other.digest, other.name = "1" * 16, "another"
    return serve(shell.build(Translators([model, other])))


@pytest.mark.parametrize(("width", "dark"), [(390, True), pytest.param(1280, False, marks=pytest.mark.long)])
def test_the_line_of_doubts_links_to_its_panels_and_can_be_closed(url, open_app, width, dark) -> None:
    page = open_app(url, width=width, dark=dark)
    line = page.locator(".doubts")
    expect(line).to_contain_text("(such warnings are right 75% of the time)")
    no_faults(page, name=f"doubts-{'dark' if dark else 'light'}-{width}")
    links = line.locator("button:not(.close)")
    assert links.count() >= 4 and "Right in 75%" in links.first.get_attribute("aria-description")
    leads = {"is not based on": "#panel-trust .atlas-panel", "as probable without": "#panel-why-tokens .atlas-panel"}
    for words, panel in leads.items():
        links.filter(has_text=words).focus()
        page.keyboard.press("Enter")
        expect(page.locator(panel)).to_be_visible()
    links.filter(has_text="unsure between").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Step by step", exact=True)).to_have_attribute("aria-selected", "true")
    line.get_by_role("button", name="Close").focus()
    page.keyboard.press("Enter")
    expect(line).to_have_count(0)


def test_doubts_arrive_after_the_map_and_belong_to_the_shown_translation(url, open_app, monkeypatch) -> None:
    """The first sentence's doubts are delayed until the second sentence's are shown."""
    warnings_about, requested, released = questions.warnings_about, threading.Event(), threading.Event()
    first, second = SENTENCES[2], SENTENCES[4]

    def late(trace: TranslationTrace, made_by: Translator) -> list[dict]:
        if trace.source_text == first:
            requested.set()
            assert released.wait(30), "it was never released"
        return [{**warning, "text": trace.source_text} for warning in warnings_about(trace, made_by)[:1]]

    page = open_app(url)
    page.wait_for_selector(".atlas-explorer .thumbnail")
    monkeypatch.setattr(questions, "warnings_about", late)
    line = page.locator(".doubts")
    for text in (first, second, second):
        translate(page, text)
        expect(page.locator(SHOWN)).to_contain_text(text[:20])
        if text == first:
            assert requested.wait(30), "no request"
            expect(line).to_have_count(0)
    expect(line).to_contain_text(second)
    released.set()
    page.wait_for_timeout(300)
    expect(line).to_have_count(1)
    expect(line).to_contain_text(second)


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(390, True), pytest.param(1280, False, marks=pytest.mark.endure)])
def test_the_panels_on_doubts_work_by_keyboard_and_are_accessible(url, open_app, width, dark) -> None:
    page = open_app(url, width=width, dark=dark)
    for title, words in (
        ("Trust", "labelled by people"),
        ("Phenomena", "polarity"),
        ("Two models, one sentence", "another"),
        ("Two translations", "Example"),
    ):
        panel = open_panel(page, "More", title)
        expect(panel).to_contain_text(words)
        no_faults(page, panel, name=f"full-{title.replace(' ', '-').lower()}-{'dark' if dark else 'light'}-{width}")
    menu = page.locator(".atlas-panel:visible select")
    menu.focus()
    own, card = page.locator(FIELD).input_value(), page.locator(".atlas-panel:visible .card").first
    for key, text in (("ArrowDown", "Diese alten Bücher"), ("ArrowUp", own), ("End", ""), ("Home", own)):
        page.keyboard.press(key)
        expect(card).to_contain_text(text)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(card).to_contain_text("Viele Kinder spielen im Garten.")
    marked = page.locator(".atlas-panel:visible tr.marked td")
    first, second = marked.nth(0).inner_text(), marked.nth(2).inner_text()
    page.locator(".atlas-panel:visible .action").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".atlas-translation .source")).to_have_text("Viele Kinder spielen im Garten.")
    why = page.locator(".atlas-question")
    expect(why).to_be_visible()
    expect(why).to_contain_text(first.strip("▁"))
    expect(why.locator("[aria-pressed=true]", has_text=second.strip("▁")).first).to_be_visible()
