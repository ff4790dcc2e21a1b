"""Replicas of the app behind nginx without sticky sessions, while they are killed in turn.

Some visitors use a browser; the others send the same requests by HTTP.
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPException

import numpy as np
import pytest
from playwright.sync_api import Page, Response, expect

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.wire.codecs import ROOT
from attention_atlas.viz.wire.readback import PAYLOAD_TOLERANCE
from bench.hosting.fleet import fleet
from bench.load import CALL_LIMIT, Caller
from tests.conftest import SENTENCES
from tests.page.browser import open_tab, submit, use_modules
from tests.page.lab.test_lab import open_panel
from tests.page.test_stepper import act, idle

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed: make proxy"),
]
SENTENCE = "Ich habe {} rote Boote."
PATIENCE = 40_000  # milliseconds; a page retries after pauses of up to eight seconds
PAUSES = (0.25, 0.5, 1, 2, 4, 8)  # seconds before each retry, as in viz/web/core/ask.js
THINKING = 1.0  # seconds between a visitor's visits by HTTP


def translate(page: Page, number: int) -> str:
    """Submit a sentence with this number, without waiting for the answer. Return the sentence."""
    sentence = SENTENCE.format(number)
    submit(page, sentence)
    return sentence


def expect_translation(page: Page, sentence: str, translator: Translator) -> None:
    """Check that the page shows the model's translation of this sentence."""
    expect(page.locator(".atlas-translation .source")).to_have_text(sentence, timeout=PATIENCE)
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "false")
    use_modules(page, "store/store.js")
    address = page.evaluate("atlas.store.state.address")
    trace = translator.translate(sentence)
    assert (address["source_ids"], address["target_ids"]) == (list(trace.source_ids), list(trace.target_ids))
    assert page.locator(".atlas-translation .notice.error").all_inner_texts() == []


def begins_steps(response: Response) -> bool:
    """Return whether this is the response with which the stepper starts a sentence."""
    return response.ok and response.url.endswith("page_step") and '"start"' in response.request.post_data


@dataclass
class Visitor:
    """A visitor that sends the page's requests by HTTP.

    seconds: of each answer; retries: requests sent again; error: the largest difference of a received attention weight
    from the model's own.
    """

    port: int
    ended: threading.Event
    seconds: list[float] = field(default_factory=list)
    retries: int = 0
    error: float = 0.0

    def ask(self, name: str, question: dict) -> dict:
        """Return the answer from any replica. Raise AssertionError if all retries fail or the answer is an error."""
        began = time.monotonic()
        for pause in PAUSES:
            try:
                status, body = Caller(self.port, CALL_LIMIT).post(f"/ask/{name}", question)
                if status not in (502, 503, 504):
                    answer = json.loads(body)
                    assert status == 200 and "api_version" not in answer, answer
                    self.seconds.append(time.monotonic() - began)
                    return answer
            except (OSError, HTTPException):
                pass
            self.retries += 1
            time.sleep(pause)
        raise AssertionError(f"{name} was not answered")

    def visit(self, traces: dict[str, TranslationTrace]) -> None:
        """Translate each sentence, load its maps and pin a word, over and over until `ended` is set."""
        while not self.ended.is_set():
            for sentence, trace in traces.items():
                address = self.ask("page_translate", {"fields": {"text": sentence}})["map"]["address"]
                ids = address["source_ids"], address["target_ids"]
                assert ids == (list(trace.source_ids), list(trace.target_ids)), sentence
                layer_ids = [
                    [kind.value, layer] for kind in trace.kinds for layer in range(trace.maps(kind).num_layers)
                ]
                layers = self.ask("page_layers", {"address": address, "fields": {"wanted": layer_ids}})["layers"]
                assert [[layer["kind"], layer["first"]] for layer in layers] == layer_ids
                for layer in layers:
                    weights = trace.maps(AttentionKind(layer["kind"])).weights[layer["first"] : layer["last"]]
                    decoded = ROOT.decode(layer["data"], weights.shape)
                    self.error = max(self.error, float(np.abs(decoded - weights).max()))
                question = self.ask("page_ask", {"address": address, "fields": {"step": 1}})["asked"]
                assert question["step"] == 1
                if self.ended.wait(THINKING):
                    return


# visitors: all of them; browsers: how many of them use a browser.
@pytest.mark.parametrize(
    ("visitors", "browsers", "kills"),
    [pytest.param(4, 2, 1, marks=pytest.mark.long), pytest.param(50, 3, 20, marks=pytest.mark.endure)],
)
def test_no_answer_is_lost_while_replicas_are_killed(
    tiny_checkpoint, tmp_path, pages, visitors, browsers, kills
) -> None:
    """Each page asks while a replica is killed: no page reloads, each answer is right, and forced branches survive."""
    options = ["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"]
    translator = Translator.load(tiny_checkpoint, "cpu")
    traces = {text: translator.translate(text) for text in (*SENTENCES[:8:2], "Ein Boot.")}
    with fleet(tmp_path, options, count=3) as (port, replicas), ExitStack() as opened:
        seen: list[Page] = []
        for number in range(browsers):
            page = opened.enter_context(pages.borrow(width=1280, height=900, dark=False, options={}))
            page.goto(f"http://127.0.0.1:{port}")
            page.wait_for_selector("#translation-text", state="attached")
            expect_translation(page, translate(page, number), translator)
            page.evaluate("window.before = true")
            seen.append(page)
        ended = threading.Event()
        http_visitors = [Visitor(port, ended) for _ in range(visitors - browsers)]
        with ThreadPoolExecutor(len(http_visitors)) as pool:
            visits = [pool.submit(visitor.visit, traces) for visitor in http_visitors]
            try:
                for kill in range(kills):
                    replica = replicas[kill % len(replicas)]
                    sentences = [translate(page, browsers * (kill + 1) + i) for i, page in enumerate(seen)]
                    replica.end(signal.SIGKILL)
                    for page, sentence in zip(seen, sentences, strict=True):
                        expect_translation(page, sentence, translator)
                    for page in seen:
                        with page.expect_response(begins_steps, timeout=PATIENCE):
                            open_tab(page, "Step by step")
                        idle(page)
                        act(page, ".candidate", 1)
                    replica.start().wait()
                    for page in seen:
                        act(page, ".candidate", 2)
                        expect(page.locator(".atlas-stepper .tree .branch")).to_have_count(3, timeout=PATIENCE)
                        open_tab(page, "Attention")
                    assert all(page.evaluate("window.before") for page in seen), (
                        f"a page was reloaded after kill {kill + 1}"
                    )
            finally:
                ended.set()
            for visit in visits:
                visit.result(60)
        seconds = [spent for visitor in http_visitors for spent in visitor.seconds]
        retries, error = sum(v.retries for v in http_visitors), max(v.error for v in http_visitors)
        print(f"{len(seconds)} answers, {retries} retries, slowest {max(seconds):.2f} s, largest weight error {error}")
        assert error <= PAYLOAD_TOLERANCE
        assert all(visitor.seconds for visitor in http_visitors)


@pytest.mark.endure
def test_a_survey_restarts_on_another_replica_and_the_page_says_so(tiny_checkpoint, tmp_path, pages) -> None:
    options = ["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"]
    with (
        fleet(tmp_path, options) as (port, replicas),
        pages.borrow(width=1280, height=900, dark=False, options={}) as page,
    ):
        page.goto(f"http://127.0.0.1:{port}")
        page.wait_for_selector("#translation-text", state="attached")
        panel = open_panel(page, "More", "All heads")
        panel.locator(".take .begin").click()
        status = panel.get_by_role("status")
        expect(status).to_contain_text("parts, about")
        for replica in replicas:
            replica.end(signal.SIGKILL)
        replicas[1].start()
        expect(status).to_contain_text("The connection broke, so the computation restarted.", timeout=PATIENCE)
        expect(panel.locator(".head-cell").first).to_be_visible(timeout=PATIENCE)
