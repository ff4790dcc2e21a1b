"""Tests with many visitors: no state per visitor, answers fetched once, one queue for all routes, bounded caches."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPMessage
from math import isqrt
from urllib.parse import quote, urlsplit

import pytest

from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.questions.traces import CacheBytes, Traces
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.shell import Page
from bench.load import JSON, Caller
from tests.conftest import build_tiny_model, make_translator

TEXT = "Ein Hund."
WAITING = 8


def test_the_page_has_no_state_and_no_listeners_on_the_server(port):
    config = json.loads(Caller(port).get("/config")[1])
    assert not [component for component in config["components"] if component["type"] == "state"]
    listeners = [listener for listener in config["dependencies"] if listener["backend_fn"]]
    assert {listener["api_name"] for listener in listeners} == set(ENDPOINTS)


def test_a_finished_event_is_fetched_once(port):
    caller = Caller(port)
    event = json.loads(caller.post("/gradio_api/call/translate", {"data": [TEXT]})[1])["event_id"]
    path = f"/gradio_api/call/translate/{event}"
    status, first = caller.get(path)
    assert status == 200 and b"event: complete" in first
    status, second = Caller(port).get(path)
    assert status == 404 and "no such event" in json.loads(second)["message"]


class PausedPage:
    """A page whose translations wait until `released` is set."""

    def __init__(self, port: int, page: Page) -> None:
        self.port, self.page = port, page
        self.begun, self.released = threading.Event(), threading.Event()
        self.texts: list[str] = []
        listeners = json.loads(Caller(port).get("/config")[1])["dependencies"]
        self.number = next(listener["id"] for listener in listeners if listener["api_name"] == "step")

    def join(self, text: str, session: str = "visitor") -> str:
        """Send a call as gradio_client does; return the event's name."""
        body = {"data": [text, [], 1, "", None], "fn_index": self.number, "session_hash": session}
        status, answer = Caller(self.port).post("/gradio_api/queue/join", body)
        assert status == 200, answer
        return json.loads(answer)["event_id"]

    def completed(self, session: str) -> dict:
        """Return the message of a session's stream that holds the answer to its call."""
        stream = Caller(self.port).get(f"/gradio_api/queue/data?session_hash={quote(session)}")[1]
        messages = [json.loads(line[5:]) for line in stream.splitlines() if line.startswith(b"data:")]
        return next(message for message in messages if message["msg"] == "process_completed")

    def wait_until(self, waiting: int) -> None:
        for _ in range(500):
            if len(self.page.request_queue) == waiting:
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"{len(self.page.request_queue)} requests wait, not {waiting}")


@pytest.fixture
def paused_page(serve, tiny_translator, monkeypatch) -> Iterator[PausedPage]:
    page = shell.build(Translators([tiny_translator]))
    page.request_queue.max_waiting = WAITING
    paused, trace = PausedPage(urlsplit(serve(page)).port, page), tiny_translator.trace

    def waits(text: str, *args: object, **options: object) -> object:
        paused.texts.append(text)
        paused.begun.set()
        return paused.released.wait(60) and trace(text, *args, **options)

    monkeypatch.setattr(tiny_translator, "trace", waits)
    yield paused
    paused.released.set()


def test_cancelling_removes_a_waiting_event_from_the_queue(paused_page):
    paused_page.join("first", "a")
    assert paused_page.begun.wait(20)
    second, third = paused_page.join("second", "b"), paused_page.join("third", "c")
    paused_page.wait_until(2)
    body = {"event_id": second, "session_hash": "b", "fn_index": paused_page.number}
    assert Caller(paused_page.port).post("/gradio_api/cancel", body)[0] == 200
    paused_page.wait_until(1)
    paused_page.released.set()
    done = paused_page.completed("c")
    assert done["event_id"] == third and done["output"]["data"][0]["status"] == "ok"
    assert paused_page.texts == ["first", "third"]


def test_calls_of_gradio_client_wait_in_the_same_queue(paused_page):
    paused_page.join(TEXT)
    assert paused_page.begun.wait(20)
    share = WAITING // 4
    events = [paused_page.join(f"{TEXT} {number}", f"visitor {number}") for number in range(share + 1)]
    paused_page.wait_until(share)
    (answer,) = paused_page.completed(f"visitor {share}")["output"]["data"]
    assert events and answer["error"] == "busy" and f"{share} requests are waiting" in answer["message"]
    status, body = Caller(paused_page.port).post("/gradio_api/run/step", {"data": [TEXT]})
    assert status == 503 and json.loads(body)["error"] == "busy"


def test_one_address_gets_a_quarter_of_the_places_in_the_queue(paused_page):
    def post(address: str) -> tuple[int, bytes, HTTPMessage]:
        body, headers = json.dumps({"text": TEXT}).encode(), {**JSON, "X-Forwarded-For": address}
        return Caller(paused_page.port).send("POST", "/gradio_api/call/v2/step", body, headers)

    post("192.0.2.1")
    assert paused_page.begun.wait(60)  # it runs, and no longer counts as waiting
    first = [post("192.0.2.1") for _ in range(4)]
    second = [post("192.0.2.2") for _ in range(4)]
    others = [post(f"192.0.2.{number}") for number in (3, 3, 4, 4, 5)]
    assert [status for status, _, _ in (*first, *second)] == 2 * [200, 200, 503, 503]
    assert [status for status, _, _ in others] == [200, 200, 200, 200, 503]
    for number, (_, body, headers) in ((2, first[-1]), (8, others[-1])):
        answer = json.loads(body)
        assert answer["error"] == "busy" and f"{number} requests are waiting" in answer["message"]
        assert headers["retry-after"] == "2"


# The limits that hold for a model of NLLB's size, divided by 320: of a trace, and of all cached translations together.
TRACE_BYTES, ALL_BYTES = BatchLimits().trace_bytes // 320, 256_000_000 // 320
VISITORS, WORDS = 50, 400


@pytest.fixture(scope="module")
def scaled(tokenizer) -> Translator:
    """A model for which a text of the maximum length has a trace of the maximum size."""
    model = build_tiny_model(tokenizer, num_heads=8, num_encoder_layers=4, num_decoder_layers=4, max_length=96)
    limits = BatchLimits(trace_bytes=TRACE_BYTES, tokens=isqrt(TRACE_BYTES // (4 * 8 * 12)))
    return make_translator(model, tokenizer, limits=limits)


def longest(translator: Translator, number: int) -> str:
    """Return a text of as many words as fit, different for each number."""
    words = [f"{number:02}"]
    while translator.fits(" ".join([*words, "Hund"]), "de-en"):
        words.append("Hund")
    return " ".join(words)


@pytest.mark.long
def test_fifty_visitors_at_once_are_answered_within_the_cache_limit(serve, scaled):
    translators = Translators([scaled])
    page = shell.build(translators)
    object.__setattr__(page.context, "traces", Traces(translators, CacheBytes(ALL_BYTES)))
    port = urlsplit(serve(page)).port
    texts = [longest(scaled, number) for number in range(VISITORS)]
    with ThreadPoolExecutor(VISITORS) as pool:
        visits = list(pool.map(lambda text: Caller(port).visit(text), texts))  # raises where a question is refused
    assert [visit["text"] for visit in visits] == [scaled.translate(text).translation for text in texts]
    assert 0.5 * ALL_BYTES < page.context.traces._traces.bytes <= ALL_BYTES
    question = {"address": visits[0]["map"]["address"], "fields": {"wanted": [["cross", 0]]}}
    assert Caller(port).ask("page_layers", **question)[0]["layers"], "about one that was dropped from the cache, too"
    too_long = " ".join(["Hund"] * WORDS)
    refused = Caller(port).ask("page_translate", fields={"text": too_long, "entry": "", "beam": "1"})[0]
    answer = Caller(port).call("translate", [too_long, "", 1])
    for words in (json.dumps(refused["error"]), answer["message"]):
        assert "tokens" in words and str(scaled.max_tokens) in words
