"""The browser, the servers and the stopwatch that all measurements of the page use."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page

from bench.common import Measurement
from bench.load import APP, running_server

RUNS, WARM_UP = 20, 3
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
LOCALE = (
    "it-IT"  # the page is in English there, and opens with the first direction: browsers set to English have another
)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
)
DETAIL = ".detail .plot"  # the selected head's map
TEXT_FIELD = "#source-text textarea, #source-text input"
SENTENCE = (
    "Ein kleiner Hund rennt über die grüne Wiese, und zwei Kinder in roten Jacken spielen mit einem Ball, "
    "während ihre Mutter liest."
)  # about 30 tokens

# For an async function in the page: get its store, which changes when an answer has arrived and, by its field
# "drawCount", when it was drawn.
STORE = """const { store } = await import(
  performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/store/store.js')).name);"""

# Runs in the page: act, wait until `done` holds, then until a frame was painted with it; returns milliseconds.
TIMED = """async ([act, done, watched]) => {
  window.before = (0, eval)(watched);
  const begin = performance.now();
  (0, eval)(act);
  while (!(0, eval)(done)) await new Promise((resolve) => requestAnimationFrame(resolve));
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
  return performance.now() - begin;
}"""


def launch_chromium(playwright):
    """Launch the system's Chromium, or else Playwright's, for a running sync_playwright()."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    return playwright.chromium.launch(executable_path=path, args=FLAGS.split())


class Stage:
    """A browser, and servers that stop when the stack closes. Each command is served once."""

    def __init__(self, browser: Browser, stack: contextlib.ExitStack, checkpoints: Path) -> None:
        self.browser, self._stack, self.checkpoints = browser, stack, checkpoints
        self._urls: dict[tuple[str, ...], str] = {}

    def page(self, url: str) -> Page:
        """Open an address in a new browser context of 1280 x 900 CSS pixels."""
        page = self.browser.new_context(viewport={"width": 1280, "height": 900}, locale=LOCALE).new_page()
        page.set_default_timeout(30_000)
        page.goto(url)
        return page

    def random_page(self, tokens: int, *, source: int | None = None) -> Page:
        """Open bench/page/app.py on random attention of `tokens` a side; source: another number of source tokens."""
        options = ("--source", str(source)) if source else ()
        page = self.page(self._serve("-m", "bench.page.app", "--tokens", str(tokens), *options))
        page.wait_for_selector(".atlas-explorer .thumbnail")
        page.wait_for_selector("#plot .js-plotly-plot")
        return page

    def app_page(self) -> Page:
        """Open the app with its checkpoints."""
        page = self.page(self.app_url())
        page.wait_for_selector(".atlas-explorer .thumbnail")
        return page

    def app_url(self) -> str:
        return self._serve(*APP, "--checkpoints", str(self.checkpoints))

    def _serve(self, *command: str) -> str:
        if command not in self._urls:
            server = running_server(*command, env={**os.environ, "OMP_NUM_THREADS": "1"})
            self._urls[command] = f"http://127.0.0.1:{self._stack.enter_context(server)[0]}/"
        return self._urls[command]


def timed(page: Page, act: str, done: str, *, watched: str = "") -> float:
    """Return the milliseconds from running `act` in the page to the painted frame in which `done` is true.

    watched: an expression whose value before the act is `before` in `done`
    """
    return page.evaluate(TIMED, [act, done, watched])


def medians(times: dict[str, list[float]], *, warm_up: int = WARM_UP) -> Iterator[Measurement]:
    """Yield the median of each series in milliseconds, without its first values."""
    for name, values in times.items():
        yield Measurement(name, round(statistics.median(values[warm_up:]), 1), "ms")


def measure_median(name: str, measure: Callable[[int], float]) -> Measurement:
    """Return the median milliseconds of measure(0), measure(1), ... without the first values."""
    return next(medians({name: [measure(i) for i in range(WARM_UP + RUNS)]}))


def heap_metrics(session: CDPSession) -> dict[str, float]:
    """Return the browser's metrics of a page (Performance.enable first) after a forced garbage collection."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    return {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
