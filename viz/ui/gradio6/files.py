"""The files that the page is made of, answered from memory.

A first page asks for a hundred small files at once. Gradio opens, compresses and routes each anew, which on two cores
takes the server longer than the browser needs for all else; and it lets browsers keep none without asking again.
"""

from __future__ import annotations

import gzip
import mimetypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from viz import assets
from viz.ui.gradio6.edited_scripts import edited
from viz.ui.gradio6.part import FRONT_END, Part
from viz.ui.server.asgi import App, Receive, Scope, Send, answer, below

KINDS = (".js", ".css", ".json")  # what packing makes smaller
FOREVER = b"public, max-age=31536000, immutable"  # for an address that another content would not have
# The address of a module has the digest of all of them in it (assets.digest()), and so has that of what it imports, by
# an address relative to its own.
VERSION = re.compile("^/atlas/[0-9a-f]{16}/")


def _sent(path: Path) -> bytes:
    if path == assets.PLOTLY:
        return assets.plotly().encode()
    return edited(path, path.read_bytes())


@dataclass(frozen=True)
class Packed:
    """A file as it is sent. changed: when the file was, in nanoseconds."""

    changed: int
    body: bytes

    @classmethod
    def read(cls, path: Path) -> Packed:
        return cls(path.stat().st_mtime_ns, gzip.compress(_sent(path), compresslevel=6))


def offered() -> dict[str, Path]:
    """What is answered: the address below the page's own -> the file. Nothing else can be asked for."""
    if not PART.usable:
        return {}
    front_end = {f"/assets/{path.name}": path for path in (FRONT_END / "assets").iterdir()}
    own = {f"/gradio_api/file={path}": path for path in (*assets.WEB.rglob("*"), assets.PLOTLY)}
    return {address: path for address, path in {**front_end, **own}.items() if path.suffix in KINDS}


class Files:
    """ASGI middleware: answers for the files that are `offered`, gzipped, whoever takes that; all else goes on to
    Gradio."""

    def __init__(self, app: App) -> None:
        self.app, self._offered = app, offered()
        self._packed: dict[Path, Packed] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] == "http" and scope["method"] == "GET"
        address, named = VERSION.subn(f"/gradio_api/file={assets.WEB}/", below(scope)) if asked else ("", 0)
        path = self._offered.get(address)
        if path is None or not takes_gzip(scope):
            here = {"path": scope.get("root_path", "") + address} if path else {}
            await self.app({**scope, **here}, receive, send)
            return
        # Addresses of Gradio's files and of our modules have a digest in them; others of ours the time of their change.
        lasting = named or path.is_relative_to(FRONT_END) or scope["query_string"].startswith(b"v=")
        kept = (b"cache-control", FOREVER if lasting else b"no-cache")
        packed = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"), kept)
        kind = f"{mimetypes.types_map[path.suffix]}; charset=utf-8".encode()
        await answer(send, 200, await self._read(path), kind, packed)

    async def _read(self, path: Path) -> bytes:
        found = self._packed.get(path)
        if found is None or found.changed != path.stat().st_mtime_ns:
            found = self._packed[path] = await to_thread.run_sync(Packed.read, path)
        return found.body


def takes_gzip(scope: Scope) -> bool:
    """Whether whoever asks can read gzip."""
    return any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])


def _missing() -> Iterator[str]:
    if not list((FRONT_END / "assets").glob("*.js")):
        yield "templates/frontend/assets"


PART = Part("files from memory", _missing, "each file of the page is opened, packed and routed anew")
