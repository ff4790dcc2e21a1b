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
from tests.page.browser import FIELD, open_more, open_tab, pick_example, submit
from tests.page.explorer.page import SHOWN

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
def page(url, open_app, gate, monkeypatch) -> Page:
    """The app over the tiny model, whose translations of blocked texts wait."""
    translate = Translator.translate

    def late(self, text: str, *arguments, **options):
        gate.pass_through(text)
        return translate(self, text, *arguments, **options)

    page = open_app(url)
    page.wait_for_selector(".atlas-explorer .thumbnail")
    monkeypatch.setattr(Translator, "translate", late)
    return page


def expect_everywhere(page: Page, text: str) -> None:
    """Check that the text field, the header and the explorer's menu show this sentence, and that nothing is busy."""
    expect(page.locator(FIELD)).to_have_value(text)
    expect(page.locator(".atlas-translation .source")).to_have_text(text)
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "false")
    expect(page.locator(SHOWN)).to_contain_text(text[:20])


def follow_link(page: Page, text: str, **fields: str) -> None:
    link = "fields => (location.hash = '#' + new URLSearchParams({ direction: 'de-en', ...fields }))"
    page.evaluate(link, {"text": text, **fields})


def click_example(page: Page, text: str) -> None:
    page.locator("#examples .opens").click()
    page.locator("#examples .example", has_text=text).click()


@pytest.mark.parametrize("is_first_answered_first", [False, True])
@pytest.mark.parametrize(
    "requests",
    [
        ((submit, FIRST), (submit, SECOND)),
        ((click_example, SENTENCES[0]), (click_example, "Ich möchte ein Bier, bitte.")),
        ((follow_link, FIRST), (submit, SECOND)),
    ],
    ids=["sentences", "examples", "a link and a sentence"],
)
def test_of_two_fast_requests_the_second_is_shown(page, gate, requests, is_first_answered_first) -> None:
    texts = [text for _, text in requests]
    gate.block(*texts)
    for request, text in requests:
        request(page, text)  # the second before the first is answered
        if request is follow_link:  # the page hears of its new address a little later
            gate.wait_for(text)
    gate.wait_for(texts[1])
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "true")
    for text in texts if is_first_answered_first else texts[::-1]:
        gate.release(text)
        page.wait_for_timeout(300)
        if text == texts[1]:  # it is shown whether or not the first one was answered
            expect_everywhere(page, text)
    expect_everywhere(page, texts[1])


def test_text_that_is_typed_but_not_submitted_stays_in_the_field(page, gate) -> None:
    gate.block(FIRST, SECOND)
    for text in (FIRST, SECOND):
        submit(page, text)
    gate.wait_for(SECOND)
    page.locator(FIELD).fill(THIRD)
    gate.release(FIRST, SECOND)
    expect(page.locator(".atlas-translation .source")).to_have_text(SECOND)
    expect(page.locator(FIELD)).to_have_value(THIRD)


def test_an_error_is_shown_beside_the_earlier_translation(page, gate) -> None:
    gate.block(FIRST)
    submit(page, FIRST)
    gate.wait_for(FIRST)
    submit(page, "   ")
    expect(page.locator(".notice.error")).to_contain_text("The text is empty")
    gate.release(FIRST)
    expect(page.locator(".atlas-translation .source")).to_have_text(FIRST)
    expect(page.locator(".notice.error")).to_contain_text("The text is empty")
    expect(page.locator(SHOWN)).to_contain_text(FIRST[:20])


def test_of_two_links_the_second_opens_its_sentence_and_its_tab(page, gate) -> None:
    gate.block(FIRST, SECOND)
    follow_link(page, FIRST, tab="stepper")
    follow_link(page, SECOND, tab="positions")
    gate.wait_for(SECOND)
    gate.release(SECOND, FIRST)
    expect(page.locator("#panel-position-table")).to_be_visible()
    open_tab(page, "Attention")
    expect_everywhere(page, SECOND)


def test_of_two_tokens_pinned_fast_the_second_is_asked_about(page, gate, monkeypatch) -> None:
    from attention_atlas.viz.questions import panels

    read_question = panels.read_question

    def late(data, trace, question):
        gate.pass_through(f"step {data.get('step')}")
        return read_question(data, trace, question)

    monkeypatch.setattr(panels, "read_question", late)
    open_tab(page, "Step by step")
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
    open_more(page, "Table")
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
    sentences = SENTENCES[::2]
    examples = [SENTENCES[0], "Ich möchte ein Bier, bitte."]
    tabs = ("Attention", "Step by step", "Why", "More")
    for sequence in range(sequences):
        last = None
        for _ in range(chance.randint(3, 8)):
            move = chance.choice(("type", "type", "example", "tab", "head", "token"))
            if move == "type":
                last = chance.choice([text for text in sentences if text != last])
                submit(page, last)
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
            submit(page, last)
        try:
            expect_everywhere(page, last)
        except AssertionError as error:
            raise AssertionError(f"sequence {sequence}: the page does not show {last!r}") from error
