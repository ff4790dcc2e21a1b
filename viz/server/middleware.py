"""The outermost ASGI layer, which adds security headers to every answer, and helpers that all layers share."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import urlsplit

from attention_atlas.viz.server.discreet_log import describe
from attention_atlas.viz.server.endpoints import refusal

Scope, Receive, Send = dict, Callable[[], Awaitable[dict]], Callable[[dict], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
TEXT = b"text/plain; charset=utf-8"
NO_STORE = ((b"cache-control", b"no-store"),)

# Gradio's page needs inline scripts, inline styles and `new Function` (for the script of each gr.HTML). The rest of the
# policy still keeps the page from loading anything from, or sending anything to, another host.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "frame-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'self' https://huggingface.co https://*.hf.space",
    )
)  # frame-ancestors: a Space is shown inside Hugging Face's page

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
RETRY = ((b"retry-after", b"2"),)
# Request headers that are removed: Starlette answers some lists of ranges with an internal error, and files are small.
IGNORED_HEADERS = (b"range", b"if-range")

log = logging.getLogger(__name__)


def below(scope: Scope) -> str:
    """Return the path of a request relative to the page's root."""
    return "/" + scope.get("path", "").removeprefix(scope.get("root_path", "")).lstrip("/")


async def answer(
    send: Send,
    status: int,
    content: bytes | dict,
    kind: bytes = b"application/json",
    headers: Iterable[tuple[bytes, bytes]] = NO_STORE,
) -> None:
    """Send a whole HTTP answer. content: bytes of the media type `kind`, or a dict to be sent as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    all_headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})


def collecting(finish: Callable[[dict, bytes], Awaitable[None]]) -> Send:
    """Return a `send` that collects an answer. Once it is complete, finish(start message, body) is awaited instead."""
    start, body = {}, bytearray()

    async def collect(message: dict) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
            return
        body.extend(message.get("body", b""))
        if not message.get("more_body", False):
            await finish(start, bytes(body))

    return collect


class Headers:
    """The outermost ASGI middleware: adds HEADERS, refuses requests by other sites' scripts, and turns unexpected
    exceptions into answers with status 500."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: dict) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                retry = RETRY if message["status"] == 503 else ()
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS, *retry]}
            await send(message)

        if is_from_another_site(scope):
            await answer(send_with_headers, 403, refusal("invalid", "Pages of other sites cannot ask this app."))
            return
        scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in IGNORED_HEADERS]}
        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as error:  # the outermost frame
            log.error("a request failed:\n%s", describe(error))
            if not started:
                words = f"The server could not answer ({type(error).__name__}). Please report this."
                await answer(send_with_headers, 500, refusal("internal", words))


def is_from_another_site(scope: Scope) -> bool:
    """Return whether a script of another site's page sent this request; Gradio would let it read the answer.

    Browsers send Sec-Fetch-Site or Origin; programs send neither. Following a link from another site, or showing the
    page in a frame, is allowed.
    """
    headers = dict(scope["headers"])
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        is_navigation = scope["method"] == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        return site in (b"cross-site", b"same-site") and not is_navigation
    origin = headers.get(b"origin")
    host = headers.get(b"host", b"").decode("latin-1")
    return origin is not None and urlsplit(origin.decode("latin-1")).netloc != host


def host_name(scope: Scope) -> str | None:
    """Return the name in a request's Host header, without the port; None if there is none."""
    try:
        return urlsplit("//" + dict(scope["headers"]).get(b"host", b"").decode("latin-1")).hostname
    except ValueError:
        return None
