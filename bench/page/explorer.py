"""Measurements of the explorer: switching heads, first paint, payload, a large map, and growth of memory."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

from bench.common import Measurement
from bench.page.stage import (
    DETAIL,
    RUNS,
    SENTENCE,
    STORE,
    TEXT_FIELD,
    WARM_UP,
    Stage,
    heap_metrics,
    measure_median,
    medians,
    timed,
)

SWITCHES = 200  # head switches between the two counts of nodes and heap
HISTORY = "document.querySelector('.atlas-explorer .field.history select')"
LARGE_MAP = "document.querySelector('.large .plot').toDataURL()"
MARK_LARGE = f"window.__old = {LARGE_MAP};"
# Runs in the page for six seconds: zoom in with the wheel, drag, zoom out, one event a frame. Returns frames a second.
PAN_AND_ZOOM = """async () => {
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


def head_switches(stage: Stage) -> Iterator[Measurement]:
    """A click on another head, in the explorer and in a gr.Plot of the same maps, which take turns."""
    for tokens in (30, 100):
        page = stage.random_page(tokens)
        page.locator(".thumbnail[data-layer='2'][data-head='0']").click()
        page.wait_for_selector(DETAIL)
        ours, plots = [], []
        for i in range(WARM_UP + RUNS):
            head = 1 + i % 7
            ours.append(switch_head(page, 2, head))
            plots.append(switch_plot(page, head))
        yield from medians({f"head_switch_{tokens}": ours, f"gr_plot_switch_{tokens}": plots})
        page.context.close()


def switch_head(page: Page, layer: int, head: int) -> float:
    """Click a thumbnail, and wait until the large map has changed and its title names the head."""
    image = f"document.querySelector('{DETAIL}')?.toDataURL()"
    return timed(
        page,
        f"document.querySelector(\".thumbnail[data-layer='{layer}'][data-head='{head}']\").click()",
        f"{image} !== before && document.querySelector('.heading-line').textContent.endsWith('Head {head + 1}')",
        watched=image,
    )


def switch_plot(page: Page, head: int) -> float:
    """Click a button that asks the server for the figure of a head, and wait until gr.Plot shows its title."""
    return timed(
        page,
        f"document.querySelector('#plot-head-{head}').click()",
        f"document.querySelector('#plot .gtitle')?.textContent.includes('head {head + 1}:')",
    )


def first_paint(stage: Stage) -> Iterator[Measurement]:
    """From the server's answer to a translation (its payload in the page) to the painted map."""
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

    yield measure_median("first_paint_30", translate)

    def round_trip(_: int) -> float:
        click, number = "document.querySelector('#translate').click()", f"{HISTORY}.value"
        return timed(page, click, f"{number} !== before", watched=number)

    yield measure_median("first_paint_with_server_30", round_trip)
    page.context.close()


def payload_size(stage: Stage) -> Iterator[Measurement]:
    """Bytes of the answer to a translation of about 30 tokens."""
    page = stage.app_page()
    page.locator(TEXT_FIELD).first.fill(SENTENCE)
    with page.expect_response("**/ask/page_translate") as response:
        page.locator("#translate").click()
    yield Measurement("payload_30", round(len(response.value.body()) / 1000, 1), "kB")
    page.context.close()


def large_map(stage: Stage) -> Iterator[Measurement]:
    """An encoder map of 1,024 x 1,024 tokens, computed from queries and keys: from the answer to a translation until
    its cells are painted at the level that fills the screen; another head; frames per second while it moves; heap."""
    page = stage.random_page(64, source=1024)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.wait_for_selector(".large .plot", timeout=60_000)
    page.evaluate(f"""async () => {{
      {STORE}
      store.follow(['translation'], () => {{
        window.__begin = performance.now();
        {MARK_LARGE}
      }});
    }}""")
    painted = f"{LARGE_MAP} !== window.__old"
    click = "document.querySelector('#translate').click()"
    translated = [timed(page, click, f"window.__old && {painted}") for _ in range(2)]  # then the page has both traces
    yield Measurement("large_map_1024", round(max(translated), 1), "ms")

    def switch(i: int) -> float:
        click = f"document.querySelector(\".thumbnail[data-layer='0'][data-head='{1 + i % 7}']\").click()"
        return timed(page, MARK_LARGE + click, painted)

    yield next(medians({"large_map_head_1024": [switch(i) for i in range(7)]}, warm_up=0))
    page.evaluate("document.querySelector('.large').focus()")
    yield Measurement("large_map_frames_1024", round(page.evaluate(PAN_AND_ZOOM), 1), "frames/s")
    yield Measurement("large_map_heap_1024", round(heap_metrics(session)["JSHeapUsedSize"] / 1e6, 1), "MB")
    page.context.close()


def growth(stage: Stage) -> Iterator[Measurement]:
    """Growth of DOM nodes and heap over 200 head switches, after a forced garbage collection."""
    page = stage.random_page(30)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.wait_for_selector(DETAIL)
    for i in range(2 * WARM_UP):
        switch_head(page, i % 6, 1 + i % 7)
    before = heap_metrics(session)
    for i in range(SWITCHES):
        switch_head(page, i % 6, 1 + i % 7)
    page.wait_for_timeout(600)
    after = heap_metrics(session)
    for name, metric in (("nodes_growth", "Nodes"), ("heap_growth", "JSHeapUsedSize")):
        yield Measurement(name, round(100 * (after[metric] / before[metric] - 1), 1), "%")
    page.context.close()
