"""The files that a request passes through: python -m bench.path --help

The app runs in this process, with a profile function in each of its threads, and its page in Chromium, with precise
coverage. For each of three actions, prints the files of app.py and viz/ with a function that ran between the action and
the painted answer: a sentence that is translated, a token that is forced, a panel of Why that is unfolded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from playwright.sync_api import CDPSession, Page, sync_playwright

from attention_atlas.model.program import CommandLine, run_program
from attention_atlas.model.translators import Translators
from attention_atlas.viz import shell
from bench.common import ROOT
from bench.page.stage import launch_chromium
from bench.ports import free_port

TEXT = "Der Zug nach Hamburg hat heute zwanzig Minuten Verspätung."
FIELD, CANDIDATE = "#source-text :is(textarea, input)", ".atlas-stepper button.candidate"
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"


class PythonFiles:
    """The files of app.py and viz/ whose functions are called in threads that start later, while `names` is a set."""

    def __init__(self) -> None:
        self.names: set[str] | None = None
        threading.setprofile(self._on_event)

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        if self.names is not None and event == "call" and frame.f_code.co_name != "<module>":
            self.names.add(frame.f_code.co_filename)

    def take(self) -> set[str]:
        """Return the files since `names` was set, and stop recording."""
        paths, self.names = {Path(name) for name in self.names}, None
        names = {path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT)}
        return {name for name in names if name == "attention_atlas/app.py" or name.startswith("viz/")}


def script_files(session: CDPSession) -> set[str]:
    """Return the modules of viz/web with a function that was called since this was last called."""
    return {
        "viz/web/" + script["url"].split("/atlas/")[1].split("/", 1)[1]
        for script in session.send("Profiler.takePreciseCoverage")["result"]
        if "/atlas/" in script["url"]
        and "plotly" not in script["url"]
        # The first function is the module itself.
        and any(function["ranges"][0]["count"] for function in script["functions"][1:])
    }


# name: (tab that is open, question that answers, action)
ACTIONS: dict[str, tuple[str, str, Callable[[Page], None]]] = {
    "a typed sentence": ("explorer", "page_translate", lambda page: page.locator(FIELD).press("Enter")),
    "a forced token": ("stepper", "page_step", lambda page: page.locator(CANDIDATE).nth(1).click()),
    "a panel of Why": ("why", "page_panel", lambda page: page.locator("#why-fold > summary").click()),
}


def paths(checkpoints: Path) -> dict[str, list[str]]:
    """Return the files of each action, in alphabetical order."""
    python = PythonFiles()
    page_of_app = shell.build(Translators.load(checkpoints, "cpu"))
    url = page_of_app.launch(server_name="127.0.0.1", server_port=free_port())
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        session = page.context.new_cdp_session(page)
        session.send("Profiler.enable")
        session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": False})
        page.goto(url)
        page.wait_for_selector(".atlas-explorer .detail .heatmaplayer image")
        files = {}
        for name, (tab, question, act) in ACTIONS.items():
            page.locator(f"#tab-{tab}-button").click()
            page.locator(FIELD).fill(TEXT)
            page.wait_for_timeout(8000)
            script_files(session)
            python.names = set()
            with page.expect_response(f"**/ask/{question}") as response:
                act(page)
            response.value.finished()
            page.evaluate(TWO_FRAMES)
            files[name] = sorted(python.take() | script_files(session))
        browser.close()
    page_of_app.demo.close()
    return files


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.path", __doc__)
    parser.add_argument("--checkpoints", type=Path, default=ROOT / "checkpoints")
    args = parser.parse_args(argv)
    for name, files in paths(args.checkpoints).items():
        print(f"{name}: {len(files)} files", *files, sep="\n  ")


if __name__ == "__main__":
    run_program(main)
