"""How fast the page answers, in a real browser: `python -m viz.browser_benchmark [--json FILE] [--only NAME ..]`

Every figure is the median of 20 after 3 for warming up, from the click (or key) to the frame in which the change has
been painted. The servers are processes of their own. A measurement is a function Stage -> iterable of Measurement;
MEASUREMENTS lists them all.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from viz.chromium import launch_chromium

ROOT = Path(__file__).resolve().parent.parent
RUNS, WARM_UP = 20, 3
SWITCHES = 200  # head switches between the two counts of nodes and heap


@dataclass(frozen=True)
class Measurement:
    name: str
    value: float
    unit: str


class Stage:
    """Where measurements take place: a browser, and servers that stop when the stage closes."""

    def __init__(self, browser: Browser, stack: contextlib.ExitStack, checkpoints: Path) -> None:
        self.browser, self._stack, self._checkpoints = browser, stack, checkpoints
        self._urls: dict[tuple[str, ...], str] = {}

    def page(self, url: str) -> Page:
        """A fresh page of 1280 x 900 CSS pixels."""
        page = self.browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(30_000)
        page.goto(url)
        return page

    def random_page(self, tokens: int) -> Page:
        """viz/ui/benchmark_page.py over random attention of this many tokens a side."""
        page = self.page(self._serve("-m", "viz.ui.benchmark_page", "--tokens", str(tokens)))
        page.wait_for_selector(".atlas-explorer .thumbnail")
        page.wait_for_selector("#plot .js-plotly-plot")
        return page

    def app_page(self) -> Page:
        """The app itself over its checkpoints."""
        page = self.page(self._serve("app.py", "--checkpoints", str(self._checkpoints)))
        page.wait_for_selector(".atlas-explorer .thumbnail")
        return page

    def _serve(self, *command: str) -> str:
        if command not in self._urls:
            self._urls[command] = self._stack.enter_context(serving(*command))
        return self._urls[command]


@contextlib.contextmanager
def serving(*command: str) -> Iterator[str]:
    """Run `python COMMAND --port FREE` and yield its address once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, *command, "--port", str(port)], cwd=ROOT, env=environment,
                               stdout=subprocess.DEVNULL)
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


def median_of(measure: Callable[[int], float]) -> float:
    """The median of measure(0), measure(1), .. without the first few."""
    values = [measure(i) for i in range(WARM_UP + RUNS)]
    return statistics.median(values[WARM_UP:])


def head_switches(stage: Stage) -> Iterator[Measurement]:
    """A click on another head, in the explorer and in a gr.Plot that shows the same maps, taking turns."""
    for tokens in (30, 100):
        page = stage.random_page(tokens)
        page.locator(".thumbnail[data-layer='2'][data-head='0']").click()
        page.wait_for_selector(".detail .heatmaplayer image")
        ours, plots = [], []
        for i in range(WARM_UP + RUNS):
            head = 1 + i % 7
            ours.append(switch_head(page, 2, head))
            plots.append(switch_plot(page, head))
        for name, values in ((f"head_switch_{tokens}", ours), (f"gr_plot_switch_{tokens}", plots)):
            yield Measurement(name, round(statistics.median(values[WARM_UP:]), 1), "ms")
        page.context.close()


def switch_head(page: Page, layer: int, head: int) -> float:
    """Click a thumbnail; done when the detail's picture is another one and its title names the head."""
    page.evaluate("window.__image = document.querySelector('.detail .heatmaplayer image').getAttribute('href')")
    return timed(
        page, f"document.querySelector(\".thumbnail[data-layer='{layer}'][data-head='{head}']\").click()",
        "document.querySelector('.detail .heatmaplayer image')?.getAttribute('href') !== window.__image && "
        f"document.querySelector('.heading-line').textContent.endsWith('Head {head + 1}')")


def switch_plot(page: Page, head: int) -> float:
    """Click a button whose handler answers with the figure of a head; done when gr.Plot shows its title."""
    return timed(page, f"document.querySelector('#plot-head-{head}').click()",
                 f"document.querySelector('#plot .gtitle')?.textContent.includes('head {head + 1}:')")


def first_paint(stage: Stage) -> Iterator[Measurement]:
    """From the server's answer to a translation (its payload in the page) to the atlas and the map painted."""
    page = stage.random_page(30)
    page.evaluate("""() => {
      const root = document.querySelector('.atlas-explorer');
      root.addEventListener('atlas-received', () => (window.__begin = performance.now()));
      root.addEventListener('atlas-drawn', () =>
        requestAnimationFrame(() => setTimeout(() => (window.__drawn = performance.now() - window.__begin), 0)));
    }""")

    def translate(_: int) -> float:
        page.evaluate("window.__drawn = 0")
        page.locator("#translate").click()
        page.wait_for_function("window.__drawn > 0")
        return page.evaluate("window.__drawn")

    yield Measurement("first_paint_30", round(median_of(translate), 1), "ms")
    whole = "window.__before !== document.querySelector('.atlas-explorer .field.wide select').value"

    def round_trip(_: int) -> float:
        page.evaluate("window.__before = document.querySelector('.atlas-explorer .field.wide select').value")
        return timed(page, "document.querySelector('#translate').click()", whole)

    yield Measurement("first_paint_with_server_30", round(median_of(round_trip), 1), "ms")
    page.context.close()


def payload_size(stage: Stage) -> Iterator[Measurement]:
    """Bytes that one translation sends to the page: the whole event stream of its answer."""
    page, sizes = stage.random_page(30), []
    page.on("requestfinished", lambda r: sizes.append(r.sizes()["responseBodySize"]) if "queue/data" in r.url else None)
    page.locator("#translate").click()
    page.wait_for_function("document.querySelector('.atlas-explorer .field.wide select').options.length === 2")
    page.wait_for_timeout(1000)
    yield Measurement("payload_30", round(max(sizes) / 1000, 1), "kB")
    page.context.close()


def growth(stage: Stage) -> Iterator[Measurement]:
    """DOM nodes and heap after 200 head switches and a forced garbage collection, relative to before."""
    page = stage.random_page(30)
    session = page.context.new_cdp_session(page)

    def counts() -> tuple[float, float]:
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        found = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
        return found["Nodes"], found["JSHeapUsedSize"]

    session.send("Performance.enable")
    page.wait_for_selector(".detail .heatmaplayer image")
    for i in range(2 * WARM_UP):
        switch_head(page, i % 6, 1 + i % 7)
    before = counts()
    for i in range(SWITCHES):
        switch_head(page, i % 6, 1 + i % 7)
    page.wait_for_timeout(600)
    after = counts()
    for name, old, new in zip(("nodes_growth", "heap_growth"), before, after):
        yield Measurement(name, round(100 * (new / old - 1), 1), "%")
    page.context.close()


SENTENCE = ("Ein kleiner Hund rennt über die grüne Wiese, und zwei Kinder in roten Jacken spielen mit einem Ball, "
            "während ihre Mutter liest.")  # about 30 tokens


def lab_positions(stage: Stage) -> Iterator[Measurement]:
    """The panels on positional encoding."""
    yield from lab_panels(stage, "positions")


def lab_inside(stage: Stage) -> Iterator[Measurement]:
    """The panels on the way through the model."""
    yield from lab_panels(stage, "inside")


def lab_checks(stage: Stage) -> Iterator[Measurement]:
    """All checks, from the click on their button to the last verdict; BLEU."""
    yield from (found for found in lab_panels(stage, "verify") if found.name != "panel_verify")
    page = lab_page(stage, "verify")
    page.wait_for_selector("#panel-verify .text.good")
    yield Measurement("verify", round(median_of(lambda _: verify_again(page)), 1), "ms")
    page.context.close()


def lab_page(stage: Stage, tab: str) -> Page:
    """The app with a sentence of about 30 tokens and a tab of the lab open."""
    page = stage.app_page()
    page.locator("#source-text textarea, #source-text input").first.fill(SENTENCE)
    page.locator("#translate").click()
    page.wait_for_function("document.querySelectorAll('.atlas-translation .chip').length > 40")
    page.locator(f"#tab-{tab}-button").click()
    return page


def lab_panels(stage: Stage, tab: str) -> Iterator[Measurement]:
    """The panels of a tab, opened in turn, round after round: from the click to its content, computed anew and
    painted."""
    page = lab_page(stage, tab)
    names = page.locator(f"#tab-{tab} [role=tab]").evaluate_all("tabs => tabs.map(tab => tab.dataset.tabId)")
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(WARM_UP + RUNS):
        for name in names[1:] + names[:1]:  # the first is open: asked again only after another
            times[name].append(open_panel(page, name))
    for name, values in times.items():
        yield Measurement(f"panel_{name.replace('-', '_')}", round(statistics.median(values[WARM_UP:]), 1), "ms")
    page.context.close()


def open_panel(page: Page, name: str) -> float:
    """Open a closed panel; done when it has been asked for its content again, and that is painted."""
    panel = f"document.querySelector('#panel-{name} .atlas-panel')"
    page.evaluate(f"window.__drawn = {panel}?.dataset.drawn")
    return timed(page, f"[...document.querySelectorAll('[role=tab][data-tab-id={name}]')].pop().click()",
                 f"{panel}?.dataset.drawn && {panel}.dataset.drawn !== window.__drawn && "
                 f"{panel}.ariaBusy === 'false' && "
                 f"[...{panel}.querySelectorAll('.figure')].every(figure => figure.querySelector('.main-svg'))")


def verify_again(page: Page) -> float:
    """Click the button; done when every check has its verdict."""
    panel = "document.querySelector('#panel-verify .atlas-panel')"
    page.evaluate(f"window.__drawn = {panel}.dataset.drawn")
    return timed(page, "document.querySelector('#verify-again').click()",
                 f"{panel}.dataset.drawn !== window.__drawn && {panel}.querySelector('.text.good, .text.bad')")


LONG_TARGET = ("A small dog runs across the green meadow, and two children in red jackets are playing with a ball "
               "while their mother is reading a book, and then they go home again.")  # more than 30 tokens


def stepper(stage: Stage) -> Iterator[Measurement]:
    """A step forward, a step back and a forced token at 30 tokens of the target."""
    page = stage.app_page()
    page.locator("#source-text textarea, #source-text input").first.fill(SENTENCE)
    page.locator("#translate").click()
    page.wait_for_function("document.querySelectorAll('.atlas-translation .chip').length > 40")
    page.locator("#tab-stepper-button").click()
    page.wait_for_function(f"{STEPPER}?.dataset.opened && {STEPPER}.ariaBusy !== 'true'")
    page.locator(".atlas-stepper [data-panel=own]").click()
    page.locator(".atlas-stepper .own textarea").fill(LONG_TARGET)
    page.locator(".atlas-stepper .own [type=submit]").click()
    page.wait_for_function(f"{STEPPER}.querySelectorAll('.sentences button.chip').length > 32")
    times: dict[str, list[float]] = {"step_30": [], "back_30": [], "force_30": []}
    own = page.locator(".atlas-stepper [data-panel=branches]")
    for i in range(WARM_UP + RUNS):
        page.evaluate(f"{STEPPER}.querySelectorAll('.sentences button.chip')[30].click()")
        page.wait_for_function(f"{STEPPER}.dataset.step === '30'")
        times["step_30"].append(timed(page, f"{STEPPER}.querySelector('[data-move=next]').click()",
                                      f"{STEPPER}.dataset.step === '31'"))
        times["back_30"].append(timed(page, f"{STEPPER}.querySelector('[data-move=back]').click()",
                                      f"{STEPPER}.dataset.step === '30'"))
        page.evaluate(f"window.__opened = {STEPPER}.dataset.opened")
        times["force_30"].append(timed(page, f"{STEPPER}.querySelectorAll('.candidate:not(.taken)')[{i % 9}].click()",
                                       f"{STEPPER}.dataset.opened !== window.__opened && "
                                       f"{STEPPER}.dataset.step === '31'"))
        own.click()
        page.wait_for_function(f"{STEPPER}.ariaBusy !== 'true'")
        page.wait_for_timeout(400)  # the other tabs have caught up with the new branch
    for name, values in times.items():
        yield Measurement(name, round(statistics.median(values[WARM_UP:]), 1), "ms")
    page.context.close()


STEPPER = "document.querySelector('.atlas-stepper')"

# The names that each prints are its own; further tabs add their functions here.
MEASUREMENTS: tuple[Callable[[Stage], Iterable[Measurement]], ...] = (
    head_switches, first_paint, payload_size, growth, lab_positions, lab_inside, lab_checks, stepper)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m viz.browser_benchmark", description=__doc__)
    parser.add_argument("--json", type=Path, help="write a list of {name, value, unit}")
    parser.add_argument("--only", nargs="*", help=f"of {', '.join(m.__name__ for m in MEASUREMENTS)}")
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints")
    args = parser.parse_args(argv)
    chosen = [m for m in MEASUREMENTS if not args.only or m.__name__ in args.only]
    found = []
    with sync_playwright() as playwright, contextlib.ExitStack() as stack:
        browser = launch_chromium(playwright)
        stage = Stage(browser, stack, args.checkpoints)
        for measure in chosen:
            for measurement in measure(stage):
                found.append(measurement)
                print(f"{measurement.name:<28} {measurement.value:>10,.1f} {measurement.unit}", flush=True)
        browser.close()
    if args.json:
        args.json.write_text(json.dumps([asdict(m) for m in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
