"""The first view's part of the benchmark: how long whoever opens the page waits for what, and what it costs to send.

Each run is a browser context of its own, so nothing is cached: no file, no compiled script. The times are the browser's
own (Element Timing, W3C: the frame in which an element was painted first), since the navigation began. A canvas has
none such: it counts from a task after the frame in which it was drawn.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.page.stage import Measurement, Stage

FIRST_RUNS = 9
SLOWED = 4  # times: what is reported besides, with the processor throttled
HEADER, PICTURE, PLOTLY = "header", "picture", "picture by Plotly"
# The elements that are timed: the page's name, the cells of the selected head, and the same drawn by Plotly.
WATCH = """(parts) => {
  const painted = (window.__painted = {});
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) painted[entry.identifier] ??= entry.startTime;
  }).observe({ type: 'element', buffered: true });
  const seen = new WeakSet(), look = () => {
    for (const [name, selector] of Object.entries(parts)) {
      const node = name in painted ? null : document.querySelector(selector);
      if (!node || seen.has(node)) continue; // what was replaced before it was painted has a successor
      seen.add(node);
      if (node.tagName !== 'CANVAS') node.setAttribute('elementtiming', name);
      else requestAnimationFrame(() => setTimeout(() => (painted[name] ??= performance.now()), 0));
    }
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
}"""
PARTS = {
    HEADER: "#atlas-title h1",
    PICTURE: ".atlas-explorer .detail .sketch",
    PLOTLY: ".atlas-explorer .detail .heatmaplayer image",
}
# Until the picture: requests, and bytes over the wire and unpacked, the page itself among them.
SENT = """(until) => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const before = all.filter((entry) => entry.responseEnd < until);
  const sum = (field) => before.reduce((whole, entry) => whole + entry[field], 0) / 1000;
  return [before.length, sum('encodedBodySize'), sum('decodedBodySize')]; }"""


def first_view(stage: Stage) -> Iterator[Measurement]:
    """The app opened in a browser that has never seen it: as it is, and with the processor slowed down."""
    stage.app_page().context.close()  # the server's own first time is nobody's wait
    times, sent = {}, []
    for _ in range(FIRST_RUNS):
        for slowed in (1, SLOWED):
            found, bytes_sent = opened(stage, slowed)
            sent.append(bytes_sent)
            for name, value in found.items():
                times.setdefault((name, slowed), []).append(value)
    for (name, slowed), values in sorted(times.items(), key=lambda item: item[0][1]):
        label = f"first {name}" + (f", processor slowed {slowed} times" if slowed > 1 else "")
        yield Measurement(label, round(statistics.median(values)), "ms")
    for name, values in zip(("requests", "sent", "sent, unpacked"), zip(*sent)):
        yield Measurement(
            f"before the first picture: {name}", round(statistics.median(values)), "" if name == "requests" else "kB"
        )


def opened(stage: Stage, slowed: int) -> tuple[dict[str, float], tuple[float, float, float]]:
    """When each part was painted, in milliseconds; and what had been asked for by the first picture."""
    context = stage.browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    page.add_init_script(f"({WATCH})({PARTS!r})")
    page.goto(stage.app_url())
    page.wait_for_function(f"Object.keys(window.__painted).length === {len(PARTS)}")
    found = page.evaluate("window.__painted")
    sent = tuple(page.evaluate(SENT, found[PICTURE]))
    context.close()
    return found, sent
