"""Visitors and callers: nothing is kept for each, answers are fetched once, and the line is bounded for all routes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import isqrt
from urllib.parse import urlsplit

import pytest
import torch

from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from attention_atlas.viz.questions.traces import CacheBytes, Traces
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.shell import Page
from bench.load import Caller
from tests.conftest import build_tiny_model

TEXT = "Ein Hund."
WAITING = 8


@pytest.fixture
def port(tiny_url: str) -> int:
    return urlsplit(tiny_url).port


def test_the_page_has_no_state_on_the_server_and_no_listener_but_the_endpoints(port):
    config = json.loads(Caller(port).get("/config")[1])
    assert not [one for one in config["components"] if one["type"] == "state"]
    assert {one["api_name"] for one in config["dependencies"] if one["backend_fn"]} == set(ENDPOINTS)


def test_a_finished_event_is_fetched_once(port):
    caller = Caller(port)
    event = json.loads(caller.post("/gradio_api/call/translate", {"data": [TEXT]})[1])["event_id"]
    path = f"/gradio_api/call/translate/{event}"
    status, first = caller.get(path)
    assert status == 200 and b"event: complete" in first
    status, second = Caller(port).get(path)
    assert status == 404 and "no such event" in json.loads(second)["message"]


class Held:
    """A page whose passes wait until `released` is set."""

    def __init__(self, port: int, page: Page) -> None:
        self.port, self.page = port, page
        self.begun, self.released = threading.Event(), threading.Event()
        self.texts: list[str] = []

    def join(self, text: str, session: str = "visitor") -> str:
        """Ask as gradio_client does: the event's name."""
        number = next(
            one["id"]
            for one in json.loads(Caller(self.port).get("/config")[1])["dependencies"]
            if one["api_name"] == "step"
        )
        body = {"data": [text, [], 1, "", None], "fn_index": number, "session_hash": session}
        status, answer = Caller(self.port).post("/gradio_api/queue/join", body)
        assert status == 200, answer
        return json.loads(answer)["event_id"]

    def wait_until(self, waiting: int) -> None:
        for _ in range(500):
            if len(self.page.request_queue) == waiting:
                return
            threading.Event().wait(0.01)
        raise AssertionError(f"{len(self.page.request_queue)} requests wait, not {waiting}")


@pytest.fixture
def held(serve, tiny_translator, monkeypatch) -> Iterator[Held]:
    page = shell.build(Translators([tiny_translator]))
    page.request_queue.max_waiting = WAITING
    found, trace = Held(urlsplit(serve(page)).port, page), tiny_translator.trace

    def waits(text: str, *args: object, **options: object) -> object:
        found.texts.append(text)
        found.begun.set()
        return found.released.wait(60) and trace(text, *args, **options)

    monkeypatch.setattr(tiny_translator, "trace", waits)
    yield found
    found.released.set()


def test_an_event_that_is_cancelled_ends(held):
    """One that waits leaves the line, and the others are answered."""
    held.join("first", "a")
    assert held.begun.wait(20)
    second, third = held.join("second", "b"), held.join("third", "c")
    held.wait_until(2)
    config = json.loads(Caller(held.port).get("/config")[1])
    number = next(one["id"] for one in config["dependencies"] if one["api_name"] == "step")
    body = {"event_id": second, "session_hash": "b", "fn_index": number}
    assert Caller(held.port).post("/gradio_api/cancel", body)[0] == 200
    held.wait_until(1)
    held.released.set()
    caller = Caller(held.port)
    caller.connection.request("GET", "/gradio_api/queue/data?session_hash=c")
    messages = [json.loads(line[5:]) for line in caller.connection.getresponse() if line.startswith(b"data:")]
    done = next(one for one in messages if one["msg"] == "process_completed")
    assert done["event_id"] == third and done["output"]["data"][0]["status"] == "ok"
    assert held.texts == ["first", "third"]


def test_calls_of_gradio_client_wait_in_the_same_line(held):
    held.join(TEXT)
    assert held.begun.wait(20)
    share = WAITING // 4
    events = [held.join(f"{TEXT} {number}", f"visitor {number}") for number in range(share + 1)]
    held.wait_until(share)
    caller = Caller(held.port)
    caller.connection.request("GET", f"/gradio_api/queue/data?session_hash=visitor%20{share}")
    messages = [json.loads(line[5:]) for line in caller.connection.getresponse() if line.startswith(b"data:")]
    (answer,) = next(one["output"]["data"] for one in messages if one["msg"] == "process_completed")
    assert events and answer["error"] == "busy" and f"{share} requests are waiting" in answer["message"]
    status, body = Caller(held.port).post("/gradio_api/run/step", {"data": [TEXT]})
    assert status == 503 and json.loads(body)["error"] == "busy"


# What a model of NLLB's size is held to, three hundred times smaller: a trace, and all translations together.
TRACE_BYTES, ALL_BYTES = BatchLimits().trace_bytes // 320, 256_000_000 // 320
VISITORS, WORDS = 50, 400


@pytest.fixture(scope="module")
def scaled(tokenizer) -> Translator:
    """A model of which a text of all the tokens that it may have takes a trace as large as may be."""
    model = build_tiny_model(tokenizer, num_heads=8, num_encoder_layers=4, num_decoder_layers=4, max_length=96)
    return Translator(
        Checkpoint("scaled", model, tokenizer, ("de-en",), {}, "7" * 16),
        torch.device("cpu"),
        limits=BatchLimits(trace_bytes=TRACE_BYTES, tokens=isqrt(TRACE_BYTES // (4 * 8 * 12))),
    )


def longest(translator: Translator, number: int) -> str:
    """A text of a visitor's own, of as many words as fit."""
    words = [f"{number:02}"]
    while translator.fits(" ".join([*words, "Hund"]), "de-en"):
        words.append("Hund")
    return " ".join(words)


@pytest.mark.long
def test_fifty_visitors_at_once_are_all_answered_and_what_is_kept_is_bounded(serve, scaled):
    translators = Translators([scaled])
    page = shell.build(translators)
    object.__setattr__(page.context, "traces", Traces(translators, CacheBytes(ALL_BYTES)))
    port = urlsplit(serve(page)).port
    texts = [longest(scaled, number) for number in range(VISITORS)]
    with ThreadPoolExecutor(VISITORS) as pool:
        visits = list(pool.map(lambda text: Caller(port).visit(text), texts))  # raises where a question is refused
    assert [visit["text"] for visit in visits] == [scaled.translate(text).translation for text in texts]
    assert 0.5 * ALL_BYTES < page.context.traces._traces.bytes <= ALL_BYTES
    again = {"address": visits[0]["map"]["address"], "fields": {"wanted": [["cross", 0]]}}
    assert Caller(port).ask("page_layers", **again)[0]["layers"], "of one that was dropped, too"
    too_long = " ".join(["Hund"] * WORDS)
    refused = Caller(port).ask("page_translate", fields={"text": too_long, "entry": "", "beam": "1"})[0]
    answer = Caller(port).call("translate", [too_long, "", 1])
    for words in (json.dumps(refused["error"]), answer["message"]):
        assert "tokens" in words and str(scaled.max_tokens) in words
