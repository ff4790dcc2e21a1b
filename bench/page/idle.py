"""What an app costs that nobody uses: its time on the processor while nobody asks, and that of a page left alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.load import running_app
from bench.page.stage import Measurement, Stage

SETTLE, WATCHED = 30, 60  # seconds before each minute, in which what was thrown away is cleared up; and the minute


def idle(stage: Stage) -> Iterator[Measurement]:
    """The app without a page; then with one that is open and left alone, and that page: all of its browser's processes,
    which have nothing else to do. A caret that blinks is drawn by the browser twice a second, on any page."""
    with running_app(["--checkpoints", str(stage.checkpoints)]) as (port, pid):
        yield Measurement("idle app", *share(lambda: processor_seconds(pid)))
        page = stage.page(f"http://127.0.0.1:{port}/")
        page.wait_for_selector(".atlas-explorer .heatmaplayer image", state="attached")
        session = stage.browser.new_browser_cdp_session()

        def browser_seconds() -> float:
            return sum(one["cpuTime"] for one in session.send("SystemInfo.getProcessInfo")["processInfo"])

        yield Measurement("idle page, a caret in its field", *share(browser_seconds))
        page.evaluate("document.activeElement.blur()")
        yield Measurement("idle page", *share(browser_seconds))
        yield Measurement("app with an idle page", *share(lambda: processor_seconds(pid)))
        page.context.close()


def share(used: Callable[[], float]) -> tuple[float, str]:
    """Of one core's time, in percent, over a minute; and its unit."""
    time.sleep(SETTLE)
    began, before = time.monotonic(), used()
    time.sleep(WATCHED)
    return round(100 * (used() - before) / (time.monotonic() - began), 2), "% of a core"


def processor_seconds(pid: int) -> float:
    """What a process has taken, in itself and in the kernel."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")
