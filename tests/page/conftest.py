"""Fixtures that open the real page in a real browser, and fail on anything it should not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bench.chromium import launch_chromium
from tests.page.browser import is_foreign
from tests.page.explorer_page import open_traces  # noqa: F401 (a fixture)

expect.set_options(timeout=30_000)  # as every other wait: a busy machine is no failure


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=20_000)  # milliseconds: as patient with a busy machine as the rest of Playwright
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
        page.on("request", lambda r: is_foreign(r.url) and problems.append(f"request to {r.url}"))
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
