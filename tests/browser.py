"""Fixtures that open the real page in a real browser, and fail on anything it should not do."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import gradio as gr
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

import app
from model.translator import Translator, Translators
from viz.chromium import launch_chromium

ROOT = Path(__file__).resolve().parent.parent
SCREENSHOTS = ROOT / "screenshots"


@pytest.fixture(scope="session")
def shipped_checkpoints() -> Path:
    """The folder of trained checkpoints. Tests that need it fail without it."""
    folder = Path(os.environ.get("ATTENTION_ATLAS_CHECKPOINTS", ROOT / "checkpoints"))
    assert list(folder.glob("*/config.json")), f"no trained checkpoint in {folder}"
    return folder


@pytest.fixture(scope="session")
def shipped_translators(shipped_checkpoints: Path) -> Translators:
    return Translators.load(shipped_checkpoints, device="cpu")


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[gr.Blocks], str]]:
    """serve(demo) launches a page as app.py does, on a free port, and returns its address."""
    running = []

    def start(demo: gr.Blocks) -> str:
        demo.queue(max_size=64)
        url = app.launch(demo, server_name="127.0.0.1", server_port=_free_port())
        running.append(demo)
        return url

    yield start
    for demo in running:
        demo.close(verbose=False)


@pytest.fixture(scope="session")
def app_url(serve, shipped_translators: Translators) -> str:
    """The whole app over the trained checkpoints."""
    return serve(app.build_demo(shipped_translators))


@pytest.fixture(scope="session")
def tiny_url(serve, tiny_translator: Translator) -> str:
    """The whole app over the tiny seeded model."""
    return serve(app.build_demo(Translators([tiny_translator])))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        yield browser
        browser.close()


@pytest.fixture()
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """open_page(url, width=1280, dark=False) opens a page in a browser context of its own.

    When the test ends it fails on any console error, page error, or request to another host.
    """
    contexts, problems = [], []

    def start(url: str, *, width: int = 1280, height: int = 900, dark: bool = False, **context_options) -> Page:
        scheme = "dark" if dark else "light"
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme,
                                       has_touch=width < 600, **context_options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and problems.append(f"console: {m.text}"))
        page.on("pageerror", lambda e: problems.append(f"page error: {e}"))
        page.on("request", lambda r: _is_foreign(r.url) and problems.append(f"request to {r.url}"))
        fragment = ""
        if "#" in url:
            url, _, fragment = url.partition("#")
            fragment = "#" + fragment
        page.goto(f"{url}?__theme={scheme}{fragment}")
        return page

    yield start
    for context in contexts:
        context.close()
    assert not problems, "\n".join(problems)


def screenshot(page: Page, name: str) -> None:
    """Leave a picture in the ignored folder screenshots/, for a person to look at."""
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def no_violations(page: Page, context: str | None = None) -> None:
    """Fail on what axe-core finds wrong with the page, or the part of it that a selector names."""
    # The rule left out: Gradio's footer says "Settings" twice, in an icon and beside it.
    found = Axe().run(page, context=context, options={"rules": {"image-redundant-alt": {"enabled": False}}})
    assert found.violations_count == 0, json.dumps(found.response["violations"], indent=1)[:3000]


def _is_foreign(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
