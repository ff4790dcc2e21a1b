"""How long the page is deaf when something is opened for the first time: the longest task of the main thread then.

Long tasks are the browser's own count (Long Tasks, W3C): while one runs, nothing that a person types or clicks is
answered. Each round is a page that has never been opened, and opens every tab, every panel of it, and what is folded
there.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from playwright.sync_api import Page

from attention_atlas.viz import shell
from bench.page.stage import Measurement, Stage

ROUNDS = 3
WINDOW = {"width": 1280, "height": 800}
WATCH = """() => {
  window.__tasks = [];
  new PerformanceObserver((list) => window.__tasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask', buffered: true });
}"""
# What is seen of a tab and can be opened, and was not yet: its own strips, the parts of Step by step, what is folded.
# Each with a name for people.
FOUND = """() => {
  const tab = [...document.querySelectorAll('#tabs > [role=tabpanel]')].find((one) => one.offsetParent);
  const kinds = '[role=tab][data-tab-id], [data-panel], details > summary';
  const done = (window.__opened ||= new WeakSet());
  const node = [...tab.querySelectorAll(kinds)].find((one) => one.offsetParent && !done.has(one) && one.innerText.trim()
    && one.ariaSelected !== 'true' && one.ariaPressed !== 'true' && !one.parentElement.open);
  if (!node) return null;
  done.add(node);
  window.__next = node;
  return node.innerText.trim().split('\\n')[0].toLowerCase();
}"""
# What the open tab holds has come, nothing is asked, and for half a second no task was long.
QUIET = """async () => {
  const rest = (time) => new Promise((done) => setTimeout(done, time));
  const tab = [...document.querySelectorAll('#tabs > [role=tabpanel]')].find((one) => one.offsetParent);
  const busy = () => !tab.querySelector('.atlas-root[data-mounted]') ||
    [...tab.querySelectorAll('.atlas-root:is(:empty, [aria-busy=true]), .slot[aria-busy=true]')]
      .some((one) => one.offsetParent);
  for (let still = 0, seen = -1; still < 10; still++) {
    await rest(50);
    if (busy() || seen !== window.__tasks.length) [still, seen] = [0, window.__tasks.length];
  }
  return Math.max(0, ...window.__tasks.splice(0));
}"""


def openings(stage: Stage) -> Iterator[Measurement]:
    """The longest task of each first opening, the median of some pages; and the longest of all."""
    stage.app_page().context.close()  # the server's own first time is nobody's wait
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        page = stage.page(stage.app_url())
        page.set_viewport_size(WINDOW)
        page.wait_for_selector(".atlas-explorer .detail .heatmaplayer image")
        page.evaluate(WATCH)
        page.evaluate(QUIET)
        for name, longest in opened(page):
            found.setdefault(name, []).append(longest)
        page.context.close()
    longest = {name: statistics.median(values) for name, values in found.items()}
    for name, value in longest.items():
        yield Measurement(f"longest task: {name}", value, "ms")
    yield Measurement("longest task of all", max(longest.values()), "ms")


def opened(page: Page) -> Iterator[tuple[str, float]]:
    """All that can be opened, in its order on the page: what, and how long its longest task took."""
    for _, name, _ in shell.TABS:
        page.evaluate("(name) => document.querySelector(`#tab-${name}-button`).click()", name)
        yield name, page.evaluate(QUIET)
        while (part := page.evaluate(FOUND)) is not None:
            page.evaluate("window.__next.click()")
            yield f"{name}, {part}", page.evaluate(QUIET)
