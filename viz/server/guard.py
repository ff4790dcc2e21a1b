"""What the web server refuses, whatever Gradio itself would allow."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Container
from dataclasses import dataclass
from urllib.parse import parse_qsl
from weakref import WeakKeyDictionary

import uvicorn
from anyio import to_thread

from attention_atlas.model.serve.cancellation import cancelled_by
from attention_atlas.model.serve.limits import BatchLimits, Busy
from attention_atlas.viz.questions.registry import QUESTIONS
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.server.endpoints import TOOLS, refusal
from attention_atlas.viz.server.line import PAGE_SHARE, SHARE, TRANSLATES, Line
from attention_atlas.viz.server.middleware import (
    UNKEPT,
    App,
    Receive,
    Scope,
    Send,
    answer,
    below,
    collecting,
    host_name,
)

READS, WRITES = ("GET", "HEAD", "OPTIONS"), ("POST",)

# Where programs call an endpoint by name: one request (run, api) or two (call).
CALLS = re.compile(r"/gradio_api/(call/v2|call|run|api)/([^/]+)/?")
RESULTS = re.compile(r"/gradio_api/call/(?:v2/)?([^/]+)/([^/]+)")
ONE_REQUEST = ("run", "api")
BY_FIELD = "call/v2"  # its body holds the fields by name; elsewhere "data" lists their values in order
QUESTION = re.compile(r"/ask/([^/]+)")  # where the page asks (viz/server/ask.py)
JOIN, STREAM = "/gradio_api/queue/join", "/gradio_api/queue/data"
COUNTS = "/monitoring/summary"  # how often endpoints were called, which Gradio's page on the API asks for
LISTING = "/gradio_api/openapi.json"
MAX_NAME = 255  # bytes of a file's name: for a longer one the system has an error of its own

_READ = {
    "/",
    "/config",
    "/theme.css",
    "/favicon.ico",
    "/manifest.json",
    "/robots.txt",
    "/gradio_api/info",
    LISTING,
    "/gradio_api/startup-events",
    "/gradio_api/theme.css",
    STREAM,
}
_READ_BELOW = ("/assets/", "/static/", "/atlas/", "/pwa_icon", "/gradio_api/heartbeat/")
_WRITTEN = {JOIN, "/gradio_api/cancel", "/gradio_api/reset"}

# Bytes of one request. An endpoint may be sent interventions with many vectors; the page sends texts and numbers.
MAX_CALL, MAX_PAGE, MAX_OTHER = 8_000_000, 2_000_000, 16_000
LARGE = 64_000  # bytes of JSON that are read in a thread, so that other requests go on
PAGE_WIDTH = 48  # questions that need no model, at once

CLOSE = (b"connection", b"close")
UNKNOWN = "There is no such event: ask first, then fetch its answer once."
MALFORMED = "The request is not JSON of the form that docs/reference/endpoints.md describes."
BUSY = "Too many requests are waiting. Please try again in a moment."
BODY_SECONDS = 20.0  # for a whole body
TOTAL = 48_000_000  # bytes of all bodies in memory
DISCARDED = 16_000_000  # bytes of a refused body that are read before the answer
SMALL = 64_000  # bytes of a body that is read whatever the total is
SILENT_SECONDS = 10.0  # for the headers of a request
CHECKED = 2.0  # seconds between two looks


def line_of(limits: BatchLimits) -> Line:
    """Create the line of requests before models with these limits."""
    lanes = {
        "page": PAGE_WIDTH,
        TRANSLATES["concurrency_id"]: TRANSLATES["concurrency_limit"],
        "model": limits.at_once,
    }
    return Line(lanes, limits.waiting)


class Guard:
    """ASGI middleware: refuses what is not offered, bounds bodies and the line before the model."""

    def __init__(self, app: App, line: Line, lent: bool = False, hosts: Collection[str] | None = None) -> None:
        """lent: whether the page's questions go through Gradio's queue, which lends a GPU. hosts: the names that a
        request's Host may be; None: any."""
        self.app, self.line, self.lent, self.hosts = app, line, lent, hosts
        self.bodies, self.events, self.sessions = Bodies(), Once(), Once()
        self.calls = {name for name, one in QUESTIONS.items() if lent and not one.on_cpu}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, method = below(scope), scope["method"]
        result = RESULTS.fullmatch(path) if method not in WRITES else None
        if self.hosts is not None and host_name(scope) not in self.hosts:
            # Another site whose name leads to this machine would be of this page's origin (DNS rebinding).
            words = "This server does not answer to this host name; its option --hosts lists those that it answers to."
            await answer(send, 421, refusal("invalid", words))
        elif path == COUNTS:
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


def is_offered(method: str, path: str, calls: Container[str] = ()) -> bool:
    """Whether the app answers this method at this path (decoded, below the page's own root). calls: the page's
    questions that go through Gradio's queue."""
    if path == TOOLS or path.startswith(f"{TOOLS}/"):
        return True
    if method in WRITES:
        call, asked = CALLS.fullmatch(path), QUESTION.fullmatch(path)
        if asked is not None:
            return asked[1] in QUESTIONS
        is_page_call = call is not None and call[1] == "call" and call[2] in calls
        return path in _WRITTEN or is_page_call or (call is not None and call[2] in ENDPOINTS)
    if method not in READS:
        return False
    if any(len(name.encode()) > MAX_NAME for name in path.split("/")):
        return False
    result = RESULTS.fullmatch(path)
    if result is not None:
        return result[1] in ENDPOINTS or result[1] in calls
    return (path.rstrip("/") or "/") in _READ or path.startswith(_READ_BELOW)


class Once:
    """Names of events or sessions whose answers can be fetched, once: for any other, Gradio would wait for ever."""

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

        async def finish(start: dict, body: bytes) -> None:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                self.note(json.loads(body)["event_id"])
            await send(start)
            await send({"type": "http.response.body", "body": body})

        return collecting(finish)


def endpoints_alone(send: Send) -> Send:
    """Leave the routes that the app refuses out of Gradio's listing."""

    async def finish(_: dict, body: bytes) -> None:
        listing, kept = json.loads(body), {}
        for path, methods in listing["paths"].items():
            call = CALLS.fullmatch(f"/gradio_api{path.removeprefix('/gradio_api')}")
            if path.endswith("{event_id}") or (call is not None and call[2] in ENDPOINTS):
                kept[path] = methods
        await answer(send, 200, {**listing, "paths": kept})

    return collecting(finish)


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


class ClientGone(Exception):
    """The connection was closed before the body was complete."""


@dataclass(frozen=True)
class Unread(Exception):
    """The body is refused: an HTTP status, and why in words."""

    status: int
    message: str


class Bodies:
    """Reads bodies. held: bytes of those that were read and whose requests are not answered yet."""

    def __init__(self, total: int = TOTAL, seconds: float = BODY_SECONDS) -> None:
        self.total, self.seconds, self.held = total, seconds, 0

    @contextlib.asynccontextmanager
    async def read(self, receive: Receive, limit: int, announced: int = 0) -> AsyncIterator[bytes]:
        """The whole body, for the `async with` block that answers it. announced: its Content-Length.

        Raises Unread for a body of more than `limit` bytes, one that takes too long, or one for which there is no room
        beside the others; ClientGone if the client closes the connection first.
        """
        body = bytearray()  # one block: the allocator returns it to the system at once
        try:
            try:
                await asyncio.wait_for(self._read(receive, limit, announced, body), self.seconds)
            except TimeoutError:
                raise Unread(408, f"The request did not arrive within {self.seconds:g} seconds.") from None
            yield bytes(body)
        finally:
            self.held -= len(body)
            body.clear()  # a traceback may keep it until garbage is collected

    async def _read(self, receive: Receive, limit: int, announced: int, body: bytearray) -> None:
        size, more, refusal = 0, True, None
        while more and size <= DISCARDED:  # most clients read no answer before they have sent everything
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if refusal is not None:
                continue
            if max(size, announced) > limit:
                refusal = Unread(413, f"The request is larger than {limit:,} bytes.")
            elif size > SMALL and self.held + len(part) > self.total:
                refusal = Unread(503, "Too many large requests arrive at once. Please try again in a moment.")
            else:
                self.held += len(part)
                body += part
                continue
            self.held -= len(body)
            body.clear()
        if refusal is not None:
            raise refusal


def close_silent_connections(server: uvicorn.Server) -> None:
    """Start a thread that closes connections without a request for SILENT_SECONDS, as long as the server runs: uvicorn
    waits for the first headers of a connection for ever."""

    def watch() -> None:
        # By connection: the request that was last answered there (None: there was none), and since when.
        silent: WeakKeyDictionary[object, tuple[object, float]] = WeakKeyDictionary()
        while not server.should_exit:
            time.sleep(CHECKED)
            now = time.monotonic()
            for connection in list(server.server_state.connections):
                request = getattr(connection, "cycle", None)
                if request is not None and not request.response_complete:
                    silent.pop(connection, None)
                    continue
                last, since = silent.get(connection, (None, now))
                if connection not in silent or last is not request:
                    silent[connection] = request, now
                elif now - since >= SILENT_SECONDS:
                    connection.loop.call_soon_threadsafe(connection.transport.close)

    threading.Thread(target=watch, name="silent connections", daemon=True).start()
