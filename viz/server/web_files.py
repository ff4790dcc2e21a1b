"""Serve the page's own files (viz/web/ and the installed Plotly.js) at /atlas/DIGEST/, and add preloads of them to the
page's head. Gradio's launch(head=...) is inserted by a script, too late for the first paint.
"""

from __future__ import annotations

import gzip
import json
import mimetypes

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attention_atlas.viz import assets, words
from attention_atlas.viz.server.middleware import App, Receive, Scope, Send, answer, below, collecting

SUFFIXES = (".js", ".css", ".json")
IMMUTABLE = "public, max-age=31536000, immutable"  # the address contains the content's digest
HEAD = b"<head>"
OPENING = "atlas/opening.json"  # what browsers set to English open with
FIRST_VIEW = (*assets.EARLY, "explorer")  # the components that the first view shows


def route() -> Route:
    """Return the route of the page's own files. Each file is read and compressed once."""
    files = {assets.name(path): path for path in assets.WEB.rglob("*") if path.suffix in SUFFIXES}
    files |= {f"words/{path.name}": path for path in words.files().values()}
    files[assets.PLOTLY.name] = assets.PLOTLY
    digest, compressed = assets.digest(), {}

    async def respond(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            return Response(status_code=404)
        if name not in compressed:
            compressed[name] = await to_thread.run_sync(
                lambda: gzip.compress(files[name].read_bytes(), compresslevel=6)
            )
        is_current = request.path_params["digest"] == digest
        media_type = mimetypes.types_map[files[name].suffix]
        return _unpack(request, compressed[name], media_type, IMMUTABLE if is_current else "no-cache")

    return Route("/atlas/{digest}/{name:path}", respond, methods=["GET"])


def opening_route(opening: dict) -> Route:
    """Return the route of OPENING, with what viz.questions.opening.describe() returned."""
    text = json.dumps(words.for_page(opening), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    compressed = gzip.compress(text.encode(), compresslevel=6)

    async def respond(request: Request) -> Response:
        return _unpack(request, compressed, "application/json", "no-cache")

    return Route(f"/{OPENING}", respond, methods=["GET"])


def _unpack(request: Request, compressed: bytes, media_type: str, cache_control: str) -> Response:
    """Return compressed content, unpacked for a client that does not accept it."""
    headers = {"cache-control": cache_control, "vary": "accept-encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(compressed), 200, headers, media_type)
    return Response(compressed, 200, {**headers, "content-encoding": "gzip"}, media_type)


class FirstPaint:
    """ASGI middleware that adds an inline script and preloads of modules to the page's head, and compresses the page.

    lent: whether the page's questions go through Gradio's queue, which lends a GPU. opens: whether OPENING is served.
    """

    def __init__(self, app: App, lent: bool = False, opens: bool = False) -> None:
        self.app, self._head = app, head(lent, opens).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or below(scope) != "/":
            await self.app(scope, receive, send)
            return
        compress = any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])

        async def finish(start: dict, body: bytes) -> None:
            headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
            if start["status"] == 200:
                body = body.replace(HEAD, HEAD + self._head, 1)
                if compress:
                    body = await to_thread.run_sync(lambda: gzip.compress(body, compresslevel=4))
                    headers += (b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")
            media_type = dict(headers).get(b"content-type", b"text/html")
            rest = [(name, value) for name, value in headers if name != b"content-type"]
            await answer(send, start["status"], body, media_type, rest)

        # The page is changed before it is compressed.
        uncompressed = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        await self.app({**scope, "headers": uncompressed}, receive, collecting(finish))


def head(lent: bool = False, opens: bool = False) -> str:
    """Return the HTML of the inline script and of the first view's style sheets and module preloads."""
    web = assets.address()
    languages = {language: f"{web}words/{path.name}" for language, path in words.files().items()}
    modules = assets.modules(assets.MOUNT, *map(assets.module, FIRST_VIEW))
    return "".join(
        (
            assets.early(languages, lent=lent, opening=OPENING if opens else None),
            *(f'<link rel="stylesheet" href="{web}{assets.name(path)}">' for path in assets.styles("explorer")),
            *(f'<link rel="modulepreload" fetchpriority="low" href="{web}{assets.name(path)}">' for path in modules),
        )
    )
