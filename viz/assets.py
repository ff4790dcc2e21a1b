"""The files of viz/web/ that the page is made of: its components' modules, what they import, and their style sheets."""

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

# A component's module, whose default the page calls; its style sheet stands beside it.
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
BESIDE = {"lab": (WEB / "lab" / "panel.css", WEB / "why" / "question.css")}  # style sheets of what a component contains

IMPORT = re.compile(r'^(?:import|export)\b[^;"]*"(\.{1,2}/[^"]+)";', re.MULTILINE)  # as oxfmt lays it out


def module(component: str) -> Path:
    """The module of a component."""
    return WEB / COMPONENTS[component]


def name(path: Path) -> str:
    """A file's place in WEB."""
    return path.relative_to(WEB).as_posix()


def modules(*roots: Path) -> tuple[Path, ...]:
    """Return these modules and their imports, each once and after what it imports; not what import() fetches later."""
    found: dict[Path, None] = {}

    def add(path: Path) -> None:
        if path in found:
            return
        for specifier in IMPORT.findall(path.read_text(encoding="utf-8")):
            add(Path(os.path.normpath(path.parent / specifier)))
        found[path] = None

    for root in roots:
        add(root)
    return tuple(found)


def with_names(path: Path) -> str:
    """A module whose imports name others by their places in WEB, for a page that has them at no address."""

    def named(found: re.Match) -> str:
        other = os.path.relpath(os.path.normpath(path.parent / found[1]), WEB)
        return found[0].replace(f'"{found[1]}"', f'"{Path(other).as_posix()}"')

    return IMPORT.sub(named, path.read_text(encoding="utf-8"))


def digest() -> str:
    """Names what all files of WEB hold now: an address with it in it can be kept for ever."""
    found = hashlib.sha256()
    for path in sorted(path for path in WEB.rglob("*") if path.is_file()):
        found.update(name(path).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


@cache
def address() -> str:
    """Where the app serves WEB, relative to the page."""
    return f"atlas/{digest()}/"


def early(languages: Mapping[str, str | None], *, lent: bool = False) -> str:
    """The script in the head of a page that has these languages: code -> where its words are, None: in the page. lent:
    whether the page's questions go through Gradio's queue, which lends a GPU."""
    script = EARLY_SCRIPT.read_text(encoding="utf-8")
    asks = " data-lent" if lent else ""
    return f'<script data-languages="{escape(json.dumps(languages))}"{asks}>{script}</script>'


def styles(component: str) -> tuple[Path, ...]:
    """The style sheets of a component, in their order: what all share, then, unless it stands in the page, its own."""
    own = module(component).with_suffix(".css")
    return (BASE_STYLE,) if component in EARLY else (BASE_STYLE, *BESIDE.get(component, ()), own)


def page_style() -> str:
    """Return the CSS of the page itself: pictures, the frame around the tabs, and the components of EARLY."""
    return "".join(path.read_text(encoding="utf-8") for path in (PICTURE_STYLE, PAGE_STYLE))
