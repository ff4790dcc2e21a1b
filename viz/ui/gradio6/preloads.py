"""The page itself: what it needs first is named at its top, its frame is part of it, and it is packed.

Gradio's page names one script, which names others when it has been read and run, and those again: the components' own
scripts are the fifth generation, and ours the sixth. Each waits for the one before. Named at the top, all are under way
at once, while the browser still reads the page. The style sheets of Gradio's components, some twenty of which most are
smaller than a request for them, come as one: Gradio's scripts load none for which the page has a link, and of a link
that is disabled a browser loads nothing.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from anyio import to_thread

from viz import assets
from viz.questions.registry import QUESTIONS
from viz.ui import language
from viz.ui.gradio6.files import FOREVER, takes_gzip
from viz.ui.gradio6.frame import shell
from viz.ui.gradio6.part import FRONT_END, Part, unsaid
from viz.ui.server.asgi import App, Receive, Scope, Send, answer, below

FIRST = (*assets.EARLY, "explorer")  # our components that the first view shows
TABLE = re.compile(r"m\.f=(\[[^]]*\])")  # in a script of Gradio's: the files that its parts need, by number
NEEDS = re.compile(r"__vite__mapDeps\(\[([\d,]+)\]\)")  # what a part needs, as numbers in the table, itself first
ENTRY = re.compile(r'src="\./assets/([^"]+\.js)"')
PACKED, KEPT = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")), (b"cache-control", FOREVER)
TOGETHER = re.compile(r"/assets/together-[0-9a-f]{16}\.css")  # whatever stands in it, as with the page's own modules


class Preloads:
    """ASGI middleware: adds to Gradio's page, and packs it for whoever takes that."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._head, self._end, self._body, self._together, self._packed = 5 * (b"",)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = below(scope) if scope["type"] == "http" and scope["method"] == "GET" else ""
        is_sheet = TOGETHER.fullmatch(asked)
        if asked != "/" and not is_sheet:
            await self.app(scope, receive, send)
            return
        if not self._head:
            self._prepare(scope["app"].get_blocks().config)
        if is_sheet:
            body, how = (self._packed, PACKED) if takes_gzip(scope) else (self._together, ())
            await answer(send, 200, body, b"text/css; charset=utf-8", (*how, KEPT))
            return
        start, body = {}, bytearray()

        async def collect(message: dict) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                await self._answer(start, bytes(body), takes_gzip(scope), send)

        await self.app(scope, receive, collect)

    async def _answer(self, start: dict, body: bytes, packs: bool, send: Send) -> None:
        headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        if start["status"] == 200:
            body = body.replace(b"<style>", self._head + b"<style>", 1)
            body = body.replace(b"</head>", self._end + theme(body) + b"</head>", 1)
            body = body.replace(b"<gradio-app", self._body + b"<gradio-app", 1)
            if packs:
                body = await to_thread.run_sync(lambda: gzip.compress(body, compresslevel=4))
                headers += PACKED
        await send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    def _prepare(self, config: Mapping) -> None:
        sent = {i for page in config["page"].values() for i in page["components"]}  # the rest comes with its tab
        parts = [part for part in config["components"] if part["id"] in sent]
        named = front_end({part["type"] for part in parts})
        self._together = together(named)
        self._packed = gzip.compress(self._together)
        is_lent = any(one["api_name"] in QUESTIONS for one in config["dependencies"])
        meta = '<meta name="atlas-asks" content="lent">' if is_lent else ""
        self._head = (meta + "".join((*of_gradio(named), *of_ours(parts))) + language.head()).encode()
        digest = sha256(self._together).hexdigest()[:16]
        self._end = f'<link rel="stylesheet" href="./assets/together-{digest}.css">'.encode()
        self._body = shell(config).encode()


def of_gradio(names: Sequence[str]) -> Iterator[str]:
    """Links to these files of Gradio's that the first view needs, in this order."""
    for name in names:
        if name.endswith(".js"):
            yield f'<link rel="modulepreload" href="./assets/{name}">'
    for name in _sheets(names):
        yield f'<link rel="stylesheet" disabled href="./assets/{name}">'


def theme(page: bytes) -> bytes:
    """A link to the theme's style sheet: else Gradio's scripts ask for it and wait, before they build the page."""
    root, version = (re.search(rb'"%s":"([^"]*)"' % name, page) for name in (b"root", b"theme_hash"))
    return b'<link rel="stylesheet" href="%s/theme.css?v=%s">' % (root[1], version[1]) if root and version else b""


def together(names: Sequence[str]) -> bytes:
    """The style sheets among these files that Gradio's scripts would load one by one."""
    return "\n".join(_read(name) for name in _sheets(names)).encode()


def _sheets(names: Sequence[str]) -> list[str]:
    index = (FRONT_END / "index.html").read_text(encoding="utf-8")  # which links to one itself
    return [name for name in names if name.endswith(".css") and name not in index]


def of_ours(components: Sequence[Mapping]) -> Iterator[str]:
    """The same for our own files. components: that the page begins with, as its config has them. Of a hidden one
    Gradio loads no script."""
    hidden = {part["props"].get("elem_id") for part in components if part["props"].get("visible") is False}
    web = f"atlas/{assets.digest()}/"
    yield f'<meta name="atlas-modules" content="{web}">'
    ours = assets.modules(assets.MOUNT, *(assets.module(name) for name in FIRST if name not in hidden))
    yield from (f'<link rel="stylesheet" href="{web}{assets.name(path)}">' for path in assets.styles("explorer"))
    yield from (f'<link rel="modulepreload" href="{web}{assets.name(path)}">' for path in ours)


def front_end(kinds: Iterable[str]) -> tuple[str, ...]:
    """Names of the files in Gradio's assets/ that a page of such components loads, as its scripts say. Of scripts that
    say it otherwise none: the page then is as Gradio makes it."""
    entry = ENTRY.search((FRONT_END / "index.html").read_text(encoding="utf-8"))
    if entry is None:
        return ()
    found = dict.fromkeys((entry[1], *_needed(entry[1])))
    for name in tuple(found):
        found |= dict.fromkeys(name for name in _table(_read(name)) if name.startswith("Blocks-"))
    core = next((name for name in found if re.fullmatch(r"core-.*\.js", name)), None)
    for kind in sorted(kinds) if core else ():
        found |= dict.fromkeys(_needed(core, rf"[,{{]{kind}:{{.*?component:"))
    return tuple(found)


def _needed(script: str, after: str = "") -> tuple[str, ...]:
    """What the first part that a script loads, with its needs, after this pattern: itself, and those."""
    text = _read(script)
    table, place = _table(text), re.search(after, text)
    part = NEEDS.search(text, place.end()) if place else None
    return tuple(table[int(i)] for i in part[1].split(",")) if part and table else ()


def _read(name: str) -> str:
    return (FRONT_END / "assets" / Path(name).name).read_text(encoding="utf-8")


def _table(text: str) -> list[str]:
    table = TABLE.search(text)
    return [name.removeprefix("./") for name in json.loads(table[1])] if table else []


def _missing() -> Iterator[str]:
    if len(front_end(("html",))) < 4:
        yield "tables of scripts as they were read"
    # A sheet is loaded unless the page has a link to it, and so is the theme's.
    yield from unsaid("templates/frontend/assets/index-*.js", ".href===t&&(!r||i.rel===`stylesheet`))return")
    yield from unsaid(
        "templates/frontend/assets/core-*.js", "document.querySelector(`link[href='${r}']`))return Promise"
    )
    index = (FRONT_END / "index.html").read_text(encoding="utf-8")
    yield from (f"{mark} in index.html" for mark in ("<style>", "</head>", "<gradio-app") if mark not in index)


PART = Part(
    "preloads and the page's frame", _missing, "the page's scripts wait for one another, and its frame is missing"
)
