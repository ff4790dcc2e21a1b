"""What was asked last is what stands there, whatever the answers' order: each of these tests holds answers back."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from tests.conftest import SENTENCES
from tests.page.browser import open_tab, pick_example

pytestmark = pytest.mark.browser

FIRST, SECOND, THIRD = SENTENCES[2], SENTENCES[4], SENTENCES[6]


class Held:
    """Answers that wait until they are let go, by what is asked; each tells when its handler has it."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[threading.Event, threading.Event]] = {}

    def hold(self, *names: str) -> None:
        for name in names:
            self.names[name] = threading.Event(), threading.Event()

    def __call__(self, name: str) -> None:
        """In a handler: wait, if this is held."""
        if name in self.names:
            asked, let_go = self.names[name]
            asked.set()
            assert let_go.wait(60), f"{name!r} was never let go"

    def wait_for(self, name: str) -> None:
        assert self.names[name][0].wait(30), f"{name!r} was not asked"

    def let_go(self, *names: str) -> None:
        for name in names:
            self.names.pop(name)[1].set()


@pytest.fixture()
def held() -> Iterator[Held]:
    one = Held()
    yield one
    one.let_go(*tuple(one.names))


@pytest.fixture(scope="module")
def served(tiny_checkpoint) -> shell.Page:
    return shell.build(Translators([Translator.load(tiny_checkpoint, device="cpu")]))


@pytest.fixture(scope="module")
def url(served, serve) -> str:
    return serve(served)


@pytest.fixture()
def page(url, open_page, held, monkeypatch) -> Page:
    """The app over the tiny model, whose translations of what is held wait."""
    translate = Translator.translate

    def late(self, text: str, *given, **options):
        held(text)
        return translate(self, text, *given, **options)

    page = open_page(url)
    page.wait_for_selector("#translation-text")
    page.wait_for_selector(".atlas-explorer .thumbnail")
    monkeypatch.setattr(Translator, "translate", late)
    return page


def type_in(page: Page, text: str) -> None:
    box = page.locator("#source-text textarea")
    box.fill(text)
    box.press("Enter")


def stands(page: Page, text: str) -> None:
    """On every part of the page, now and after all that may still come."""
    expect(page.locator("#source-text textarea")).to_have_value(text)
    expect(page.locator(".atlas-translation .source")).to_have_text(text)
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "false")
    shown = page.locator(".field.history select option:checked")
    expect(shown).to_contain_text(text[:20])


@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_of_two_sentences_typed_fast_the_second_stands(page, held, order) -> None:
    held.hold(FIRST, SECOND)
    type_in(page, FIRST)
    type_in(page, SECOND)  # at once: the first one's answer is held back
    held.wait_for(SECOND)
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "true")
    for text in order:
        held.let_go(text)
        page.wait_for_timeout(300)
    stands(page, SECOND)


def test_what_is_typed_and_not_asked_is_not_translated(page, held) -> None:
    held.hold(FIRST, SECOND)
    for text in (FIRST, SECOND):
        type_in(page, text)
    held.wait_for(SECOND)
    page.locator("#source-text textarea").fill(THIRD)
    held.let_go(FIRST, SECOND)
    expect(page.locator(".atlas-translation .source")).to_have_text(SECOND)
    expect(page.locator("#source-text textarea")).to_have_value(THIRD)


def test_an_error_of_the_last_stands_beside_the_translation_before_it(page, held) -> None:
    held.hold(FIRST)
    type_in(page, FIRST)
    held.wait_for(FIRST)
    type_in(page, "   ")
    expect(page.locator(".notice.error")).to_contain_text("The text is empty")
    held.let_go(FIRST)
    expect(page.locator(".atlas-translation .source")).to_have_text(FIRST)
    expect(page.locator(".notice.error")).to_contain_text("The text is empty")
    expect(page.locator(".field.history select option:checked")).to_contain_text(FIRST[:20])


def test_of_two_examples_clicked_fast_the_second_stands(page, held) -> None:
    first, second = SENTENCES[0], "Ich möchte ein Bier, bitte."
    held.hold(first, second)
    for text in (first, second):
        page.locator("#examples .opens").click()
        page.locator("#examples .example", has_text=text).click()
    held.wait_for(second)
    held.let_go(second)
    stands(page, second)
    held.let_go(first)
    page.wait_for_timeout(300)
    stands(page, second)


def test_of_a_link_and_a_sentence_the_later_stands(page, held) -> None:
    held.hold(FIRST)
    page.evaluate("text => (location.hash = '#' + new URLSearchParams({ text, direction: 'de-en' }))", FIRST)
    held.wait_for(FIRST)
    type_in(page, SECOND)
    stands(page, SECOND)
    held.let_go(FIRST)
    page.wait_for_timeout(300)
    stands(page, SECOND)


def test_of_two_links_the_second_opens_its_sentence_and_its_tab(page, held) -> None:
    held.hold(FIRST, SECOND)
    link = "([text, tab]) => (location.hash = '#' + new URLSearchParams({ text, direction: 'de-en', tab }))"
    page.evaluate(link, [FIRST, "stepper"])
    page.evaluate(link, [SECOND, "positions"])
    held.wait_for(SECOND)
    held.let_go(SECOND)
    held.let_go(FIRST)
    expect(page.get_by_role("tab", name="Positions", exact=True)).to_have_attribute("aria-selected", "true")
    open_tab(page, "Attention")
    stands(page, SECOND)


def test_of_two_tokens_pinned_fast_the_second_is_asked_about(page, held, monkeypatch) -> None:
    from attention_atlas.viz.questions import panels

    known = panels.read_question

    def late(data, trace, asked):
        held(f"step {data.get('step')}")
        return known(data, trace, asked)

    monkeypatch.setattr(panels, "read_question", late)
    held.hold("step 1")
    for step in (1, 2):
        page.locator(f".atlas-translation button.chip[data-step='{step}']").click()
    held.wait_for("step 1")
    page.wait_for_timeout(300)
    held.let_go("step 1")
    open_tab(page, "Why")
    expect(page.locator("#why-question .line").first.locator("button").nth(2)).to_have_attribute("aria-pressed", "true")


def test_of_a_panel_s_controls_moved_fast_the_last_position_counts(page, held, monkeypatch) -> None:
    """While the first is computed, of all others only the last is."""
    from attention_atlas.viz.panels.panel import Panel

    known, computed = Panel.content, []

    def late(self, scene, *values):
        if self.name == "position-table":
            computed.append(values)
            held(f"computation {len(computed)}")
        return known(self, scene, *values)

    monkeypatch.setattr(Panel, "content", late)
    open_tab(page, "Positions")
    panel = page.locator("#panel-position-table")
    root = panel.locator(".atlas-root")
    expect(root).to_have_attribute("aria-busy", "false")
    before, drawn = len(computed), int(root.get_attribute("data-drawn"))
    held.hold(f"computation {before + 1}")
    slider = page.get_by_role("slider", name="Positions").first
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    held.wait_for(f"computation {before + 1}")
    held.let_go(f"computation {before + 1}")
    expect(root).to_have_attribute("data-drawn", str(drawn + 2))
    assert len(computed) == before + 2
    assert str(int(float(slider.input_value()))) in {str(value) for value in computed[-1]}


@pytest.mark.parametrize(
    "courses", [pytest.param(5, marks=pytest.mark.long), pytest.param(100, marks=pytest.mark.endure)]
)
def test_whatever_is_typed_clicked_and_switched_the_last_choice_stands(page, monkeypatch, courses) -> None:
    """Courses at random, seeded, in which each answer takes a time of its own: later ones overtake earlier ones."""
    chance, translate = random.Random(26), Translator.translate

    def late(self, text: str, *given, **options):
        time.sleep(chance.choice((0.0, 0.05, 0.2, 0.5)))
        return translate(self, text, *given, **options)

    monkeypatch.setattr(Translator, "translate", late)
    known = [*SENTENCES[::2]]
    examples = [SENTENCES[0], "Ich möchte ein Bier, bitte."]
    tabs = ("Attention", "Step by step", "Why", "Heads")
    for course in range(courses):
        wanted = None
        for _ in range(chance.randint(3, 8)):
            move = chance.choice(("type", "type", "example", "tab", "head", "token"))
            if move == "type":
                wanted = chance.choice([text for text in known if text != wanted])
                type_in(page, wanted)
            elif move == "example":
                number = chance.randrange(2)
                wanted = examples[number]
                pick_example(page, number)
            elif move == "tab":
                open_tab(page, chance.choice(tabs))
            elif move == "head" and page.locator(".atlas-explorer .thumbnail:visible").count():
                page.locator(".atlas-explorer .thumbnail:visible").nth(chance.randrange(8)).click()
            elif move == "token":
                page.evaluate("document.querySelector('.atlas-translation button.chip')?.click()")
            page.wait_for_timeout(chance.choice((0, 0, 60, 250)))
        if wanted is None:
            wanted = chance.choice(known)
            type_in(page, wanted)
        try:
            stands(page, wanted)
        except AssertionError as error:
            raise AssertionError(f"course {course}: {wanted!r} does not stand") from error
