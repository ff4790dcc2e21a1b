"""Measurements of the app as a whole: its first view, a translation, first openings, and its cost while idle."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator

from attention_atlas.viz import shell
from bench.common import Measurement
from bench.load import processor_seconds, running_app
from bench.made.captions import texts
from bench.page.stage import DETAIL, LOCALE, RUNS, STORE, WARM_UP, Stage, medians

# The first view. Each run has a browser context of its own, so that nothing is cached. Times are the browser's own
# (Element Timing, W3C): when an element was first painted, since the navigation began. A canvas has no such time;
# it counts from a task after the frame in which it was drawn.
FIRST_RUNS = 9
SLOWDOWN = 4  # factor by which the processor is throttled in every second run
FIRST_PICTURE = "picture"
ENGLISH = "en-US"  # such browsers fetch what they open with (viz/questions/opening.py)
PARTS = {
    "header": "#atlas-title h1",
    FIRST_PICTURE: f".atlas-explorer {DETAIL}",
    "picture by Plotly": ".atlas-explorer .detail .heatmaplayer image",
}
WATCH_PAINTS = """(parts) => {
  const painted = (window.__painted = {});
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) painted[entry.identifier] ??= entry.startTime;
  }).observe({ type: 'element', buffered: true });
  const seen = new WeakSet(), look = () => {
    for (const [name, selector] of Object.entries(parts)) {
      const node = name in painted ? null : document.querySelector(selector);
      if (!node || seen.has(node)) continue; // a node that is replaced before it is painted has a successor
      seen.add(node);
      if (node.tagName !== 'CANVAS') node.setAttribute('elementtiming', name);
      else requestAnimationFrame(() => setTimeout(() => (painted[name] ??= performance.now()), 0));
    }
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
}"""
# Requests that ended before a time, including the page itself, and their kB over the wire and unpacked.
TRANSFERS = """(until) => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const before = all.filter((entry) => entry.responseEnd < until);
  const sum = (field) => before.reduce((whole, entry) => whole + entry[field], 0) / 1000;
  return [before.length, sum('encodedBodySize'), sum('decodedBodySize')]; }"""

LETTERS = 42  # of a sentence of some 12 tokens
# When the key was pressed, when the answer arrived, and when the frame with the new map was painted.
WATCH_ANSWER = f"""async () => {{
  {STORE}
  const at = (name) => (window.__at[name] = performance.now());
  document.addEventListener('keydown', () => (window.__at = {{}}, at('entered')), {{ capture: true }});
  store.follow(['translation'], () => at('answered'));
  store.follow(['drawCount'], () => requestAnimationFrame(() => setTimeout(() => at('painted'), 0)));
}}"""

# First openings. Long tasks are the browser's own (Long Tasks, W3C): while one runs, the page reacts to no input.
ROUNDS = 3
WATCH_TASKS = """() => {
  window.__tasks = [];
  new PerformanceObserver((list) => window.__tasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask', buffered: true });
}"""
# Find what can be opened in the visible tab and was not opened yet: its own tabs, parts of the stepper, folded parts.
# Returns its label.
FIND_UNOPENED = """() => {
  const tab = [...document.querySelectorAll('#tabs > [role=tabpanel]')].find((panel) => panel.offsetParent);
  const kinds = '[role=tab][data-tab-id], [data-panel], details > summary';
  const done = (window.__opened ||= new WeakSet());
  const node = [...tab.querySelectorAll(kinds)].find((node) => node.offsetParent && !done.has(node)
    && node.innerText.trim() && node.ariaSelected !== 'true' && node.ariaPressed !== 'true'
    && !node.parentElement.open);
  if (!node) return null;
  done.add(node);
  window.__next = node;
  return node.innerText.trim().split('\\n')[0].toLowerCase();
}"""
# Wait until the visible tab has its content, no question is pending, and no task was long for half a second; returns
# the longest task.
WAIT_UNTIL_QUIET = """async () => {
  const rest = (time) => new Promise((done) => setTimeout(done, time));
  const tab = [...document.querySelectorAll('#tabs > [role=tabpanel]')].find((panel) => panel.offsetParent);
  const busy = () => !tab.querySelector('.atlas-root[data-mounted]') ||
    [...tab.querySelectorAll('.atlas-root:is(:empty, [aria-busy=true]), .slot[aria-busy=true]')]
      .some((node) => node.offsetParent);
  for (let still = 0, seen = -1; still < 10; still++) {
    await rest(50);
    if (busy() || seen !== window.__tasks.length) [still, seen] = [0, window.__tasks.length];
  }
  return Math.max(0, ...window.__tasks.splice(0));
}"""

SETTLE, IDLE = 30, 60  # seconds: to let garbage be collected, and to measure


def first_view(stage: Stage) -> Iterator[Measurement]:
    """The app in a browser with an empty cache, on the processor as it is and slowed down."""
    stage.app_page().context.close()  # the first request to the server is not measured
    times, transfers = {}, []
    for _ in range(FIRST_RUNS):
        for slowdown in (1, SLOWDOWN):
            painted, transfer = open_first_view(stage, slowdown, LOCALE)
            transfers.append(transfer)
            english, _ = open_first_view(stage, slowdown, ENGLISH)
            painted["picture, browser set to English"] = english[FIRST_PICTURE]
            for name, value in painted.items():
                times.setdefault((name, slowdown), []).append(value)
    for (name, slowdown), values in sorted(times.items(), key=lambda item: item[0][1]):
        label = f"first {name}" + (f", processor slowed {slowdown} times" if slowdown > 1 else "")
        yield Measurement(label, round(statistics.median(values)), "ms")
    for name, values in zip(("requests", "sent", "sent, unpacked"), zip(*transfers)):
        unit = "" if name == "requests" else "kB"
        yield Measurement(f"before the first picture: {name}", round(statistics.median(values)), unit)


def open_first_view(stage: Stage, slowdown: int, locale: str) -> tuple[dict[str, float], tuple[float, float, float]]:
    """Return when each part was painted, in milliseconds, and TRANSFERS until the first picture."""
    context = stage.browser.new_context(viewport={"width": 1280, "height": 900}, locale=locale)
    page = context.new_page()
    page.set_default_timeout(60_000)
    context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    page.add_init_script(f"({WATCH_PAINTS})({PARTS!r})")
    page.goto(stage.app_url())
    page.wait_for_function(f"Object.keys(window.__painted).length === {len(PARTS)}")
    painted = page.evaluate("window.__painted")
    transfer = tuple(page.evaluate(TRANSFERS, painted[FIRST_PICTURE]))
    context.close()
    return painted, transfer


def entered(stage: Stage) -> Iterator[Measurement]:
    """From Enter in the text field to the new map, for a new sentence each time. The page shows the model's time."""
    page = stage.app_page()
    page.wait_for_selector(DETAIL)
    page.evaluate(WATCH_ANSWER)
    box = page.locator("#source-text textarea")
    sentences = sorted(texts(400, "de"), key=lambda text: abs(len(text) - LETTERS))
    times: dict[str, list[float]] = {}
    for text in sentences[: WARM_UP + RUNS]:
        box.fill(text)
        box.press("Enter")
        page.wait_for_function("window.__at?.painted")
        at = page.evaluate("window.__at")
        facts = page.locator(".atlas-translation .facts").text_content() or ""
        model = float(re.search(r"([\d.]+) ms on", facts)[1])
        parts = {
            "answer": at["answered"] - at["entered"] - model,
            "paint": at["painted"] - at["answered"],
            "above_model": at["painted"] - at["entered"] - model,
            "model": model,
        }
        for name, value in parts.items():
            times.setdefault(f"entered_{name}", []).append(value)
    yield from medians(times)
    page.context.close()


def openings(stage: Stage) -> Iterator[Measurement]:
    """The longest task of the main thread when a tab or a part of it is opened for the first time, in milliseconds.

    The median of some pages.
    """
    stage.app_page().context.close()  # the first request to the server is not measured
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        page = stage.page(stage.app_url())
        page.set_viewport_size({"width": 1280, "height": 800})
        page.wait_for_selector(f".atlas-explorer {DETAIL}")
        page.evaluate(WATCH_TASKS)
        page.evaluate(WAIT_UNTIL_QUIET)
        for _, name, _ in shell.TABS:
            page.evaluate("(name) => document.querySelector(`#tab-${name}-button`).click()", name)
            times.setdefault(name, []).append(page.evaluate(WAIT_UNTIL_QUIET))
            while (part := page.evaluate(FIND_UNOPENED)) is not None:
                page.evaluate("window.__next.click()")
                times.setdefault(f"{name}, {part}", []).append(page.evaluate(WAIT_UNTIL_QUIET))
        page.context.close()
    medians_by_name = {name: statistics.median(values) for name, values in times.items()}
    for name, value in medians_by_name.items():
        yield Measurement(f"longest task: {name}", value, "ms")
    yield Measurement("longest task of all", max(medians_by_name.values()), "ms")


def idle(stage: Stage) -> Iterator[Measurement]:
    """Processor time of an idle app without a page, of an idle page (all of its browser), and of its app.

    A blinking caret is drawn by the browser twice a second on any page, so the page is measured with and without it.
    """
    with running_app(["--checkpoints", str(stage.checkpoints)]) as (port, pid):
        yield measure_idle("idle app", lambda: processor_seconds(pid))
        page = stage.page(f"http://127.0.0.1:{port}/")
        page.wait_for_selector(f".atlas-explorer {DETAIL}", state="attached")
        session = stage.browser.new_browser_cdp_session()

        def browser_seconds() -> float:
            return sum(process["cpuTime"] for process in session.send("SystemInfo.getProcessInfo")["processInfo"])

        yield measure_idle("idle page, a caret in its field", browser_seconds)
        page.evaluate("document.activeElement.blur()")
        yield measure_idle("idle page", browser_seconds)
        yield measure_idle("app with an idle page", lambda: processor_seconds(pid))
        page.context.close()


def measure_idle(name: str, used: Callable[[], float]) -> Measurement:
    """Return the share of a core that `used` (seconds so far) grows by within a minute."""
    time.sleep(SETTLE)
    began, before = time.monotonic(), used()
    time.sleep(IDLE)
    return Measurement(name, round(100 * (used() - before) / (time.monotonic() - began), 2), "% of a core")
