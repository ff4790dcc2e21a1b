"""The page's end of questions and answers, by itself in a browser: a component whose server is the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.page.browser import load_modules

pytestmark = pytest.mark.browser

COMPONENT = """(options) => {
  window.sent = []; window.heard = [];
  const api = { onValue: (take) => (window.value = take), trigger: (event, data) => sent.push({ event, ...data }) };
  window.rpc = atlas.connect(api, (content) => heard.push(["told", content]), options);
  window.ask = (data, patience, options) =>
    rpc.ask("act", data, (content) => heard.push(["answer", data.name, content]), patience, options);
}"""


@pytest.fixture()
def component(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """component(replaces=..) -> a page in which ask() asks, value() is what the server sends."""
    pages = []

    def start(**options) -> Page:
        page = chromium.new_page()
        pages.append(page)
        load_modules(page, "core/rpc.js")
        page.evaluate("document.head.innerHTML = '<meta name=atlas-process content=p1>'")
        page.evaluate(COMPONENT, options)
        return page

    yield start
    for page in pages:
        page.close()


def send(page: Page, number: int | None, mark: object, *, after: int | None = None, **content) -> list:
    """Send a value; all that the component has heard."""
    value = {"id": number, "after": after, "mark": mark, "json": json.dumps(content)}
    return page.evaluate("value => { window.value(value); return heard; }", value)


def test_answers_find_their_questions_in_whatever_order_they_come(component) -> None:
    page = component()
    for name in ("a", "b"):
        page.evaluate("name => ask({ name, holds: [1] })", name)
    assert page.evaluate("sent") == [
        {"event": "act", "name": "a", "holds": [1], "id": 1, "process": "p1"},
        {"event": "act", "name": "b", "holds": [1], "id": 2, "process": "p1"},
    ]
    send(page, 2, 20, x=2)
    send(page, None, 5, selection=1)
    assert send(page, 1, 10, x=1) == [["answer", "b", {"x": 2}], ["told", {"selection": 1}], ["answer", "a", {"x": 1}]]


def test_an_answer_that_came_twice_counts_once_and_one_in_parts_counts_each_time(component) -> None:
    page = component()
    page.evaluate("ask({ name: 'a' })")
    send(page, 1, 10, part=1)
    assert len(send(page, 1, 10, part=2)) == 2, "the same answer goes on"
    assert len(send(page, 1, 11, part=1)) == 2, "the question had been asked twice"
    assert len(send(page, 9, 12, part=1)) == 2, "nobody asked"
    page.evaluate("ask({ name: 'b' })")
    assert len(send(page, 1, 10, part=3)) == 2, "the next question is under way"
    assert send(page, 2, 13)[-1] == ["answer", "b", {}]


def test_where_contents_replace_one_another_what_was_asked_earlier_is_dropped(component) -> None:
    page = component(replaces=True)
    page.evaluate("ask({ name: 'slow' })")
    page.evaluate("ask({ name: 'fast' })")
    send(page, 2, 20, x="new")
    assert send(page, 1, 10, x="old") == [["answer", "fast", {"x": "new"}]]
    assert len(send(page, None, 15, after=1, x="old")) == 1
    assert send(page, None, 30, after=3, x="newest")[-1] == ["told", {"x": "newest"}]
    assert send(page, None, 40, x="unasked")[-1] == ["told", {"x": "unasked"}]


def test_the_questions_of_all_components_are_in_one_order(component) -> None:
    page = component(replaces=True)
    page.evaluate("ask({ name: 'mine' })")
    page.evaluate("""() => {
      window.other = atlas.connect({ onValue: () => {}, trigger: (event, data) => sent.push({ event, ...data }) });
      other.tell("pin", { step: 3 });
      other.ask("act", {}, () => {});
      other.tell("publish", {}, 2);
    }""")
    assert [one["id"] for one in page.evaluate("sent")] == [1, 2, 3, 2]
    send(page, None, "b", after=3, x="of another's question")
    assert len(send(page, 1, "a", x="asked before")) == 1


def test_an_error_takes_no_place_and_stands_beside_an_earlier_answer_that_comes_later(component) -> None:
    page = component(replaces=True)
    for name in ("a", "b"):
        page.evaluate("name => ask({ name })", name)
    send(page, 2, 20, error="no")
    assert send(page, 1, 10, x=1) == [
        ["answer", "b", {"error": "no"}],
        ["answer", "a", {"x": 1}],
        ["answer", "b", {"error": "no"}],
    ]


def test_a_last_question_whose_answer_was_lost_on_the_way_is_asked_again(component) -> None:
    """Of two values that arrive together, Gradio passes one on."""
    page = component(replaces=True)
    page.evaluate("ask({ name: 'a' }), ask({ name: 'b' })")
    page.evaluate("rpc.ended()")
    send(page, 1, 10, x=1)
    page.evaluate("rpc.ended()")
    page.wait_for_function("sent.length === 3")
    assert page.evaluate("sent[2].name === 'b' && sent[2].id === sent[1].id")
    assert send(page, 2, 20, x=2)[-1] == ["answer", "b", {"x": 2}]
    page.evaluate("rpc.ended(), ask({ name: 'c' }), rpc.ended({ failed: true })")
    assert not page.evaluate("rpc.waiting()")
    page.wait_for_timeout(200)
    assert page.evaluate("sent.length") == 4


def test_an_answer_beside_the_contents_is_neither_dropped_nor_makes_them_old(component) -> None:
    page = component(replaces=True)
    page.evaluate("ask({ name: 'part' }, null, { beside: true })")
    page.evaluate("ask({ name: 'whole' })")
    send(page, 2, 20, x="new")
    assert send(page, 1, 10, x="slow")[-1] == ["answer", "part", {"x": "slow"}]
    page.evaluate("ask({ name: 'later part' }, null, { beside: true })")
    send(page, 3, 40, x="fast")
    assert send(page, None, 30, x="newest")[-1] == ["told", {"x": "newest"}]


def test_a_question_without_an_answer_is_asked_once_more(component) -> None:
    page = component()
    # At once, so that no pause of the browser's makes the answer come too late.
    page.evaluate("""ask({ name: 'a' }, 50), ask({ name: 'b' }, 50), window.value({ id: 2, mark: 1, json: "{}" })""")
    page.wait_for_function("sent.length === 3")
    page.wait_for_timeout(150)
    assert [question["name"] for question in page.evaluate("sent")] == ["a", "b", "a"]
    assert page.evaluate("sent[0].id === sent[2].id")
