"""What the web server refuses and which headers its answers carry, whatever Gradio itself would allow."""

from __future__ import annotations

import errno
import json
import re
import socket
from collections.abc import Awaitable, Callable

from viz.ui.server.api import ENDPOINTS

MAX_BODY = 8_000_000  # bytes of one request: a million characters, each written as an escape of six bytes, and some

# Routes of Gradio that this app has no use for: uploads, recordings, fetching other hosts' files, developers' tools.
REFUSED = tuple(
    f"/gradio_api/{name}"
    for name in (
        "upload",
        "upload_progress",
        "proxy=",
        "stream/",
        "process_recording",
        "deep_link",
        "dev/",
        "custom_component/",
        "vibe-",
        "undo-vibe-edit",
        "run-history/",
        "profiling/",
        "token",
    )
) + ("/monitoring", "/custom_component/", "/login")

# Where Gradio answers calls by name. The page's own handlers have names there, too, though they are private.
CALLS = re.compile(r"/gradio_api/(?:call/(?:v2/)?|run/|api/)([^/]+)")
# Endpoints that have one more input than at first, how many that were, and what it is for those who do not know of it:
# a plain call's values are counted.
LATER = {"translate": (2, 1)}
# Gradio's page asks to end an event before it has heard its number, if a visitor is quick; Gradio itself answers with
# an error, which stands in the console. Nothing can be ended by no number.
ENDS = ("/gradio_api/cancel", "/gradio_api/reset")
PAGE = "predict"  # what the page posts to for handlers outside the queue, which it names in the body

# Gradio's page starts from inline scripts and styles, and makes each gr.HTML's script with new Function: those three
# must be allowed. What is left still says: load from here alone, and send nothing anywhere else.
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
)  # a Space is shown inside Hugging Face's page

HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in (
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
    )
)
RETRY = ((b"retry-after", b"2"),)

Scope, Receive, Send = dict, Callable[[], Awaitable[dict]], Callable[[dict], Awaitable[None]]


def check_port(host: str, port: int) -> None:
    """ValueError in words if the address cannot be served on: before the model is loaded, not after."""
    try:
        with socket.create_server((host, port), reuse_port=False):
            pass
    except OSError as error:
        why = {
            errno.EADDRINUSE: "is already in use: stop what runs there, or choose another with --port",
            errno.EACCES: "may not be used by this user: choose one above 1023 with --port",
        }
        if error.errno in why:
            raise ValueError(f"port {port} of {host} {why[error.errno]}") from error
        raise ValueError(f"cannot serve on {host}, port {port}: {error}") from error


class Guard:
    """ASGI middleware: refuses what is listed above, bounds bodies, and adds the headers."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: dict) -> None:
            if message["type"] == "http.response.start":
                busy = RETRY if message["status"] == 503 else ()
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS, *busy]}
            await send(message)

        path = "/" + scope["path"].removeprefix(scope.get("root_path", "")).lstrip("/")
        called = CALLS.match(path)
        if path.startswith(REFUSED) or (called and called[1] not in (PAGE, *ENDPOINTS)):
            await _refuse(send_guarded, 404, "This app does not offer this.")
            return
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send_guarded)
            return
        body = await _read(receive)
        if body is None:
            await _refuse(send_guarded, 413, f"The request is larger than {MAX_BODY:,} bytes.")
            return
        if path in ENDS and _names_nothing(body):
            await _answer(send_guarded, 200, {"success": True})
            return
        if called and called[1] in LATER:
            body = _completed(body, *LATER[called[1]])
        await self.app(scope, _replay(body, receive), send_guarded)


async def _read(receive: Receive) -> bytes | None:
    """The whole body, or None if it is too large: what is left of it is then read no further."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _names_nothing(body: bytes) -> bool:
    call = _read_json(body)
    return isinstance(call, dict) and call.get("event_id", "") is None


def _completed(body: bytes, known: int, later: object) -> bytes:
    """A call of the older form with the input that came later; anything else as it is."""
    call = _read_json(body)
    data = call.get("data") if isinstance(call, dict) else None
    if not isinstance(data, list) or len(data) != known:
        return body
    return json.dumps({**call, "data": [*data, later]}).encode()


def _read_json(body: bytes) -> object:
    """What a body says; None if it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replayed() -> dict:
        nonlocal sent
        if sent:
            return await receive()  # only a disconnect can follow
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _refuse(send: Send, status: int, words: str) -> None:
    await _answer(send, status, {"detail": words})


async def _answer(send: Send, status: int, content: dict) -> None:
    body = json.dumps(content).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body})
