"""The page's client of /ask and its store, alone in a browser with a simulated server and clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.page.browser import load_modules

pytestmark = pytest.mark.browser

# Replace fetch() by a server that gives these replies in turn, each {status, type, lines, breaks, waits}.
SERVER = """(replies) => {
  window.requests = [];
  window.parts = [];
  window.fetch = async (address, { body, signal }) => {
    requests.push({ path: new URL(address).pathname, ...JSON.parse(body) });
    const { status = 200, type = "application/json", lines = [], breaks = false, waits = 0 } = replies.shift() ?? {};
    await new Promise((resolve, reject) => {
      setTimeout(resolve, waits);
      signal?.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    });
    if (status === 0) throw new TypeError("no connection");
    const bytes = lines.map((line) => new TextEncoder().encode(JSON.stringify(line) + "\\n"));
    const stream = new ReadableStream({
      pull(controller) {
        const next = bytes.shift();
        if (next) controller.enqueue(next);
        else if (breaks) setTimeout(() => controller.error(new TypeError("cut off")), 10);
        else controller.close();
      },
    });
    return new Response(stream, { status, headers: { "content-type": type } });
  };
}"""
ASK = "(question) => atlas.ask('page_one', question, { part: (content) => parts.push(content) })"
LINES = "application/x-ndjson"
# Record the notices at the foot of the page.
NOTICES = """() => {
  window.notices = [];
  const text = () => document.querySelector(".atlas-told")?.textContent ?? "";
  new MutationObserver(() => notices.push(text())).observe(document.body, { childList: true, subtree: true });
}"""


@pytest.fixture()
def page(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page()
    load_modules(page, "core/ask.js", "store/store.js")
    page.clock.install()
    yield page
    page.close()


def ask(page: Page, *replies: dict) -> tuple[object, list, int]:
    """Ask a server that gives these replies. Return the answer, its parts and the number of requests."""
    page.evaluate(SERVER, list(replies))
    page.evaluate(
        f"question => {{ window.done = undefined; ({ASK})(question).then((answer) => (window.done = answer)); }}",
        {"address": {"text": "x"}, "fields": {"n": 1}},
    )
    for _ in range(40):
        if page.evaluate("window.done !== undefined"):
            break
        page.clock.run_for(1000)
    return page.evaluate("[done, parts, requests.length]")


def test_a_question_is_one_request(page) -> None:
    assert ask(page, {"lines": [{"blocks": [1]}]}) == [{"blocks": [1]}, [{"blocks": [1]}], 1]
    assert page.evaluate("window.requests") == [{"path": "/ask/page_one", "address": {"text": "x"}, "fields": {"n": 1}}]


def test_parts_of_a_streamed_answer_arrive_one_by_one(page) -> None:
    lines = [{"n": number, "text": "Grüße " * 20_000} for number in range(3)]
    assert ask(page, {"type": LINES, "lines": lines}) == [lines[-1], lines, 1]


def test_a_file_is_the_same_as_a_body_and_in_a_stream(page) -> None:
    read = "async ({ file }) => [file.name, await file.blob.text(), file.blob.type]"
    page.evaluate("""() => {
      const type = "text/csv", headers = { "content-type": type };
      headers["content-disposition"] = "attachment; filename*=UTF-8''Gr%C3%B6%C3%9Fe.csv";
      window.fetch = async () => new Response("a,b", { headers });
    }""")
    plain = page.evaluate(f"() => atlas.ask('page_one', {{}}).then({read})")
    lines = [{"more": True}, {"file": {"name": "Größe.csv", "type": "text/csv", "data": "YSxi"}}]
    page.evaluate(SERVER, [{"type": LINES, "lines": lines}])
    streamed = page.evaluate(f"() => atlas.ask('page_one', {{}}).then({read})")
    assert plain == streamed == ["Größe.csv", "a,b", "text/csv"]


def test_a_refusal_becomes_an_error_message(page) -> None:
    refusal = {"api_version": 1, "status": "error", "error": "invalid", "message": {"say": "No.", "with": {}}}
    error = {"error": refusal["message"]}
    assert ask(page, {"lines": [refusal]}) == [error, [error], 1]


@pytest.mark.parametrize("failure", [{"status": 0}, {"status": 502}, {"status": 504}, {"status": 503}])
def test_a_request_that_fails_is_retried(page, failure) -> None:
    assert ask(page, failure, failure, {"lines": [{"n": 1}]}) == [{"n": 1}, [{"n": 1}], 3]


def test_an_answer_that_is_cut_off_is_requested_again(page) -> None:
    lines = [{"n": 0}, {"n": 1}]
    done, parts, times = ask(page, {"type": LINES, "lines": lines[:1], "breaks": True}, {"type": LINES, "lines": lines})
    assert times == 2 and done == lines[-1] and parts[-2:] == lines


def test_a_notice_says_that_a_toy_is_being_retrained(page) -> None:
    waits = {"training": {"update": 0, "of": 9, "waits": True}}
    lines = [waits, {"training": {"update": 5, "of": 9}}, {"training": {"update": 9, "of": 9}}, {"n": 1}]
    page.evaluate(NOTICES)
    assert ask(page, {"type": LINES, "lines": lines}) == [{"n": 1}, [{"n": 1}], 1]
    assert "Training your network again: update 9 of 9" in page.evaluate("notices")
    assert "Another large network is being trained. Yours begins when that is done." in page.evaluate("notices")
    assert page.evaluate("document.querySelector('.atlas-told').textContent") == ""


def test_progress_and_a_restart_after_a_broken_connection_are_reported(page) -> None:
    lines = [{"work": {"done": 1, "of": 2}}, {"work": {"done": 2, "of": 2}}, {"n": 1}]
    replies = [{"type": LINES, "lines": lines[:1], "breaks": True}, {"type": LINES, "lines": lines}]
    page.evaluate(SERVER, replies)
    page.evaluate("""() => {
      window.reports = [];
      const working = (work, isAnew) => reports.push([work?.done ?? null, isAnew]);
      const part = (content) => parts.push(content);
      atlas.ask("page_one", {}, { part, working }).then((answer) => (window.done = answer));
    }""")
    page.clock.run_for(2000)
    assert page.evaluate("[done, parts]") == [{"n": 1}, [{"n": 1}]]
    assert page.evaluate("reports") == [[1, False], [None, False], [1, True], [2, True], [None, True]]
    page.evaluate(SERVER, replies)
    page.evaluate(NOTICES)
    page.evaluate("() => { atlas.ask('page_one', {}); }")
    page.clock.run_for(2000)
    assert "The connection broke, so the computation restarted. Computing: 2 of 2 parts" in page.evaluate("notices")


def test_a_retrained_toy_with_other_weights_is_asked_and_opened_once(page) -> None:
    address = {"text": "x", "digest": "b"}
    page.evaluate("() => { window.opened = []; atlas.onRetrained((address) => opened.push(address)); }")
    for _ in range(2):
        reply = {"type": LINES, "lines": [{"training": {"update": 9, "of": 9}}, {"retrained": address}]}
        assert ask(page, reply, {"lines": [{"n": 1}]}) == [{"n": 1}, [{"n": 1}], 2]
        assert page.evaluate("requests[1].address") == {**address, "digest": ""}
    assert page.evaluate("opened") == [address], "once"


def test_after_the_last_retry_the_answer_is_an_error(page) -> None:
    done, parts, times = ask(page, *[{"status": 0}] * 20)
    assert "is not responding" in done["error"] and parts == [done] and times == 7


def test_after_the_last_retry_a_busy_servers_reason_is_the_error(page) -> None:
    busy = {"status": 503, "lines": [{"status": "error", "error": "busy", "message": "Too many."}]}
    done, _, times = ask(page, *[busy] * 20)
    assert done == {"error": "Too many."} and times == 7


def test_a_later_question_replaces_an_earlier_one(page) -> None:
    page.evaluate(SERVER, [{"lines": [{"n": 1}], "waits": 500}, {"lines": [{"n": 2}], "waits": 50}])
    page.evaluate("""() => {
      const asker = (window.asker = atlas.createAsker());
      const part = (content) => parts.push(content);
      window.answers = {};
      for (const n of [1, 2]) asker.ask("page_one", { fields: { n } }, { part })
        .then((answer) => (answers[n] = answer));
    }""")
    assert page.evaluate("asker.busy()")
    page.clock.run_for(2000)
    assert page.evaluate("[answers[2], answers[1], parts, asker.busy()]") == [{"n": 2}, None, [{"n": 2}], False]


def test_a_question_that_is_stopped_has_no_answer_or_parts(page) -> None:
    page.evaluate(SERVER, [{"lines": [{"n": 1}], "waits": 500}])
    page.evaluate("""() => {
      window.asker = atlas.createAsker();
      asker.ask("page_one", {}, { part: (content) => parts.push(content) })
        .then((answer) => (window.answers = [answer]));
      asker.stop();
    }""")
    page.clock.run_for(2000)
    assert page.evaluate("[answers, parts, requests.length, asker.busy()]") == [[None], [], 1, False]


def test_a_subscriber_is_called_when_its_field_changes(page) -> None:
    heard = page.evaluate("""() => {
      const { store } = atlas, heard = [];
      store.follow(["address"], ({ address }) => heard.push(address));
      store.set({ asked: { step: 1 } });
      store.set({ address: { text: "a" }, asked: null });
      store.set({ address: { text: "a" } });
      return heard;
    }""")
    assert heard == [{"text": "a"}]


def test_values_of_controls_are_kept_until_gradio_reads_them(open_modules) -> None:
    """Gradio reads a link's text late: the menu's entry, which the link's answer sets, may be waiting by then, too."""
    page = open_modules("store/controls.js", "store/store.js")
    page.evaluate("atlas.store.set({ translating: { number: 1, text: 'Ein Hund.', typed: 'Ein Hund.' } })")
    page.evaluate("atlas.store.set({ translation: { number: 1, fill: { entry: 'de-en' } } })")
    assert page.evaluate("atlas.takeValues()") == ["Ein Hund.", "de-en"]
    assert page.evaluate("atlas.takeValues()") == [None, None], "text typed since then must stay"
