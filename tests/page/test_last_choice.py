"""The page shows the answer to its last request, whatever order the answers arrive in: the tests delay answers."""

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


class Gate:
    """Blocks the handlers of named requests until the test releases them.

    names: request -> (set when its handler has started, set when it may go on).
    """

    def __init__(self) -> None:
        self.names: dict[str, tuple[threading.Event, threading.Event]] = {}

    def block(self, *names: str) -> None:
        for name in names:
            self.names[name] = threading.Event(), threading.Event()

    def pass_through(self, name: str) -> None:
        """Called by a handler: wait here if its request is blocked."""
        if name in self.names:
            started, released = self.names[name]
            started.set()
            assert released.wait(60), f"{name!r} was never released"

    def wait_for(self, name: str) -> None:
        """Wait until the handler of this request has started."""
        assert self.names[name][0].wait(30), f"{name!r} was not requested"

    def release(self, *names: str) -> None:
        for name in names:
            self.names.pop(name)[1].set()


@pytest.fixture()
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.release(*tuple(gate.names))


@pytest.fixture(scope="module")
def url(tiny_checkpoint, serve) -> str:
    return serve(shell.build(Translators([Translator.load(tiny_checkpoint, device="cpu")])))


@pytest.fixture()
def page(url, open_page, gate, monkeypatch) -> Page:
    """The app over the tiny model, whose translations of blocked texts wait."""
    translate = Translator.translate

    def late(self, text: str, *arguments, **options):
        gate.pass_through(text)
        return translate(self, text, *arguments, **options)

    page = open_page(url)
    page.wait_for_selector("#translation-text")
    page.wait_for_selector(".atlas-explorer .thumbnail")
    monkeypatch.setattr(Translator, "translate", late)
    return page


def type_in(page: Page, text: str) -> None:
    box = page.locator("#source-text textarea")
    box.fill(text)
    box.press("Enter")


def expect_everywhere(page: Page, text: str) -> None:
    """Check that the text field, the header and the explorer's menu show this sentence, and that nothing is busy."""
    expect(page.locator("#source-text textarea")).to_have_value(text)
    expect(page.locator(".atlas-translation .source")).to_have_text(text)
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "false")
    expect(page.locator(".field.history select option:checked")).to_contain_text(text[:20])


@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_of_two_sentences_typed_fast_the_second_is_shown(page, gate, order) -> None:
    gate.block(FIRST, SECOND)
    type_in(page, FIRST)
    type_in(page, SECOND)  # before the first answer
    gate.wait_for(SECOND)
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "true")
    for text in order:
        gate.release(text)
        page.wait_for_timeout(300)
    expect_everywhere(page, SECOND)


def test_text_that_is_typed_but_not_submitted_stays_in_the_field(page, gate) -> None:
    gate.block(FIRST, SECOND)
    for text in (FIRST, SECOND):
        type_in(page, text)
    gate.wait_for(SECOND)
    page.locator("#source-text textarea").fill(THIRD)
    gate.release(FIRST, SECOND)
    expect(page.locator(".atlas-translation .source")).to_have_text(SECOND)
    expect(page.locator("#source-text textarea")).to_have_value(THIRD)


def test_an_error_is_shown_beside_the_earlier_translation(page, gate) -> None:
    gate.block(FIRST)
    type_in(page, FIRST)
    gate.wait_for(FIRST)
    type_in(page, "   ")
    expect(page.locator(".notice.error")).to_contain_text("The text is empty")
    gate.release(FIRST)
    expect(page.locator(".atlas-translation .source")).to_have_text(FIRST)
    expect(page.locator(".notice.error")).to_contain_text("The text is empty")
    expect(page.locator(".field.history select option:checked")).to_contain_text(FIRST[:20])


def test_of_two_examples_clicked_fast_the_second_is_shown(page, gate) -> None:
    first, second = SENTENCES[0], "Ich möchte ein Bier, bitte."
    gate.block(first, second)
    for text in (first, second):
        page.locator("#examples .opens").click()
        page.locator("#examples .example", has_text=text).click()
    gate.wait_for(second)
    gate.release(second)
    expect_everywhere(page, second)
    gate.release(first)
    page.wait_for_timeout(300)
    expect_everywhere(page, second)


def test_of_a_link_and_a_sentence_the_later_is_shown(page, gate) -> None:
    gate.block(FIRST)
    page.evaluate("text => (location.hash = '#' + new URLSearchParams({ text, direction: 'de-en' }))", FIRST)
    gate.wait_for(FIRST)
    type_in(page, SECOND)
    expect_everywhere(page, SECOND)
    gate.release(FIRST)
    page.wait_for_timeout(300)
    expect_everywhere(page, SECOND)


def test_of_two_links_the_second_opens_its_sentence_and_its_tab(page, gate) -> None:
    gate.block(FIRST, SECOND)
    link = "([text, tab]) => (location.hash = '#' + new URLSearchParams({ text, direction: 'de-en', tab }))"
    page.evaluate(link, [FIRST, "stepper"])
    page.evaluate(link, [SECOND, "positions"])
    gate.wait_for(SECOND)
    gate.release(SECOND)
    gate.release(FIRST)
    expect(page.get_by_role("tab", name="Positions", exact=True)).to_have_attribute("aria-selected", "true")
    open_tab(page, "Attention")
    expect_everywhere(page, SECOND)


def test_of_two_tokens_pinned_fast_the_second_is_asked_about(page, gate, monkeypatch) -> None:
    from attention_atlas.viz.questions import panels

    read_question = panels.read_question

    def late(data, trace, question):
        gate.pass_through(f"step {data.get('step')}")
        return read_question(data, trace, question)

    monkeypatch.setattr(panels, "read_question", late)
    gate.block("step 1")
    for step in (1, 2):
        page.locator(f".atlas-translation button.chip[data-step='{step}']").click()
    gate.wait_for("step 1")
    page.wait_for_timeout(300)
    gate.release("step 1")
    open_tab(page, "Why")
    expect(page.locator("#why-question .line").first.locator("button").nth(2)).to_have_attribute("aria-pressed", "true")


def test_of_a_sliders_positions_moved_through_fast_the_last_is_computed(page, gate, monkeypatch) -> None:
    """Of all positions set while the first one is computed, only the last is computed."""
    from attention_atlas.viz.panels.panel import Panel

    content, computed = Panel.content, []

    def late(self, scene, *values):
        if self.name == "position-table":
            computed.append(values)
            gate.pass_through(f"computation {len(computed)}")
        return content(self, scene, *values)

    monkeypatch.setattr(Panel, "content", late)
    open_tab(page, "Positions")
    panel = page.locator("#panel-position-table")
    root = panel.locator(".atlas-root")
    expect(root).to_have_attribute("aria-busy", "false")
    before, drawn = len(computed), int(root.get_attribute("data-drawn"))
    gate.block(f"computation {before + 1}")
    slider = page.get_by_role("slider", name="Positions").first
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    gate.wait_for(f"computation {before + 1}")
    gate.release(f"computation {before + 1}")
    expect(root).to_have_attribute("data-drawn", str(drawn + 2))
    assert len(computed) == before + 2
    assert str(int(float(slider.input_value()))) in {str(value) for value in computed[-1]}


@pytest.mark.parametrize(
    "sequences", [pytest.param(5, marks=pytest.mark.long), pytest.param(100, marks=pytest.mark.endure)]
)
def test_in_random_sequences_of_actions_the_last_sentence_is_shown(page, monkeypatch, sequences) -> None:
    """In random, seeded sequences of actions, answers take random times, so that later ones overtake earlier ones."""
    chance, translate = random.Random(26), Translator.translate

    def late(self, text: str, *arguments, **options):
        time.sleep(chance.choice((0.0, 0.05, 0.2, 0.5)))
        return translate(self, text, *arguments, **options)

    monkeypatch.setattr(Translator, "translate", late)
    sentences = [*SENTENCES[::2]]
    examples = [SENTENCES[0], "Ich möchte ein Bier, bitte."]
    tabs = ("Attention", "Step by step", "Why", "Heads")
    for sequence in range(sequences):
        last = None
        for _ in range(chance.randint(3, 8)):
            move = chance.choice(("type", "type", "example", "tab", "head", "token"))
            if move == "type":
                last = chance.choice([text for text in sentences if text != last])
                type_in(page, last)
            elif move == "example":
                number = chance.randrange(2)
                last = examples[number]
                pick_example(page, number)
            elif move == "tab":
                open_tab(page, chance.choice(tabs))
            elif move == "head" and page.locator(".atlas-explorer .thumbnail:visible").count():
                page.locator(".atlas-explorer .thumbnail:visible").nth(chance.randrange(8)).click()
            elif move == "token":
                page.evaluate("document.querySelector('.atlas-translation button.chip')?.click()")
            page.wait_for_timeout(chance.choice((0, 0, 60, 250)))
        if last is None:
            last = chance.choice(sentences)
            type_in(page, last)
        try:
            expect_everywhere(page, last)
        except AssertionError as error:
            raise AssertionError(f"sequence {sequence}: the page does not show {last!r}") from error
