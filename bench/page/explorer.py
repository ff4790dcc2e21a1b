"""The explorer's part of the benchmark: switching heads, the first paint, what is sent, and what is left behind."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from playwright.sync_api import Page

from bench.page.stage import RUNS, STORE, WARM_UP, Measurement, Stage, median_of, medians, timed

SWITCHES = 200  # head switches between the two counts of nodes and heap


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
        yield from medians({f"head_switch_{tokens}": ours, f"gr_plot_switch_{tokens}": plots})
        page.context.close()


def switch_head(page: Page, layer: int, head: int) -> float:
    """Click a thumbnail; done when the detail's picture is another one and its title names the head."""
    page.evaluate("window.__image = document.querySelector('.detail .heatmaplayer image').getAttribute('href')")
    return timed(
        page,
        f"document.querySelector(\".thumbnail[data-layer='{layer}'][data-head='{head}']\").click()",
        "document.querySelector('.detail .heatmaplayer image')?.getAttribute('href') !== window.__image && "
        f"document.querySelector('.heading-line').textContent.endsWith('Head {head + 1}')",
    )


def switch_plot(page: Page, head: int) -> float:
    """Click a button whose handler answers with the figure of a head; done when gr.Plot shows its title."""
    return timed(
        page,
        f"document.querySelector('#plot-head-{head}').click()",
        f"document.querySelector('#plot .gtitle')?.textContent.includes('head {head + 1}:')",
    )


def first_paint(stage: Stage) -> Iterator[Measurement]:
    """From the server's answer to a translation (its payload in the page) to the atlas and the map painted."""
    page = stage.random_page(30)
    page.evaluate(f"""async () => {{
      {STORE}
      store.follow(['translation'], () => (window.__begin = performance.now()));
      store.follow(['drawCount'], () =>
        requestAnimationFrame(() => setTimeout(() => (window.__drawn = performance.now() - window.__begin), 0)));
    }}""")

    def translate(_: int) -> float:
        page.evaluate("window.__drawn = 0")
        page.locator("#translate").click()
        page.wait_for_function("window.__drawn > 0")
        return page.evaluate("window.__drawn")

    yield Measurement("first_paint_30", round(median_of(translate), 1), "ms")
    whole = "window.__before !== document.querySelector('.atlas-explorer .field.history select').value"

    def round_trip(_: int) -> float:
        page.evaluate("window.__before = document.querySelector('.atlas-explorer .field.history select').value")
        return timed(page, "document.querySelector('#translate').click()", whole)

    yield Measurement("first_paint_with_server_30", round(median_of(round_trip), 1), "ms")
    page.context.close()


def payload_size(stage: Stage) -> Iterator[Measurement]:
    """Bytes that one translation sends to the page: the whole event stream of its answer."""
    page = stage.random_page(30)
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    streams, sizes = set(), []  # the browser's own count: the stream's request may end long after its last byte
    session.on(
        "Network.requestWillBeSent",
        lambda sent: streams.add(sent["requestId"]) if "queue/data" in sent["request"]["url"] else None,
    )
    session.on(
        "Network.dataReceived", lambda part: sizes.append(part["dataLength"]) if part["requestId"] in streams else None
    )
    page.locator("#translate").click()
    page.wait_for_function("document.querySelector('.atlas-explorer .field.history select').options.length === 2")
    page.wait_for_timeout(1000)
    yield Measurement("payload_30", round(sum(sizes) / 1000, 1), "kB")
    page.context.close()


def large_map(stage: Stage) -> Iterator[Measurement]:
    """An encoder's map of 1,024 x 1,024 tokens, of queries and keys: from the answer to a translation until its cells
    are painted at the level that fills the screen; another head; frames a second while it is moved and zoomed; heap."""
    page = stage.random_page(64, source=1024)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.wait_for_selector(".large .plot image", timeout=60_000)
    page.evaluate(f"""async () => {{
      {STORE}
      store.follow(['translation'], () => {{
        window.__begin = performance.now();
        window.__old = new Set([...document.querySelectorAll('.large .plot image')].map((one) => one.href.baseVal));
      }});
    }}""")
    every = "[...document.querySelectorAll('.large .plot image')]"
    sharp = "document.querySelectorAll('.large .plot image').length >= 4"
    fresh = f"{every}.every((one) => !window.__old.has(one.href.baseVal))"

    def translate(_: int) -> float:
        return timed(page, "document.querySelector('#translate').click()", f"window.__old && {sharp} && {fresh}")

    translated = [translate(i) for i in range(2)]  # then the page has both
    yield Measurement("large_map_1024", round(max(translated), 1), "ms")

    def another(i: int) -> float:
        mark = (
            "window.__old = new Set([...document.querySelectorAll('.large .plot image')].map((o) => o.href.baseVal));"
        )
        click = f"document.querySelector(\".thumbnail[data-layer='0'][data-head='{1 + i % 7}']\").click()"
        return timed(page, mark + click, f"{sharp} && {fresh}")

    yield Measurement("large_map_head_1024", round(statistics.median(another(i) for i in range(7)), 1), "ms")
    page.evaluate("document.querySelector('.large').focus()")
    frames = page.evaluate(MOVED)
    yield Measurement("large_map_frames_1024", round(frames, 1), "frames/s")
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    found = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    yield Measurement("large_map_heap_1024", round(found["JSHeapUsedSize"] / 1e6, 1), "MB")
    page.context.close()


# Runs in the page: the wheel turned in, a drag, the wheel turned out, an event a frame, again and again for six
# seconds; frames painted a second.
MOVED = """async () => {
  const root = document.querySelector('.large'), box = root.getBoundingClientRect();
  const x = box.left + box.width / 2, y = box.top + box.height / 2;
  const send = (Event, type, more) => root.dispatchEvent(new Event(type, {clientX: x, clientY: y, bubbles: true,
    cancelable: true, pointerId: 1, button: 0, ...more}));
  root.setPointerCapture = () => {};
  const begin = performance.now();
  let frames = 0, at = 0;
  while (performance.now() - begin < 6000) {
    const turn = frames % 90;
    if (turn < 20) send(WheelEvent, 'wheel', {deltaY: -40});
    else if (turn === 20) send(PointerEvent, 'pointerdown');
    else if (turn < 69) send(PointerEvent, 'pointermove', {clientX: x + 6 * (at = turn - 20), clientY: y + 3 * at});
    else if (turn === 69) send(PointerEvent, 'pointerup', {clientX: x + 6 * at, clientY: y + 3 * at});
    else send(WheelEvent, 'wheel', {deltaY: 40});
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
    frames += 1;
  }
  return 1000 * frames / (performance.now() - begin);
}"""


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
