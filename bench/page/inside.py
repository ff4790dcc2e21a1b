"""Measurements of the picture of the tab Inside: the times between frames while stages open and close."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from playwright.sync_api import Page

from bench.common import Measurement
from bench.page.stage import STORE, Stage

PLACES = ("dec2.cross", "dec2.cross.h3", "dec2.cross", "", "enc3.self", "enc3.ff", "", "out", "", "memory", "")
SIZES = ((1280, 800), (390, 844))
SLOWED = 4  # times

# Opens places one after another, and returns the milliseconds between the frames of all transitions.
FRAMES = f"""async (places) => {{
  {STORE}
  const picture = document.querySelector(".inside"), times = [];
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  for (const place of places) {{
    store.set({{ inside: {{ place, cell: "" }} }});
    let last = await frame();
    while (picture.dataset.moving === "true") {{
      const now = await frame();
      times.push(now - last);
      last = now;
    }}
    while (picture.dataset.busy === "true") await frame();
    await new Promise((resolve) => setTimeout(resolve, 400));
  }}
  return times;
}}"""


def inside_frames(stage: Stage) -> Iterator[Measurement]:
    """Median and 95th percentile of frame times while stages open and close, at two sizes, also slowed four times."""
    for width, height in SIZES:
        page = stage.app_page()
        page.set_viewport_size({"width": width, "height": height})
        page.locator("#tab-inside-button").click()
        page.wait_for_selector(".inside[data-busy=false] canvas")
        throttle = page.context.new_cdp_session(page)
        frame_times(page)  # requests all stages, so that what follows only draws
        for rate in (1, SLOWED):
            throttle.send("Emulation.setCPUThrottlingRate", {"rate": rate})
            times = frame_times(page)
            name = f"inside_frames_{width}" + f"_slowed_{rate}" * (rate > 1)
            yield Measurement(f"{name}_median", round(statistics.median(times), 1), "ms")
            yield Measurement(f"{name}_p95", round(statistics.quantiles(times, n=20)[-1], 1), "ms")
        page.context.close()


def frame_times(page: Page) -> list[float]:
    """Return the milliseconds between the frames of all transitions between PLACES."""
    return page.evaluate(FRAMES, PLACES)
