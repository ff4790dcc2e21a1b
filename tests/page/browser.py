"""What the browser tests do to a page: pictures to look at, and what axe-core finds."""

from __future__ import annotations

import json

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests import ROOT

SCREENSHOTS = ROOT / "screenshots"


def screenshot(page: Page, name: str) -> None:
    """Leave a picture in the ignored folder screenshots/, for a person to look at."""
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def no_violations(page: Page, context: str | None = None) -> None:
    """Fail on what axe-core finds wrong with the page, or the part of it that a selector names."""
    # The rule left out: Gradio's footer says "Settings" twice, in an icon and beside it.
    found = Axe().run(page, context=context, options={"rules": {"image-redundant-alt": {"enabled": False}}})
    assert found.violations_count == 0, json.dumps(found.response["violations"], indent=1)[:3000]


def is_foreign(url: str) -> bool:
    """Whether a request leaves this machine."""
    return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:"))
