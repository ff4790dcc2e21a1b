"""ASGI middleware that stands before Gradio: an allowlist of routes, limits on request bodies, and the request queue.

Gradio would serve more routes than this app offers, fetch URLs for its callers and read bodies of any size.
docs/security.md is the threat model.
"""

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
from attention_atlas.viz.server.endpoints import MCP_PATH, refusal
from attention_atlas.viz.server.middleware import (
    NO_STORE,
    App,
    Receive,
    Scope,
    Send,
    answer,
    below,
    collecting,
    host_name,
)
from attention_atlas.viz.server.request_queue import ADDRESS_SHARE, PAGE_SHARE, TRANSLATE_WIDTH, RequestQueue

READS = ("GET", "HEAD", "OPTIONS")

# Routes by which programs call an endpoint: with one request (run, api) or two (call).
CALLS = re.compile(r"/gradio_api/(call/v2|call|run|api)/([^/]+)/?")
RESULTS = re.compile(r"/gradio_api/call/(?:v2/)?([^/]+)/([^/]+)")
ONE_REQUEST = ("run", "api")
BY_FIELD = "call/v2"  # its body holds the fields by name; at the other routes "data" lists their values in order
QUESTION = re.compile(r"/ask/([^/]+)")  # the page's questions (viz/server/ask.py)
JOIN, STREAM = "/gradio_api/queue/join", "/gradio_api/queue/data"
SUMMARY = "/monitoring/summary"  # the call counts that Gradio's API page requests
LISTING = "/gradio_api/openapi.json"
MAX_FILE_NAME = 255  # bytes; the system raises an error for longer ones
MAX_NAMES = 10_000  # of events and of sessions whose answers can still be fetched

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

# Bytes of one body. Interventions sent to an endpoint may hold many vectors; the page sends texts and numbers.
MAX_CALL, MAX_PAGE, MAX_OTHER = 8_000_000, 2_000_000, 16_000
LARGE = 64_000  # bytes of JSON from which on it is parsed in a thread, so that it does not block the event loop
PAGE_WIDTH = 48  # questions that need no model, run at once

CLOSE = (b"connection", b"close")
UNKNOWN_EVENT = "There is no such event: ask first, then fetch its answer once."
MALFORMED = "The request is not JSON of the form that docs/reference/endpoints.md describes."
BUSY = "Too many requests are waiting. Please try again in a moment."
BODY_SECONDS = 20.0  # in which a body must arrive
MAX_TOTAL = 48_000_000  # bytes of all bodies in memory
MAX_DISCARDED = 16_000_000  # bytes of a refused body that are read before the answer
SMALL = 64_000  # bytes of a body that is read even if MAX_TOTAL is exceeded
SILENT_SECONDS = 10.0  # in which the headers of a request must arrive
POLL_SECONDS = 2.0  # between two checks for silent connections


def create_queue(limits: BatchLimits) -> RequestQueue:
    """Create the queue of requests for models with these limits."""
    return RequestQueue({"page": PAGE_WIDTH, "translate": TRANSLATE_WIDTH, "model": limits.at_once}, limits.waiting)


class Guard:
    """ASGI middleware that refuses unknown routes, limits bodies, and lets requests for a model wait in the queue."""

    def __init__(
        self, app: App, request_queue: RequestQueue, lent: bool = False, hosts: Collection[str] | None = None
    ) -> None:
        """
        Args:
            app: the next ASGI layer
            request_queue: where requests for a model wait
            lent: whether the page's questions go through Gradio's queue, which lends a GPU
            hosts: the names allowed in a request's Host header; None for any
        """
        self.app, self.request_queue, self.lent, self.hosts = app, request_queue, lent, hosts
        self.bodies, self.events, self.sessions = BodyReader(), SingleUseNames(), SingleUseNames()
        self.calls = {name for name, question in QUESTIONS.items() if lent and not question.on_cpu}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, method = below(scope), scope["method"]
        result = RESULTS.fullmatch(path) if method != "POST" else None
        if self.hosts is not None and host_name(scope) not in self.hosts:
            # DNS rebinding: another site whose name resolves to this machine would share this page's origin.
            words = "This server does not answer to this host name; its option --hosts lists those that it answers to."
            await answer(send, 421, refusal("invalid", words))
        elif path == SUMMARY:
            await answer(send, 200, {"functions": {}})
        elif not is_offered(method, path, self.calls):
            await answer(send, 404, refusal("invalid", "This app does not offer this."))
        elif (result and not self.events.take(result[2])) or (path == STREAM and not self._knows_session(scope)):
            await answer(send, 404, refusal("invalid", UNKNOWN_EVENT))
        elif path == LISTING:
            await self.app({**scope, "headers": []}, receive, list_endpoints_only(send))
        elif method != "POST":
            await self.app(scope, receive, send)
        else:
            try:
                async with self.bodies.read(receive, _max_bytes(path), _content_length(scope)) as body:
                    await self._post(path, scope, body, receive, send)
            except BodyRefused as error:
                kind = "busy" if error.status == 503 else "invalid"
                await answer(send, error.status, refusal(kind, error.message), headers=(*NO_STORE, CLOSE))
            except ClientGone:
                pass

    def _knows_session(self, scope: Scope) -> bool:
        """Return whether the session of a stream request has sent a call before."""
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
        return self.sessions.take(query.get("session_hash", ""))

    async def _post(self, path: str, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        call, question = CALLS.fullmatch(path), QUESTION.fullmatch(path)
        endpoint = ENDPOINTS.get(call[2]) if call else None
        try:
            if endpoint is not None:
                content = endpoint.check_call(await _read_json(body), by_field=call[1] == BY_FIELD)
                body = await _write_json(content, len(body))
            elif path == JOIN:
                self.sessions.add((await _read_json(body)).get("session_hash"))
        except ValueError as error:
            await answer(send, 422, refusal("invalid", str(error)))
            return
        relay = send if question or path.startswith(MCP_PATH) else without_echo(send)
        try:
            if question is not None:
                await self._run_in_turn(QUESTIONS[question[1]].lane, scope, body, receive, relay, PAGE_SHARE)
            elif endpoint is not None and call[1] in ONE_REQUEST:
                await self._run_in_turn(endpoint.lane, scope, body, receive, relay)
            else:
                if endpoint is not None and not self.lent:
                    self.request_queue.check(endpoint.lane, _address(scope))
                await self.app(scope, _replay(body, receive), self.events.recording(relay) if call else relay)
        except Busy as error:
            await answer(send, 503, refusal("busy", str(error)))

    async def _run_in_turn(
        self, lane: str, scope: Scope, body: bytes, receive: Receive, send: Send, share: float = ADDRESS_SHARE
    ) -> None:
        """Wait for a turn in a lane, then answer a call. If the client disconnects, a waiting call leaves the queue and
        a running one stops at its next check for cancellation."""
        gone, is_running = threading.Event(), False

        async def run() -> None:
            nonlocal is_running
            async with self.request_queue.turn(lane, _address(scope), share):
                is_running = True
                with cancelled_by(gone):
                    await self.app(scope, _replay(body, lambda: disconnected), send)

        disconnected = asyncio.ensure_future(_disconnect(receive))
        work = asyncio.ensure_future(run())
        await asyncio.wait((work, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            gone.set()
            if not is_running:
                work.cancel()
        disconnected.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


def is_offered(method: str, path: str, calls: Container[str]) -> bool:
    """Return whether the app answers this method at this path.

    Args:
        method: of the request
        path: decoded, relative to the page's root
        calls: the page's questions that go through Gradio's queue
    """
    if path == MCP_PATH or path.startswith(f"{MCP_PATH}/"):
        return True
    if method == "POST":
        call, question = CALLS.fullmatch(path), QUESTION.fullmatch(path)
        if question is not None:
            return question[1] in QUESTIONS
        is_page_call = call is not None and call[1] == "call" and call[2] in calls
        return path in _WRITTEN or is_page_call or (call is not None and call[2] in ENDPOINTS)
    if method not in READS:
        return False
    if any(len(name.encode()) > MAX_FILE_NAME for name in path.split("/")):
        return False
    result = RESULTS.fullmatch(path)
    if result is not None:
        return result[1] in ENDPOINTS or result[1] in calls
    return (path.rstrip("/") or "/") in _READ or path.startswith(_READ_BELOW)


class SingleUseNames:
    """The names of events or sessions whose answers can still be fetched, each once. Gradio would let a client wait for
    an unknown name without end."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, bool] = OrderedDict()

    def add(self, name: object) -> None:
        """Add a name; beyond MAX_NAMES the oldest is dropped. Anything but a string is ignored."""
        if isinstance(name, str):
            self._names[name] = True
            if len(self._names) > MAX_NAMES:
                self._names.popitem(last=False)

    def take(self, name: str) -> bool:
        """Remove a name. Returns whether it was there."""
        return self._names.pop(name, False)

    def recording(self, send: Send) -> Send:
        """Wrap `send` so that the event that the answer to a call names is added."""

        async def finish(start: dict, body: bytes) -> None:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                self.add(json.loads(body)["event_id"])
            await send(start)
            await send({"type": "http.response.body", "body": body})

        return collecting(finish)


def list_endpoints_only(send: Send) -> Send:
    """Wrap `send` so that Gradio's OpenAPI listing omits the routes that the guard refuses."""

    async def finish(_: dict, body: bytes) -> None:
        listing, paths = json.loads(body), {}
        for path, methods in listing["paths"].items():
            call = CALLS.fullmatch(f"/gradio_api{path.removeprefix('/gradio_api')}")
            if path.endswith("{event_id}") or (call is not None and call[2] in ENDPOINTS):
                paths[path] = methods
        await answer(send, 200, {**listing, "paths": paths})

    return collecting(finish)


def without_echo(send: Send) -> Send:
    """Wrap `send` so that Gradio's answers with status 422, which quote the whole request, and 503 are replaced by
    error answers of this app."""
    replaced_status = 0

    async def send_or_replace(message: dict) -> None:
        nonlocal replaced_status
        if message["type"] == "http.response.start" and message["status"] in (422, 503):
            replaced_status = message["status"]
        elif not replaced_status:
            await send(message)
        elif not message.get("more_body", False):
            kind, words = ("busy", BUSY) if replaced_status == 503 else ("invalid", MALFORMED)
            await answer(send, replaced_status, refusal(kind, words))

    return send_or_replace


def _address(scope: Scope) -> str:
    """Return the client's address; behind a proxy that FORWARDED_ALLOW_IPS names, the one that it forwards."""
    return (scope.get("client") or ("",))[0]


def _max_bytes(path: str) -> int:
    """Return the maximum size of a body sent to this path."""
    if path == JOIN or CALLS.fullmatch(path) or QUESTION.fullmatch(path):
        return MAX_CALL
    return MAX_PAGE if path.startswith(MCP_PATH) else MAX_OTHER


def _content_length(scope: Scope) -> int:
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() else 0


async def _read_json(body: bytes) -> dict:
    """Parse a body. Raises ValueError, without quoting the body, unless it is a JSON object."""
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
    """Return a `receive` that yields a body that was read before, and then what `receive` yields."""
    is_sent = False

    async def receive_again() -> dict:
        nonlocal is_sent
        if is_sent:
            return await receive()  # only a disconnect can follow
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


class ClientGone(Exception):
    """The client closed the connection before the body was complete."""


@dataclass(frozen=True)
class BodyRefused(Exception):
    """A body is refused, with this HTTP status and message."""

    status: int
    message: str


class BodyReader:
    """Reads request bodies, limited in size, time and total memory. `bytes_held` counts the bodies of requests that are
    not answered yet."""

    def __init__(self) -> None:
        self.bytes_held = 0

    @contextlib.asynccontextmanager
    async def read(self, receive: Receive, limit: int, content_length: int) -> AsyncIterator[bytes]:
        """Read a whole body for the `async with` block that answers it.

        Raises BodyRefused for a body of more than `limit` bytes, one that arrives too slowly, or one that exceeds the
        total with the others; ClientGone if the client closes the connection first.
        """
        body = bytearray()  # a single block, which the allocator returns to the system at once
        try:
            try:
                await asyncio.wait_for(self._read(receive, limit, content_length, body), BODY_SECONDS)
            except TimeoutError:
                raise BodyRefused(408, f"The request did not arrive within {BODY_SECONDS:g} seconds.") from None
            yield bytes(body)
        finally:
            self.bytes_held -= len(body)
            body.clear()  # a traceback may refer to it until garbage is collected

    async def _read(self, receive: Receive, limit: int, content_length: int, body: bytearray) -> None:
        size, more, refusal = 0, True, None
        while more and size <= MAX_DISCARDED:  # most clients read the answer only after they have sent everything
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if refusal is not None:
                continue
            if max(size, content_length) > limit:
                refusal = BodyRefused(413, f"The request is larger than {limit:,} bytes.")
            elif size > SMALL and self.bytes_held + len(part) > MAX_TOTAL:
                refusal = BodyRefused(503, "Too many large requests arrive at once. Please try again in a moment.")
            else:
                self.bytes_held += len(part)
                body += part
                continue
            self.bytes_held -= len(body)
            body.clear()
        if refusal is not None:
            raise refusal


def close_silent_connections(server: uvicorn.Server) -> None:
    """Start a thread that closes connections on which no request arrives for SILENT_SECONDS. uvicorn has no timeout for
    the first headers of a connection."""

    def watch() -> None:
        # By connection: the last answered request (None before the first), and since when nothing followed it.
        silent: WeakKeyDictionary[object, tuple[object, float]] = WeakKeyDictionary()
        while not server.should_exit:
            time.sleep(POLL_SECONDS)
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
