"""Read README.md and docs/, and the blocks of code in them that tests run unchanged."""

from __future__ import annotations

import re

from tests import ROOT

PAGES = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")))
GUIDES = tuple(  # pages for people who have installed the app, without the tools for benchmarks
    page
    for page in PAGES
    if page in ("README.md", "docs/hosting.md", "docs/coming-from.md")
    or page.startswith(("docs/start/", "docs/how-to/", "docs/explanation/"))
)
REFERENCE = "docs/reference"


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str, marker: str = "") -> list[str]:
    """Return the page's blocks of code in a language that contain the marker, in order."""
    return [code for code in re.findall(rf"```{language}\n(.*?)```", read(page), re.DOTALL) if marker in code]


def block(page: str, language: str, marker: str = "") -> str:
    """Return the only block of code in a language that contains the marker."""
    (code,) = blocks(page, language, marker)
    return code


def documented() -> list[str]:
    """Return the names of the modules that the reference documents."""
    pages = [page for page in PAGES if page.startswith(REFERENCE)]
    return [name for page in pages for name in re.findall(r"(?m)^::: ([\w.]+)$", read(page))]
