"""Two replicas of the app behind nginx, with visitors in browsers: one is killed, then both start anew in turn."""

from __future__ import annotations

import json
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPException
from urllib.request import urlopen

import numpy as np
import pytest
from playwright.sync_api import Error, Page

from bench.hosting.fleet import Replica, fleet
from bench.load import Caller
from tests.page.browser import settle
from viz.ui.server.health import READY

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed: make proxy"),
]
SENTENCE = "Ich habe {} rote Boote."
PROCESS = "document.querySelector('meta[name=atlas-process]').content"
SEEN = """([sentence, tab]) => document.querySelector('.atlas-translation')?.textContent.includes(sentence)
  && document.querySelector('#tabs > .tab-wrapper [aria-selected=true]')?.dataset.tabId === tab
  && document.querySelector('#source-text textarea')?.value === sentence
  && document.querySelector('.atlas-translation').getAttribute('aria-busy') === 'false'"""


def visit(page: Page, number: int) -> tuple[str, str]:
    """A sentence of this visitor's own, and a tab: what is to stand there afterwards, too."""
    sentence, tab = SENTENCE.format(number + 3), ("stepper", "why", "inside")[number % 3]
    page.fill("#source-text textarea", sentence)
    page.click("#translate")
    page.wait_for_function(
        "text => document.querySelector('.atlas-translation')?.textContent.includes(text)", arg=sentence
    )
    page.locator(f"#tabs [role=tab][data-tab-id={tab}]").first.click()
    page.wait_for_function(SEEN, arg=[sentence, tab])
    return sentence, tab


def process_of(replica: Replica) -> str:
    """The name of its process, as its visitors' pages have it."""
    with urlopen(f"http://127.0.0.1:{replica.port}{READY}", timeout=60) as answer:
        return json.load(answer)["process"]


def back(pages: dict[Page, tuple[str, str]], gone: str, began: float) -> list[float]:
    """Seconds after which each page has another process than the one that is gone, and shows what it did before."""
    found, left = [], dict(pages)
    while left:
        for page, shown in list(left.items()):
            with suppress(Error):  # it is just loading itself anew
                if page.evaluate(f"([gone, shown]) => {PROCESS} !== gone && ({SEEN})(shown)", [gone, list(shown)]):
                    found.append(time.monotonic() - began)
                    del left[page]
        assert time.monotonic() < began + 60, f"{len(left)} pages do not come back"
        time.sleep(0.2)
    return found


@pytest.mark.parametrize(
    ("visitors", "rolling"),
    [pytest.param(3, False, marks=pytest.mark.long), pytest.param(50, True, marks=pytest.mark.endure)],
)
def test_visitors_keep_their_sentence_and_their_tab(tiny_checkpoint, tmp_path, pages, visitors, rolling):
    """rolling: both replicas start anew, too, one after the other."""
    options = ["--checkpoints", str(tiny_checkpoint.parent), "--device", "cpu"]
    with fleet(tmp_path, options) as (port, (first, second)), ExitStack() as opened:
        seen = {}
        for number in range(visitors):
            page = opened.enter_context(pages.one(width=1280, height=900, dark=False, options={}))
            page.goto(f"http://127.0.0.1:{port}")
            seen[page] = visit(page, number)
        made_by = [page.evaluate(PROCESS) for page in seen]
        if made_by.count(process_of(first)) < made_by.count(process_of(second)):
            first, second = second, first  # somebody is to lose it
        answers, going_on = [], True

        def ask() -> None:
            """A program that translates all the while: what it gets is right, or an error."""
            while going_on:
                try:
                    answers.append(Caller(port).call("translate", ["Ein Boot."]))
                except (ValueError, OSError, HTTPException):
                    time.sleep(0.2)

        with ThreadPoolExecutor(1) as beside:
            asking = beside.submit(ask)
            try:
                for replica, by in [
                    (first, signal.SIGKILL),
                    *((one, signal.SIGTERM) for one in (second, first) * rolling),
                ]:
                    gone = process_of(replica)
                    for page in seen:
                        settle(page)
                        page.evaluate("window.before = true")
                    theirs = {page: shown for page, shown in seen.items() if page.evaluate(PROCESS) == gone}
                    replica.end(by)
                    began = time.monotonic()  # it has finished what was under way
                    times = back(theirs, gone, began)
                    anew = sum(not page.evaluate("window.before") for page in seen)  # where something was under way
                    print(f"{len(theirs)} of {visitors} lost their replica, {anew} loaded anew; s: {np.sort(times)}")
                    assert all(page.evaluate("window.before") for page in seen if page not in theirs)
                    replica.start().served()
            finally:
                going_on = False
            asking.result(60)
        expected = Caller(first.port).call("translate", ["Ein Boot."])["translation"]
        assert answers and all(answer.get("translation", expected) == expected for answer in answers)
        for i, page in enumerate(seen):
            visit(page, i + visitors)
