"""The files of viz/web/ that the page uses: its components' modules, their imports and their style sheets."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path

import plotly

WEB = Path(__file__).resolve().parent / "web"
PLOTLY = Path(plotly.__file__).resolve().parent / "package_data" / "plotly.min.js"

EARLY_SCRIPT = WEB / "page" / "early.js"  # stands in the page's head
MOUNT = WEB / "core" / "mount.js"  # what brings a component onto the page
ALONE = WEB / "explorer" / "alone.js"  # what an explorer outside the app begins with
BASE_STYLE = WEB / "core" / "base.css"
PICTURE_STYLE = WEB / "picture" / "copy.css"
PAGE_STYLE = WEB / "page" / "page.css"

# The module of each component, whose default export the page calls. Its style sheet is next to it.
COMPONENTS = {
    "explorer": "explorer/explorer.js",
    "stepper": "stepper/stepper.js",
    "lab": "lab/lab.js",
    "title": "page/title.js",
    "examples": "page/examples.js",
    "languages": "page/languages.js",
    "translation": "page/translation.js",
    "guide": "tour/guide.js",
}
# Components above the tabs. They are styled by PAGE_STYLE: a sheet that came after its component would make all below
# jump.
EARLY = ("title", "languages", "examples", "translation", "guide")
BESIDE = {"lab": (WEB / "lab" / "panel.css", WEB / "why" / "question.css")}  # further style sheets of a component

IMPORT = re.compile(r'^(?:import|export)\b[^;"]*"(\.{1,2}/[^"]+)";', re.MULTILINE)  # as formatted by oxfmt


def module(component: str) -> Path:
    """Return the module of a component."""
    return WEB / COMPONENTS[component]


def name(path: Path) -> str:
    """Return a file's path relative to WEB."""
    return path.relative_to(WEB).as_posix()


def modules(*roots: Path) -> tuple[Path, ...]:
    """Return these modules and their static imports, each once and after its imports."""
    ordered: dict[Path, None] = {}

    def add(path: Path) -> None:
        if path in ordered:
            return
        for specifier in IMPORT.findall(path.read_text(encoding="utf-8")):
            add(Path(os.path.normpath(path.parent / specifier)))
        ordered[path] = None

    for root in roots:
        add(root)
    return tuple(ordered)


def with_names(path: Path) -> str:
    """Return a module's text with imports relative to WEB, for pages without a server."""

    def replace_path(match: re.Match) -> str:
        target = os.path.relpath(os.path.normpath(path.parent / match[1]), WEB)
        return match[0].replace(f'"{match[1]}"', f'"{Path(target).as_posix()}"')

    return IMPORT.sub(replace_path, path.read_text(encoding="utf-8"))


def digest() -> str:
    """Return a digest of all files of WEB. Browsers may cache URLs that contain it forever."""
    hashed = hashlib.sha256()
    for path in sorted(path for path in WEB.rglob("*") if path.is_file()):
        hashed.update(name(path).encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()[:16]


@cache
def address() -> str:
    """Return the path at which the app serves WEB, relative to the page."""
    return f"atlas/{digest()}/"


def early(languages: Mapping[str, str | None], *, lent: bool = False, opening: str | None = None) -> str:
    """Return the script for the head of a page.

    languages: code -> the URL of its translations, None: they are in the page. lent: whether questions go through
    Gradio's queue, for a GPU that is lent by ZeroGPU. opening: the URL of what browsers set to English open with.
    """
    script = EARLY_SCRIPT.read_text(encoding="utf-8")
    attributes = (" data-lent" if lent else "") + (f' data-opening="{opening}"' if opening else "")
    return f'<script data-languages="{escape(json.dumps(languages))}"{attributes}>{script}</script>'


def styles(component: str) -> tuple[Path, ...]:
    """Return the style sheets of a component, in order. Components of EARLY are styled by PAGE_STYLE."""
    own = module(component).with_suffix(".css")
    return (BASE_STYLE,) if component in EARLY else (BASE_STYLE, *BESIDE.get(component, ()), own)


def page_style() -> str:
    """Return the CSS of the page itself: pictures, the frame around the tabs, and the components of EARLY."""
    return "".join(path.read_text(encoding="utf-8") for path in (PICTURE_STYLE, PAGE_STYLE))
