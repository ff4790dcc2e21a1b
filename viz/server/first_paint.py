"""Set language, theme and size before the first paint of the page, and preload its modules.

launch(head=...) is added to the page by Gradio's scripts, which is too late.
"""

from __future__ import annotations

import gzip

from anyio import to_thread

from viz import assets, words
from viz.server.asgi import App, Receive, Scope, Send, answer, below

HEAD = b"<head>"
FIRST = (*assets.EARLY, "explorer")  # components that the first view shows


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
        start, body = {}, bytearray()

        async def collect(message: dict) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                await self._answer(start, bytes(body), takes_gzip(scope), send)

        await self.app({**scope, "headers": without_encoding(scope)}, receive, collect)

    async def _answer(self, start: dict, body: bytes, packs: bool, send: Send) -> None:
        headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        if start["status"] == 200:
            body = body.replace(HEAD, HEAD + self._head, 1)
            if packs:
                body = await to_thread.run_sync(lambda: gzip.compress(body, compresslevel=4))
                headers += (b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")
        kind = dict(headers).get(b"content-type", b"text/html")
        rest = [(name, value) for name, value in headers if name != b"content-type"]
        await answer(send, start["status"], body, kind, rest)


def head(lent: bool = False) -> str:
    """The inline script, and the preloads of the modules and style sheets of the first view."""
    web = assets.address()
    languages = {language: f"{web}words/{path.name}" for language, path in words.files().items()}
    modules = assets.modules(assets.MOUNT, *map(assets.module, FIRST))
    return "".join(
        (
            assets.early(languages, lent=lent),
            *(f'<link rel="stylesheet" href="{web}{assets.name(path)}">' for path in assets.styles("explorer")),
            *(f'<link rel="modulepreload" href="{web}{assets.name(path)}">' for path in modules),
        )
    )


def takes_gzip(scope: Scope) -> bool:
    """Whether the caller can read gzip."""
    return any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])


def without_encoding(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The request's headers, such that the page comes unpacked."""
    return [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
