"""Fixtures that open the app in a real browser, and fail on console errors, dialogs and requests to other hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bench.page.stage import launch_chromium
from tests.page.browser import Pages, load_modules, watched
from tests.page.explorer.page import explorer_urls, open_traces, serve_traces  # noqa: F401 (fixtures)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=20_000)  # milliseconds: as patient with a busy machine as the rest of Playwright
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(chromium: Browser) -> Pages:
    return Pages(chromium)


@pytest.fixture()
def open_page(pages: Pages) -> Iterator[Callable[..., Page]]:
    """Return `open_page(url, width=1280, dark=False)`, which opens a page in a browser context of its own.

    At its end the test fails on any console error, page error, dialog, or request to another host.
    """
    problems: list[str] = []
    with ExitStack() as opened:

        def start(url: str, *, width: int = 1280, height: int = 900, dark: bool = False, **options: object) -> Page:
            """Open a page. options: of Playwright's browser context."""
            page = opened.enter_context(pages.borrow(width=width, height=height, dark=dark, options=options))
            opened.enter_context(watched(page, problems))
            address, _, fragment = url.partition("#")
            page.goto(f"{address}?__theme={'dark' if dark else 'light'}" + (f"#{fragment}" if fragment else ""))
            return page

        yield start
    assert not problems, "\n".join(problems)


@pytest.fixture()
def open_app(open_page) -> Callable[..., Page]:
    """Return `open_app(url, ...)`, which opens the app as open_page() does and waits for its first translation."""

    def start(url: str, **options: object) -> Page:
        page = open_page(url, **options)
        page.wait_for_selector("#translation-text", state="attached")
        return page

    return start


@pytest.fixture()
def open_modules(open_page) -> Callable[..., Page]:
    """Return `open_modules(*names, ...)`, which opens an empty page with modules of viz/web/ as `window.atlas`."""

    def start(*names: str, **options: object) -> Page:
        page = open_page("about:blank", **options)
        load_modules(page, *names)
        return page

    return start
