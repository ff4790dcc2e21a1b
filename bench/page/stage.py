"""Where the benchmark of the page takes place: a browser, servers that are processes of their own, a stopwatch."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page

from bench.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
RUNS, WARM_UP = 20, 3


# For an async function of a page: its store, which changes when an answer has come and when it is drawn ("drawCount").
STORE = """const { store } = await import(
  performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/store/store.js')).name);"""


@dataclass(frozen=True)
class Measurement:
    name: str
    value: float
    unit: str


class Stage:
    """Where measurements take place: a browser, and servers that stop when the stage closes."""

    def __init__(self, browser: Browser, stack: contextlib.ExitStack, checkpoints: Path) -> None:
        self.browser, self._stack, self.checkpoints = browser, stack, checkpoints
        self._urls: dict[tuple[str, ...], str] = {}

    def page(self, url: str) -> Page:
        """A fresh page of 1280 x 900 CSS pixels."""
        page = self.browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(30_000)
        page.goto(url)
        return page

    def random_page(self, tokens: int, *, source: int | None = None) -> Page:
        """bench/page/app.py over random attention of this many tokens a side, or of another number of source ones."""
        more = ("--source", str(source)) if source else ()
        page = self.page(self._serve("-m", "bench.page.app", "--tokens", str(tokens), *more))
        page.wait_for_selector(".atlas-explorer .thumbnail")
        page.wait_for_selector("#plot .js-plotly-plot")
        return page

    def app_page(self) -> Page:
        """The app itself over its checkpoints."""
        page = self.page(self.app_url())
        page.wait_for_selector(".atlas-explorer .thumbnail")
        return page

    def app_url(self) -> str:
        return self._serve("app.py", "--checkpoints", str(self.checkpoints))

    def _serve(self, *command: str) -> str:
        if command not in self._urls:
            self._urls[command] = self._stack.enter_context(serving(*command))
        return self._urls[command]


@contextlib.contextmanager
def serving(*command: str) -> Iterator[str]:
    """Run `python COMMAND --port FREE` and yield its address once it answers."""
    port = free_port()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, *command, "--port", str(port)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url, timeout=5).close()
                break
            if process.poll() is not None:
                raise RuntimeError(f"{' '.join(command)} ended with status {process.returncode}")
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


# Runs in the page: act, wait until `done` holds, then until a frame has been painted with it; milliseconds.
TIMED = """async ([act, done]) => {
  const begin = performance.now();
  (0, eval)(act);
  while (!(0, eval)(done)) await new Promise((resolve) => requestAnimationFrame(resolve));
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
  return performance.now() - begin;
}"""


def timed(page: Page, act: str, done: str) -> float:
    """Milliseconds from running `act` in the page to the painted frame in which the expression `done` is true."""
    return page.evaluate(TIMED, [act, done])


def medians(times: dict[str, list[float]]) -> Iterator[Measurement]:
    """Of each series, the median without its first few."""
    for name, values in times.items():
        yield Measurement(name, round(statistics.median(values[WARM_UP:]), 1), "ms")


def median_of(measure: Callable[[int], float]) -> float:
    """The median of measure(0), measure(1), .. without the first few."""
    values = [measure(i) for i in range(WARM_UP + RUNS)]
    return statistics.median(values[WARM_UP:])
