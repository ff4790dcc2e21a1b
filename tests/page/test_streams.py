"""The streams over which answers come: one where something is under way, none else, however their parts overtake."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Page, Request, expect

from tests.conftest import SENTENCES
from tests.page.browser import settle
from viz.ui import header

pytestmark = pytest.mark.browser

# A question through the queue is told its event's number late: by then its answer has come, over the stream of the one
# before.
NUMBER_LATE = """(() => {
  const { fetch } = window;
  let asked = 0;
  window.fetch = async (address, ...options) => {
    const answer = await fetch(address, ...options);
    if (/queue\\/join/.test(address) && ++asked === 2) await new Promise((done) => setTimeout(done, 2000));
    return answer;
  };
})()"""
# The end of a stream is told late: by then another question has been asked.
END_LATE = """(() => {
  const { fetch } = window;
  window.ends = 0;
  window.fetch = async (address, ...options) => {
    const answer = await fetch(address, ...options);
    if (!/queue\\/data/.test(address.url)) return answer;
    const late = new TransformStream({
      async transform(part, to) {
        const text = new TextDecoder().decode(part), at = text.indexOf('data: {"msg":"close_stream"');
        if (at < 0) return to.enqueue(part);
        to.enqueue(new TextEncoder().encode(text.slice(0, at)));
        await new Promise((done) => setTimeout(done, 1500));
        window.ends += 1;
        to.enqueue(new TextEncoder().encode(text.slice(at)));
      },
    });
    return new Response(answer.body.pipeThrough(late), { headers: answer.headers, status: answer.status });
  };
})()"""


def translate(page: Page, text: str) -> None:
    page.locator("#source-text textarea").fill(text)
    page.locator("#source-text textarea").press("Enter")


def test_no_stream_is_opened_for_what_has_been_answered(tiny_url, open_page, monkeypatch) -> None:
    known = header.translated

    def slow(*given: object) -> object:
        time.sleep(1)  # the stream is open until then
        return known(*given)

    monkeypatch.setattr(header, "translated", slow)
    page = open_page(tiny_url)
    page.wait_for_selector("#translation-text")
    settle(page)
    streams: list[Request] = []
    page.on("request", lambda request: "queue/data" in request.url and streams.append(request))
    for end in ("requestfinished", "requestfailed"):
        page.on(end, lambda request: request in streams and streams.remove(request))
    page.evaluate(NUMBER_LATE)
    translate(page, SENTENCES[2])
    page.locator(".thumbnail[data-layer='1'][data-head='2']").click()
    expect(page.locator(".atlas-translation .source")).to_have_text(SENTENCES[2])
    page.wait_for_timeout(2500)
    assert streams == []


def test_a_stream_whose_end_comes_late_leaves_no_question_without_one(tiny_url, open_page) -> None:
    page = open_page(tiny_url)
    page.wait_for_selector("#translation-text")
    settle(page)
    page.evaluate(END_LATE)
    translate(page, SENTENCES[2])
    expect(page.locator(".atlas-translation .source")).to_have_text(SENTENCES[2])
    assert page.evaluate("window.ends") == 0
    translate(page, SENTENCES[4])
    expect(page.locator(".atlas-translation .source")).to_have_text(SENTENCES[4])
    assert page.evaluate("window.ends") > 0
