"""What the explorer shows while it and the server do not know the same, in a real browser: either waits for the other.
test_wire.py has the rules by themselves."""

from __future__ import annotations

import threading

import pytest

from bench.made.synthetic import random_trace
from tests.page.explorer.page import NOTE_HEARD, wait_for_heard
from viz.ui import explorer
from viz.ui.session import Selection

pytestmark = pytest.mark.browser


def happened(event: threading.Event) -> None:
    """Waits for what the test holds its server back for; longer than any machine should take."""
    assert event.wait(30), "what is waited for did not happen"


def test_a_head_chosen_while_a_sentence_comes_stays(open_traces, hand_made_trace, monkeypatch):
    """The sentence brings the selection that the server knows, and of the latest click it does not know yet."""
    known, drawn_again = explorer.chosen, threading.Event()

    def late(trace, data):
        happened(drawn_again)
        return known(trace, data)

    monkeypatch.setattr(explorer, "chosen", late)
    page = open_traces(hand_made_trace, random_trace(9, 7, layers=3, heads=4))
    page.evaluate(NOTE_HEARD)
    page.evaluate("""() => {
      window.__seen = [];
      document.addEventListener('atlas-drawn', () =>
        window.__seen.push(document.querySelector('.heading-line').textContent));
      document.querySelector(".thumbnail[data-layer='1'][data-head='2']").click();
      document.querySelector('#next').click();
    }""")
    page.wait_for_function("window.__seen.length > 0")
    assert page.evaluate("window.__seen") == ["Layer 2 · Head 3"]
    drawn_again.set()
    wait_for_heard(page, 2)
    assert page.locator(".heading-line").inner_text() == "Layer 2 · Head 3"


def test_a_sentence_that_comes_after_what_was_chosen_meanwhile_leaves_it(open_traces, hand_made_trace, monkeypatch):
    """It brings the selection of when it was asked for, and the server has answered to a later one by then."""
    made, asked, heard = explorer.sent, threading.Event(), threading.Event()

    def late(*given):
        found = made(*given)
        asked.set()
        happened(heard)
        return found

    page = open_traces(hand_made_trace, random_trace(9, 7, layers=3, heads=4))
    page.evaluate(NOTE_HEARD)
    monkeypatch.setattr(explorer, "sent", late)
    page.locator("#next").click()
    happened(asked)
    page.locator(".thumbnail[data-layer='1'][data-head='2']").click()
    wait_for_heard(page, 2)
    heard.set()
    page.wait_for_function("document.querySelector('.field.history select').options.length === 2")
    assert page.locator(".heading-line").inner_text() == "Layer 2 · Head 3"


def test_the_server_hears_of_the_last_of_heads_chosen_in_quick_succession(open_traces, hand_made_trace, monkeypatch):
    """All three are told before the first is dealt with."""
    known, heard, told = explorer.chosen, [], threading.Event()

    def slow(trace, data):
        found = known(trace, data)
        heard.append(found.head)
        happened(told)
        return found

    monkeypatch.setattr(explorer, "chosen", slow)
    page = open_traces(hand_made_trace)
    for head in (1, 2, 3):
        with page.expect_request(lambda request, head=head: f'"head":{head},' in (request.post_data or "")):
            page.locator(f".thumbnail[data-layer='1'][data-head='{head}']").click()
    told.set()
    page.wait_for_function("document.querySelector('#selection textarea').value.startsWith('cross 1 3')")
    assert heard == [1, 2, 3]
    assert page.locator(".heading-line").inner_text() == "Layer 2 · Head 4"


@pytest.mark.long
def test_a_head_chosen_before_the_one_before_is_told_twice_stays(open_traces, hand_made_trace, monkeypatch):
    """Two changes in quick succession are both answered with the second; a third is not known yet when that comes."""
    known, told_as = explorer.chosen, explorer.selection_dict
    latest, answers = [], []
    second, third, gone_on, done = (threading.Event() for _ in range(4))

    def chosen(trace, data):
        found = known(trace, data)
        if found.head == 3:
            third.set()
            happened(done)
        latest.append(found)
        if found.head == 2:
            second.set()
        return found

    def answered(selection):
        answers.append(selection)
        happened(second if len(answers) == 1 else gone_on)
        return told_as(latest[-1])

    monkeypatch.setattr(explorer, "chosen", chosen)
    monkeypatch.setattr(explorer, "selection_dict", answered)
    page = open_traces(hand_made_trace)
    page.evaluate(NOTE_HEARD)
    for head in (1, 2):
        page.locator(f".thumbnail[data-layer='1'][data-head='{head}']").click()
        page.wait_for_function(f"document.querySelector('#selection textarea').value.startsWith('cross 1 {head}')")
    wait_for_heard(page, 2)
    page.locator(".thumbnail[data-layer='1'][data-head='3']").click()
    happened(third)
    gone_on.set()
    wait_for_heard(page, 2, 2)
    assert page.locator(".heading-line").inner_text() == "Layer 2 · Head 4"
    done.set()
    wait_for_heard(page, 2, 2, 3)
    assert page.locator(".heading-line").inner_text() == "Layer 2 · Head 4"


def test_a_head_chosen_again_elsewhere_before_the_answer_comes_is_shown(open_traces, hand_made_trace, monkeypatch):
    """Both changes are answered with it, and it is what the explorer heard last: no news, and yet no echo."""
    told_as, back = explorer.selection_dict, threading.Event()

    def answered(selection):
        happened(back)
        return told_as(Selection())

    monkeypatch.setattr(explorer, "selection_dict", answered)
    page = open_traces(hand_made_trace)
    page.evaluate(NOTE_HEARD)
    page.locator(".thumbnail[data-layer='1'][data-head='2']").click()
    page.wait_for_function("document.querySelector('#selection textarea').value.startsWith('cross 1 2')")
    page.locator("#elsewhere").click()
    page.wait_for_function("document.querySelector('#selection textarea').value.startsWith('cross 0 0')")
    assert page.locator(".heading-line").inner_text() == "Layer 2 · Head 3"
    back.set()
    wait_for_heard(page, 0, 0)
    assert page.locator(".heading-line").inner_text() == "Layer 1 · Head 1"
