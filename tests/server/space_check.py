"""The repository as a Hugging Face Space would run it: `make space-check`, a few minutes.

A clean virtual environment with requirements.txt under constraints.txt and what Spaces install besides; only the files
that git knows, in a folder of their own; the variables a Space sets; server-side rendering on. Then a real browser
walks through every tab, and the API answers. Fails on anything missing, any console error, any request to another host;
only the requests of Gradio's own header are allowed to be made, and the content policy has to block them.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from huggingface_hub import metadata_load
from playwright.sync_api import Page, sync_playwright

from attention_atlas.model.program import CommandLine, run_program
from bench.load import Caller, running_server
from bench.page.stage import launch_chromium
from tests import ROOT, run
from tests.page.browser import watched
from tests.programs.release import copy_sources

REQUIRED = {"title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "app_file", "license"}
OPTIONAL = (
    "python_version short_description tags pinned suggested_hardware preload_from_hub models datasets "
    "startup_duration_timeout fullWidth header disable_embedding"
)
# A Space opened outside huggingface.co gets a header from Gradio, which asks these addresses for fonts and for facts
# about the Space. The page's content policy must block both; the header then reports an error of its own.
HEADER_REQUESTS = ("https://fonts.googleapis.com/css2", "https://huggingface.co/api/spaces/")
HEADER_ERROR = "console: Space not found"
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


def front_matter() -> dict[str, object]:
    """Return the fields of the README's front matter. Raises ValueError for what a Space refuses."""
    values = metadata_load(ROOT / "README.md") or {}
    problems = [f"{name} is no field of a Space" for name in values.keys() - REQUIRED - {*OPTIONAL.split()}]
    problems += [f"{name} is missing" for name in REQUIRED - values.keys()]
    problems += [
        f"{name}: {values.get(name)} is no colour of a Space"
        for name in ("colorFrom", "colorTo")
        if values.get(name) not in COLOURS
    ]
    if len(values.get("short_description", "")) > 60:
        problems.append("short_description is longer than 60 characters")
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    if f"gradio=={values.get('sdk_version')}\n" not in constraints:
        problems.append(f"sdk_version {values.get('sdk_version')} is not the gradio of constraints.txt")
    if problems:
        raise ValueError("; ".join(problems))
    return values


def copy_of_repository(folder: Path, checkpoints: Path) -> Path:
    """Copy the files that git knows, and the checkpoints, as an upload to a Space does."""
    space, names = folder / "app", {*run(["git", "ls-files", "-z"]).split("\0")}
    copy_sources(space, lambda name: name in names and not (ROOT / name).is_symlink())  # an upload leaves links out
    shutil.copytree(checkpoints, space / "checkpoints", dirs_exist_ok=True)
    return space


def clean_python(folder: Path) -> Path:
    run([sys.executable, "-m", "venv", folder / "venv"])
    python = folder / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*install, "-r", ROOT / "requirements.txt", "spaces", "-c", ROOT / "constraints.txt"])
    return python


def is_of_header(problem: str, blocked: Collection[str]) -> bool:
    """Return whether a problem is a request of Gradio's header that the content policy blocked, or a report of it."""
    if problem.startswith("request to "):
        url = problem.removeprefix("request to ")
        return url in blocked and url.startswith(HEADER_REQUESTS)
    is_report = "Content Security Policy" in problem and any(url in problem for url in HEADER_REQUESTS)
    return is_report or problem == HEADER_ERROR


def walk(page: Page, url: str) -> None:
    """Open the page, translate, and open every tab. Raises ValueError for any problem that the browser reports."""
    problems: list[str] = []
    blocked: set[str] = set()  # addresses of requests that the content policy blocked
    page.on("requestfailed", lambda request: blocked.add(request.url) if request.failure == "csp" else None)
    page.outlives = False  # the server runs as long as the page
    with watched(page, problems):
        page.goto(url)
        page.wait_for_selector("#translation-text", state="attached", timeout=60_000)
        first = page.inner_text("#translation-text")
        box = page.locator("#source-text textarea, #source-text input").first
        box.fill("Zwei Kinder bauen eine Burg aus Sand.")
        box.press("Enter")
        page.wait_for_function(
            "first => document.querySelector('#translation-text')?.textContent !== first", arg=first, timeout=30_000
        )
        tabs = page.get_by_role("tab").all_inner_texts()
        for name in tabs:
            page.get_by_role("tab", name=name, exact=True).first.click()
            page.wait_for_timeout(1_500)
    problems = [problem for problem in problems if not is_of_header(problem, blocked)]
    if not tabs:
        problems.append("the page has no tabs")
    print(f"walked through: {', '.join(tabs)}")
    if problems:
        raise ValueError("\n".join(problems))


def check(checkpoints: Path, keep_python: Path | None) -> None:
    print(f"front matter: {front_matter()['title']}")
    with tempfile.TemporaryDirectory(prefix="space-") as name:
        folder, started = Path(name), time.monotonic()
        space = copy_of_repository(folder, checkpoints)
        python = keep_python or clean_python(folder)
        print(f"installed in {time.monotonic() - started:.0f} s")
        (folder / "home").mkdir()
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "SYSTEM": "spaces",
            "SPACE_ID": "someone/attention-atlas",
            "SPACE_AUTHOR_NAME": "someone",
            "SPACE_HOST": "localhost",
            "SPACE_REPO_NAME": "attention-atlas",
            "SPACE_TITLE": "Attention Atlas",
            "CPU_CORES": "2",
            "MEMORY": "16Gi",
            "GRADIO_SERVER_NAME": "0.0.0.0",
            "GRADIO_SSR_MODE": "True",
            "GRADIO_ALLOW_FLAGGING": "never",
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "2",
        }
        started = time.monotonic()
        with running_server("app.py", python=str(python), cwd=space, env=environment, stdout=None) as (port, process):
            print(f"first page after {time.monotonic() - started:.1f} s")
            answer = Caller(port).call("translate", ["Wo ist der Bahnhof?", ""])
            if answer["status"] != "ok":
                raise ValueError(f"the API answered {answer}")
            print(f"the API answers: {answer['translation']}")
            with sync_playwright() as playwright:
                browser = launch_chromium(playwright)
                walk(browser.new_page(), f"http://127.0.0.1:{port}/")
                browser.close()
            process.send_signal(signal.SIGTERM)
            if process.wait(5) != 0:
                raise ValueError(f"it ended with status {process.returncode}")


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m tests.server.space_check", __doc__)
    parser.add_argument(
        "--checkpoints", type=Path, default=Path(os.environ.get("ATTENTION_ATLAS_CHECKPOINTS", ROOT / "checkpoints"))
    )
    parser.add_argument("--python", type=Path, help="use this Python instead of a clean virtual environment")
    args = parser.parse_args(argv)
    check(args.checkpoints, args.python)


if __name__ == "__main__":
    run_program(main)
