"""Build the documentation's site (`make docs`); fail on a warning, a dead link or a file loaded from another host.

Zensical checks links between pages in strict mode. The HTML that it writes is checked here again: every link, picture,
script and style sheet must be a file of the site, and every fragment an id of its page.
"""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from attention_atlas.model.program import run_program
from tests import ROOT

SITE = ROOT / "build" / "docs"
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}


class Page(HTMLParser):
    """The ids of an HTML page, the addresses of its links, and those of the files that a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values:
            self.loaded.append(values[LOADED[tag]])


def find_faults(site: Path) -> list[str]:
    """Return a message for each dead link of a built site and each file that it loads from another host."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    faults = []
    for path, page in pages.items():
        if path.name == "404.html":  # served at any depth, so its addresses begin at the root
            continue
        name = path.relative_to(site.resolve())
        faults += [f"{name} loads {address}" for address in page.loaded if urlsplit(address).netloc]
        for address in [*page.links, *page.loaded]:
            file, fragment = urldefrag(address)
            if urlsplit(address).scheme or urlsplit(address).netloc:
                continue
            target = (path.parent / unquote(urlsplit(file).path)).resolve() if file else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                faults.append(f"{name} links to {address}, which is no file")
            elif fragment and target in pages and unquote(fragment) not in pages[target].ids:
                faults.append(f"{name} links to {address}, which is no id of that page")
    for style in site.rglob("*.css"):
        addresses = re.findall(r"""url\(['"]?((?:https?:)?//[^)'"]*)""", style.read_text(encoding="utf-8"))
        faults += [f"{style.name} loads {address}" for address in addresses]
    return faults


def build(site: Path = SITE) -> None:
    """Write the site. ValueError, with the messages, if there is a warning or a dead link."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode or "arning" in done.stdout + done.stderr:
        raise ValueError(done.stdout[-6000:] + done.stderr[-2000:])
    if faults := find_faults(site):
        raise ValueError("\n".join(faults))
    print(f"{len([*site.rglob('*.html')])} pages in {site.relative_to(ROOT)}, no warning, no dead link")


def main(argv: list[str] | None = None) -> None:
    build()


if __name__ == "__main__":
    run_program(main)
