"""What the web server refuses and which headers its answers carry, whatever Gradio itself would allow."""

from __future__ import annotations

import errno
import json
import re
import socket
from collections.abc import Iterator
from urllib.parse import parse_qs

from viz.ui.gradio6.part import Part, unsaid
from viz.ui.gradio6.wakeful_queue import ended_alone, has_answers
from viz.ui.server.answers import refusal
from viz.ui.server.asgi import App, Receive, Scope, Send, answer, below
from viz.ui.server.endpoints import Endpoint
from viz.ui.server.named import ENDPOINTS

MAX_BODY = 8_000_000  # bytes of one request: a million characters, each written as an escape of six bytes, and some

# Routes of Gradio that this app has no use for: uploads, recordings, fetching other hosts' files, developers' tools.
UNUSED = (
    "upload",
    "upload_progress",
    "proxy=",
    "stream/",
    "process_recording",
    "dev/",
    "custom_component/",
    "vibe-",
    "undo-vibe-edit",
    "run-history/",
    "profiling/",
    "token",
)
WHOLE = ("/gradio_api/deep_link", "/monitoring", "/custom_component/", "/login")  # not routed below /gradio_api/
REFUSED = (*(f"/gradio_api/{name}" for name in UNUSED), *WHOLE)

# Where Gradio answers calls by name. The page's own handlers have names there, too, though they are private.
CALLS = re.compile(r"/gradio_api/(call/v2|call|run|api)/([^/]+)")
BY_FIELD = "call/v2"  # where a body is the fields by name; elsewhere their values stand in "data", in order
# Gradio's page asks to end an event before it has heard its number, if a visitor is quick; Gradio itself answers with
# an error, which stands in the console. Nothing can be ended by no number.
ENDS = ("/gradio_api/cancel", "/gradio_api/reset")
ASKS = ("/gradio_api/call/", "/gradio_api/run/", "/gradio_api/api/", "/gradio_api/queue/")  # and answers
STREAM = "/gradio_api/queue/data"  # of answers, for a session
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

    def __init__(self, app: App) -> None:
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

        path = below(scope)
        called = CALLS.match(path)
        if path.startswith(REFUSED) or (called and called[2] not in (PAGE, *ENDPOINTS)):
            await answer(send_guarded, 404, {"detail": "This app does not offer this."})
            return
        if path == STREAM and not has_answers(scope["app"], session_of(scope)):
            # Gradio says so within a stream that it answers with 200: no page would notice.
            await answer(send_guarded, 404, {"detail": "Session not found."})
            return
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send_guarded)
            return
        body = await _read(receive)
        if body is None:
            await answer(send_guarded, 413, {"detail": f"The request is larger than {MAX_BODY:,} bytes."})
            return
        if path in ENDS and isinstance(call := _read_json(body), dict):
            if call.get("event_id", "") is None:
                await answer(send_guarded, 200, {"success": True})
                return
            body = json.dumps(ended_alone(scope["app"], call)).encode()
        if called and called[2] in ENDPOINTS:
            body = _checked(ENDPOINTS[called[2]], called[1], body)
            if isinstance(body, str):
                await answer(send_guarded, 422, refusal("invalid", body))
                return
        await self.app(scope, _replay(body, receive), send_guarded)


def session_of(scope: Scope) -> str:
    """Which session the request names; empty: none."""
    return parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[0]


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


def _checked(endpoint: Endpoint, way: str, body: bytes) -> bytes | str:
    """A call as Gradio knows it; or why it is none, in words: to a name that it does not know, or a value too many,
    Gradio answers with an error of its own. What is no call at all is left to it."""
    call = _read_json(body)
    if not isinstance(call, dict):
        return body
    if way == BY_FIELD:
        return endpoint.refused(call) or body
    if not isinstance(call.get("data"), list):
        return body
    values = endpoint.completed(call["data"])
    return values if isinstance(values, str) else json.dumps({**call, "data": values}).encode()


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


def _missing() -> Iterator[str]:
    calls = ('"/call/{api_name}"', '"/call/v2/{api_name}"', '"/run/{api_name}"', '"/api/{api_name}"', '"/cancel"')
    yield from unsaid("routes.py", *(f'"{path.rstrip("/")}' for path in WHOLE))
    yield from unsaid("routes.py", '"/queue/data"')
    yield from unsaid("queueing.py", "self.pending_messages_per_session:")
    yield from unsaid("routes.py", *calls, *(f'"/{name.rstrip("/=")}' for name in UNUSED))


PART = Part("the guard at the door", _missing, "routes of Gradio's that were renamed are open: read its routes.py")
