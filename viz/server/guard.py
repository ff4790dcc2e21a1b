"""What the web server refuses, whatever Gradio itself would allow."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
import threading
from collections import OrderedDict
from urllib.parse import parse_qsl

from anyio import to_thread

from model.serve.cancellation import cancelled_by
from model.serve.limits import BatchLimits, Busy
from viz.questions.registry import QUESTIONS
from viz.server.answers import refusal
from viz.server.asgi import UNKEPT, App, Receive, Scope, Send, answer, below
from viz.server.bodies import Bodies, ClientGone, Unread
from viz.server.line import PAGE_SHARE, SHARE, TRANSLATES, Line
from viz.server.named import ENDPOINTS
from viz.server.routes import (
    BY_FIELD,
    CALLS,
    COUNTS,
    JOIN,
    LISTING,
    ONE_REQUEST,
    QUESTION,
    RESULTS,
    STREAM,
    TOOLS,
    WRITES,
    is_offered,
)

# Bytes of one request. An endpoint may be sent interventions with many vectors; the page sends texts and numbers.
MAX_CALL, MAX_PAGE, MAX_OTHER = 8_000_000, 2_000_000, 16_000
LARGE = 64_000  # bytes of JSON that are read in a thread, so that other requests go on
PAGE_WIDTH = 48  # questions that need no model, at once

CLOSE = (b"connection", b"close")
UNKNOWN = "There is no such event: ask first, then fetch its answer once."
MALFORMED = "The request is not JSON of the form that README.md describes."
BUSY = "Too many requests are waiting. Please try again in a moment."


def line_of(limits: BatchLimits) -> Line:
    """Create the line of requests before models with these limits."""
    lanes = {
        "page": PAGE_WIDTH,
        TRANSLATES["concurrency_id"]: TRANSLATES["concurrency_limit"],
        "model": limits.at_once,
    }
    return Line(lanes, limits.waiting)


def check_port(host: str, port: int) -> None:
    """ValueError in words if the address cannot be served on: before the model is loaded, not after."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
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
    """ASGI middleware: refuses what is not offered, bounds bodies and the line before the model."""

    def __init__(self, app: App, line: Line, lent: bool = False) -> None:
        """lent: whether the page's questions go through Gradio's queue, which lends a GPU."""
        self.app, self.line, self.lent = app, line, lent
        self.bodies, self.events, self.sessions = Bodies(), Once(), Once()
        self.calls = {name for name, one in QUESTIONS.items() if lent and not one.on_cpu}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, method = below(scope), scope["method"]
        result = RESULTS.fullmatch(path) if method not in WRITES else None
        if path == COUNTS:
            await answer(send, 200, {"functions": {}})
        elif not is_offered(method, path, self.calls):
            await answer(send, 404, refusal("invalid", "This app does not offer this."))
        elif (result and not self.events.take(result[2])) or (path == STREAM and not self._knows_session(scope)):
            await answer(send, 404, refusal("invalid", UNKNOWN))
        elif path == LISTING:
            await self.app({**scope, "headers": []}, receive, endpoints_alone(send))
        elif method not in WRITES:
            await self.app(scope, receive, send)
        else:
            try:
                async with self.bodies.read(receive, _most(path), _announced(scope)) as body:
                    await self._post(path, scope, body, receive, send)
            except Unread as error:
                kind = "busy" if error.status == 503 else "invalid"
                await answer(send, error.status, refusal(kind, error.message), headers=(*UNKEPT, CLOSE))
            except ClientGone:
                pass

    def _knows_session(self, scope: Scope) -> bool:
        """Whether a stream of a session that has asked something is requested."""
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        return self.sessions.take(query.get("session_hash", ""))

    async def _post(self, path: str, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        call, asked = CALLS.fullmatch(path), QUESTION.fullmatch(path)
        endpoint = ENDPOINTS.get(call[2]) if call else None
        try:
            if endpoint is not None:
                content = endpoint.checked(await _read_json(body), by_field=call[1] == BY_FIELD)
                body = await _write_json(content, len(body))
            elif path == JOIN:
                self.sessions.note((await _read_json(body)).get("session_hash"))
        except ValueError as error:
            await answer(send, 422, refusal("invalid", str(error)))
            return
        relay = send if asked or path.startswith(TOOLS) else without_echo(send)
        try:
            if asked is not None:
                await self._while_wanted(QUESTIONS[asked[1]].lane, scope, body, receive, relay, PAGE_SHARE)
            elif endpoint is not None and call[1] in ONE_REQUEST:
                await self._while_wanted(endpoint.lane, scope, body, receive, relay)
            else:
                if endpoint is not None and not self.lent:
                    self.line.check(endpoint.lane, _address(scope))
                await self.app(scope, _replay(body, receive), self.events.noting(relay) if call else relay)
        except Busy as error:
            await answer(send, 503, refusal("busy", str(error)))

    async def _while_wanted(
        self, lane: str, scope: Scope, body: bytes, receive: Receive, send: Send, share: float = SHARE
    ) -> None:
        """Answer a call in its turn. If the caller leaves, it leaves the line or, once it runs, stops at the end of the
        part that is running."""
        gone, runs = threading.Event(), False

        async def run() -> None:
            nonlocal runs
            async with self.line.turn(lane, _address(scope), share):
                runs = True
                with cancelled_by(gone):
                    await self.app(scope, _replay(body, lambda: disconnected), send)

        disconnected = asyncio.ensure_future(_disconnect(receive))
        work = asyncio.ensure_future(run())
        await asyncio.wait((work, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            gone.set()
            if not runs:
                work.cancel()
        disconnected.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


class Once:
    """Names of events, or of sessions, whose answers can be fetched once: Gradio would keep who asks for any other
    waiting, or break the connection."""

    def __init__(self, most: int = 10_000) -> None:
        self._most, self._names = most, OrderedDict()

    def note(self, name: object) -> None:
        """Note that answers of this name can be fetched."""
        if isinstance(name, str):
            self._names[name] = True
            while len(self._names) > self._most:
                self._names.popitem(last=False)

    def take(self, name: str) -> bool:
        """Return whether this name was noted. It no longer is."""
        return self._names.pop(name, False)

    def noting(self, send: Send) -> Send:
        """Note the event that the answer to a call names."""
        body = bytearray()

        async def send_noted(message: dict) -> None:
            body.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    self.note(json.loads(body)["event_id"])
            await send(message)

        return send_noted


def endpoints_alone(send: Send) -> Send:
    """Leave the routes that the app refuses out of Gradio's listing."""
    body = bytearray()

    async def send_own(message: dict) -> None:
        body.extend(message.get("body", b""))
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            listing = json.loads(body)
            calls = (
                (path, CALLS.fullmatch(f"/gradio_api{path.removeprefix('/gradio_api')}")) for path in listing["paths"]
            )
            named = {path for path, call in calls if call is not None and call[2] in ENDPOINTS}
            kept = {path: one for path, one in listing["paths"].items() if path in named or path.endswith("{event_id}")}
            await answer(send, 200, {**listing, "paths": kept})

    return send_own


def without_echo(send: Send) -> Send:
    """Replace Gradio's answers of 422 and 503 by ours: the former quote the whole request."""
    replaced = 0

    async def send_own(message: dict) -> None:
        nonlocal replaced
        if message["type"] == "http.response.start" and message["status"] in (422, 503):
            replaced = message["status"]
        elif not replaced:
            await send(message)
        elif not message.get("more_body", False):
            kind, words = ("busy", BUSY) if replaced == 503 else ("invalid", MALFORMED)
            await answer(send, replaced, refusal(kind, words))

    return send_own


def _address(scope: Scope) -> str:
    """Of the client; behind a proxy that FORWARDED_ALLOW_IPS names, uvicorn has put the forwarded one there."""
    return (scope.get("client") or ("",))[0]


def _most(path: str) -> int:
    """Bytes that the body of a request to this path may have."""
    if path == JOIN or CALLS.fullmatch(path) or QUESTION.fullmatch(path):
        return MAX_CALL
    return MAX_PAGE if path.startswith(TOOLS) else MAX_OTHER


def _announced(scope: Scope) -> int:
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() else 0


async def _read_json(body: bytes) -> dict:
    """The fields of a request. ValueError, which quotes none of it, for what is no JSON object."""
    try:
        content = await to_thread.run_sync(json.loads, body) if len(body) > LARGE else json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError(MALFORMED) from None
    if not isinstance(content, dict):
        raise ValueError(MALFORMED)
    return content


async def _write_json(content: dict, size: int) -> bytes:
    text = await to_thread.run_sync(json.dumps, content) if size > LARGE else json.dumps(content)
    return text.encode()


async def _disconnect(receive: Receive) -> dict:
    while (message := await receive())["type"] != "http.disconnect":
        pass
    return message


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replayed() -> dict:
        nonlocal sent
        if sent:
            return await receive()  # only a disconnect can follow
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
