"""Walk three tasks with the screen reader Orca: dbus-run-session python -m bench.screen_reader --out PAGE.md

Real keys are pressed in Chromium on a display of its own, and what Orca says after each is taken from its log. Needs
the Debian packages orca, at-spi2-core, dbus-x11, speech-dispatcher, xvfb, openbox and xdotool.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from attention_atlas.model.program import run_program
from bench.load import APP, running_server
from bench.page.stage import CHROMIUM, FLAGS

DISPLAY = ":87"
FIELD = "#source-text textarea"
SPEECH = re.compile(r"(\d\d:\d\d:\d\d\.\d+) - SPEECH OUTPUT: '(.*)'(?:[\[{].*)?$")
ECHO = re.compile(r"(return|tab|down|up|left|right|space|escape|control|[a-z.])\s*", re.IGNORECASE)  # Orca names keys
PAUSE, LONG_PAUSE, MOST = (
    2.5,
    9.0,
    40,
)  # seconds after a key, and after one that computes; keys until something is reached
FOCUSED = "() => { const node = document.activeElement; return node.ariaLabel || node.textContent; }"

# Steps: "type TEXT", a key as xdotool names it, or "KEY until TEXT": press the key until what has the focus begins so.
TASKS = {
    "Translate a sentence, and find the source word that the model attended to when it wrote “Hund”": (
        "type The small dog sleeps.",
        "Return",
        "Tab until Der",
        "Right",
        "Right",
    ),
    "Test whether the model depends on that word": ("Tab until Test it", "Return"),
    "Open a head in the tree, and read a row and a cell": (
        "Tab until All heads as a tree",
        "Return",
        "Tab",
        "Right",
        "Right",
        "Down",
        "Right",
        "Right",
        "Down",
    ),
}


@contextlib.contextmanager
def desktop(log: Path) -> Iterator[None]:
    """Run a display, a window manager, the accessibility bus and Orca."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as running:
        os.environ |= {"DISPLAY": DISPLAY, "HOME": folder, "XDG_RUNTIME_DIR": folder, "ACCESSIBILITY_ENABLED": "1"}
        os.environ |= {"XDG_DATA_HOME": f"{folder}/data", "XDG_CONFIG_HOME": f"{folder}/config"}
        for command, seconds in (
            (["Xvfb", DISPLAY, "-screen", "0", "1280x900x24"], 1),
            (["openbox"], 1),
            (["/usr/libexec/at-spi-bus-launcher", "--launch-immediately"], 1),
            (["speech-dispatcher", "-s", "-t", "0"], 1),
            (["orca", "--replace", f"--debug-file={log}"], 6),
        ):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running.callback(process.wait)
            running.callback(process.kill)
            time.sleep(seconds)
        yield


def press_keys(page: Page, steps: tuple[str, ...]) -> Iterator[tuple[datetime, str]]:
    """Do the steps of a task; yield the time and the name of each key."""
    for step in steps:
        key, _, wanted = step.partition(" until ")
        for _ in range(MOST if wanted else 1):
            pressed = datetime.now()
            if step.startswith("type "):
                key = f"types “{step.removeprefix('type ')}”"
                typed = ["type", "--delay", "60", step.removeprefix("type ")]
                subprocess.run(["xdotool", "key", "ctrl+a", *typed], check=True)
            else:
                subprocess.run(["xdotool", "key", key], check=True)
            time.sleep(LONG_PAUSE if key == "Return" else PAUSE)
            yield pressed, key
            if wanted and page.evaluate(FOCUSED).startswith(wanted):
                break


def transcript(tasks: dict[str, list[tuple[datetime, str]]], end: datetime, log: Path) -> str:
    """Return tables of the keys and what Orca said after each. end: when the tasks were done."""
    utterances = [
        match.groups() for line in log.read_text("utf-8", "replace").splitlines() if (match := SPEECH.search(line))
    ]
    times = [f"{pressed:%H:%M:%S.%f}" for keys in tasks.values() for pressed, _ in keys]
    ends = dict(zip(times, [*times[1:], f"{end:%H:%M:%S.%f}"]))
    lines = []
    for task, keys in tasks.items():
        lines += [f"\n## {task}\n", "| Key | Orca says |", "|---|---|"]
        for pressed, key in keys:
            start = f"{pressed:%H:%M:%S.%f}"
            texts = [text.strip() for at, text in utterances if start <= at < ends[start] and not ECHO.fullmatch(text)]
            is_spelled = key.startswith("types")  # Orca names each letter
            speech = "" if is_spelled else "<br>".join(texts).replace("|", "&#124;")
            lines.append(f"| {key} | {speech} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the file to write, in Markdown")
    parser.add_argument("--url", help="a page that is served already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "orca.log")
        with contextlib.ExitStack() as running:
            url = options.url or f"http://127.0.0.1:{running.enter_context(running_server(*APP))[0]}/"
            running.enter_context(desktop(log))
            context = running.enter_context(sync_playwright()).chromium.launch_persistent_context(
                os.environ["XDG_CONFIG_HOME"],
                executable_path=next(filter(None, map(shutil.which, CHROMIUM)), None),
                headless=False,
                no_viewport=True,
                locale="en-US",
                args=[*FLAGS.split(), "--force-renderer-accessibility", "--window-size=1280,900", f"--app={url}"],
                env=dict(os.environ),
            )
            page = context.pages[0]
            page.wait_for_selector(".atlas-explorer .detail .plot")
            page.locator(FIELD).focus()
            time.sleep(LONG_PAUSE)
            tasks = {task: list(press_keys(page, steps)) for task, steps in TASKS.items()}
            end = datetime.now()
            list(press_keys(page, ("Tab",) * 8))  # Orca writes its log in blocks
        options.out.write_text(transcript(tasks, end, log), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
