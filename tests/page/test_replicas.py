"""Replicas of the app behind nginx without stickiness, with visitors in browsers, while replicas are killed in turn."""

from __future__ import annotations

import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPException

import pytest
from playwright.sync_api import Page, Response, expect

from attention_atlas.model.translator import Translator
from bench.hosting.fleet import fleet
from bench.load import Caller
from tests.page.browser import open_tab, use_modules
from tests.page.test_stepper import act, idle

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed: make proxy"),
]
SENTENCE = "Ich habe {} rote Boote."
PATIENCE = 40_000  # milliseconds; a page asks again after pauses of up to eight seconds


def translate(page: Page, number: int) -> str:
    """Ask for a sentence of this number, without waiting for the answer. Returns the sentence."""
    sentence = SENTENCE.format(number)
    page.fill("#source-text textarea", sentence)
    page.click("#translate")
    return sentence


def is_shown(page: Page, sentence: str, translator: Translator) -> None:
    """Check that the page shows the translation that the model makes of this sentence."""
    expect(page.locator(".atlas-translation .source")).to_have_text(sentence, timeout=PATIENCE)
    expect(page.locator(".atlas-translation")).to_have_attribute("aria-busy", "false")
    use_modules(page, "store/store.js")
    address = page.evaluate("atlas.store.state.address")
    trace = translator.translate(sentence)
    assert (address["source_ids"], address["target_ids"]) == (list(trace.source_ids), list(trace.target_ids))
    assert page.locator(".atlas-translation .notice.error").all_inner_texts() == []


def begins_steps(response: Response) -> bool:
    """Whether this is the answer with which the stepper begins a sentence."""
    return response.ok and response.url.endswith("page_step") and '"start"' in response.request.post_data


@pytest.mark.parametrize(
    ("visitors", "kills"),
    [pytest.param(3, 3, marks=pytest.mark.long), pytest.param(50, 20, marks=pytest.mark.endure)],
)
def test_no_answer_is_lost_while_replicas_are_killed(
    tiny_translator, tiny_checkpoint, tmp_path, pages, visitors, kills
) -> None:
    """Every page asks while a replica is killed. No page reloads, every answer is right, and forced branches of
    the stepper survive."""
    options = ["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"]
    with fleet(tmp_path, options, count=3) as (port, replicas), ExitStack() as opened:
        seen: list[Page] = []
        for number in range(visitors):
            page = opened.enter_context(pages.one(width=1280, height=900, dark=False, options={}))
            page.goto(f"http://127.0.0.1:{port}")
            page.wait_for_selector("#translation-text")
            is_shown(page, translate(page, number), tiny_translator)
            page.evaluate("window.before = true")
            seen.append(page)
        answers, is_running = [], True

        def ask() -> None:
            """Translate all the while, by the API."""
            while is_running:
                try:
                    answers.append(Caller(port).call("translate", ["Ein Boot."]))
                except (ValueError, OSError, HTTPException):
                    time.sleep(0.2)

        with ThreadPoolExecutor(1) as beside:
            asking = beside.submit(ask)
            try:
                for kill in range(kills):
                    replica = replicas[kill % len(replicas)]
                    sentences = [translate(page, visitors * (kill + 1) + i) for i, page in enumerate(seen)]
                    replica.end(signal.SIGKILL)
                    for page, sentence in zip(seen, sentences, strict=True):
                        is_shown(page, sentence, tiny_translator)
                    for page in seen[:3]:
                        with page.expect_response(begins_steps, timeout=PATIENCE):
                            open_tab(page, "Step by step")
                        idle(page)
                        act(page, ".candidate", 1)
                    replica.start().served()
                    for page in seen[:3]:
                        act(page, ".candidate", 2)
                        expect(page.locator(".atlas-stepper .tree .branch")).to_have_count(3, timeout=PATIENCE)
                        open_tab(page, "Attention")
                    assert all(page.evaluate("window.before") for page in seen), f"loaded anew after kill {kill + 1}"
            finally:
                is_running = False
            asking.result(60)
        expected = tiny_translator.translate("Ein Boot.").translation
        assert answers and {answer["translation"] for answer in answers if "translation" in answer} == {expected}
