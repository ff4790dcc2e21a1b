"""The page's own files (viz/web/ and the installed Plotly.js) below /atlas/DIGEST/, and what the page's head names of
them before the first paint: launch(head=...) is added by Gradio's scripts, which is too late."""

from __future__ import annotations

import gzip
import mimetypes

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attention_atlas.viz import assets, words
from attention_atlas.viz.server.middleware import App, Receive, Scope, Send, answer, below, collecting

KINDS = (".js", ".css", ".json")
FOREVER = "public, max-age=31536000, immutable"  # the address names the content by its digest
HEAD = b"<head>"
FIRST = (*assets.EARLY, "explorer")  # components that the first view shows


def route() -> Route:
    """The route of the page's own files. Each is read and packed once."""
    files = {assets.name(path): path for path in assets.WEB.rglob("*") if path.suffix in KINDS}
    files |= {f"words/{path.name}": path for path in words.files().values()}
    files[assets.PLOTLY.name] = assets.PLOTLY
    digest, packed = assets.digest(), {}

    async def respond(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            return Response(status_code=404)
        if name not in packed:
            packed[name] = await to_thread.run_sync(lambda: gzip.compress(files[name].read_bytes(), compresslevel=6))
        headers = {
            "cache-control": FOREVER if request.path_params["digest"] == digest else "no-cache",
            "vary": "accept-encoding",
        }
        kind = mimetypes.types_map[files[name].suffix]
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(gzip.decompress(packed[name]), 200, headers, kind)
        return Response(packed[name], 200, {**headers, "content-encoding": "gzip"}, kind)

    return Route("/atlas/{digest}/{name:path}", respond, methods=["GET"])


class FirstPaint:
    """ASGI middleware: adds an inline script and preloads of modules after <head> of the page, and packs it."""

    def __init__(self, app: App, lent: bool = False) -> None:
        """lent: whether the page's questions go through Gradio's queue, which lends a GPU."""
        self.app, self.lent = app, lent
        self._head = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or below(scope) != "/":
            await self.app(scope, receive, send)
            return
        self._head = self._head or head(self.lent).encode()
        packs = any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])

        async def finish(start: dict, body: bytes) -> None:
            headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
            if start["status"] == 200:
                body = body.replace(HEAD, HEAD + self._head, 1)
                if packs:
                    body = await to_thread.run_sync(lambda: gzip.compress(body, compresslevel=4))
                    headers += (b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")
            kind = dict(headers).get(b"content-type", b"text/html")
            rest = [(name, value) for name, value in headers if name != b"content-type"]
            await answer(send, start["status"], body, kind, rest)

        unpacked = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        await self.app({**scope, "headers": unpacked}, receive, collecting(finish))


def head(lent: bool = False) -> str:
    """The inline script, and the preloads of the modules and style sheets of the first view."""
    web = assets.address()
    languages = {language: f"{web}words/{path.name}" for language, path in words.files().items()}
    modules = assets.modules(assets.MOUNT, *map(assets.module, FIRST))
    return "".join(
        (
            assets.early(languages, lent=lent),
            *(f'<link rel="stylesheet" href="{web}{assets.name(path)}">' for path in assets.styles("explorer")),
            *(f'<link rel="modulepreload" fetchpriority="low" href="{web}{assets.name(path)}">' for path in modules),
        )
    )
