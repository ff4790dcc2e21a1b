"""The page's end of questions and answers, by itself in a browser: a component whose server is the test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.page.browser import load_modules
from viz.ui.rpc import stale

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
        page.evaluate(COMPONENT, options)
        return page

    yield start
    for page in pages:
        page.close()


def send(page: Page, number: int | None, at: int, **content) -> list:
    """Send a value; all that the component has heard."""
    return page.evaluate(
        "value => { window.value(value); return heard; }", {"id": number, "at": at, "json": json.dumps(content)}
    )


def test_answers_find_their_questions_in_whatever_order_they_come(component) -> None:
    page = component()
    for name in ("a", "b"):
        page.evaluate("name => ask({ name, holds: [1] })", name)
    assert page.evaluate("sent") == [
        {"event": "act", "name": "a", "holds": [1], "id": 1},
        {"event": "act", "name": "b", "holds": [1], "id": 2},
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
    assert len(send(page, None, 15, x="old")) == 1
    assert send(page, None, 30, x="newest")[-1] == ["told", {"x": "newest"}]


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
    page.evaluate("""ask({ name: 'a' }, 50), ask({ name: 'b' }, 50), window.value({ id: 2, at: 20, json: "{}" })""")
    page.wait_for_function("sent.length === 3")
    page.wait_for_timeout(150)
    assert [question["name"] for question in page.evaluate("sent")] == ["a", "b", "a"]
    assert page.evaluate("sent[0].id === sent[2].id")


def test_what_the_page_says_to_itself_makes_nothing_old(component) -> None:
    """As viz.ui.rpc.stale does, by the visitor's clock instead of the server's."""
    page = component(replaces=True)
    page.evaluate("ask({ name: 'a' })")
    send(page, 1, 10, more=True)
    for told in ("first", "second"):
        page.evaluate(f"window.value(({stale()})())")
        assert page.evaluate("heard.at(-1)") == ["told", {"stale": True}], told
    assert send(page, 1, 10)[-1] == ["answer", "a", {}]
