"""What the web server refuses, whatever Gradio itself would allow."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
import threading
from collections.abc import Iterator
from urllib.parse import parse_qs

from anyio import to_thread

from model.serve.cancellation import cancelled_by
from model.serve.limits import Busy
from viz.questions.registry import QUESTIONS
from viz.ui.gradio6.part import Part, unsaid
from viz.ui.gradio6.wakeful_queue import ended_alone, function_of, has_answers, is_known, line_limits, waiting_from
from viz.ui.server.answers import refusal
from viz.ui.server.asgi import UNKEPT, App, Receive, Scope, Send, answer, below
from viz.ui.server.bodies import Bodies, ClientGone, Unread
from viz.ui.server.line import PAGE_SHARE, SHARE, TRANSLATES, Line
from viz.ui.server.named import ENDPOINTS
from viz.ui.server.routes import (
    BY_FIELD,
    CALLS,
    JOIN,
    LISTING,
    ONE_REQUEST,
    PAGE,
    QUESTION,
    RESULTS,
    STREAM,
    TOOLS,
    WRITES,
    is_offered,
)

# Bytes of one request. An endpoint may be sent interventions with many vectors; the page sends texts and numbers.
MAX_CALL, MAX_PAGE, MAX_OTHER = 8_000_000, 2_000_000, 16_000
MAX_VALUES = 100_000  # of a question of the page
LARGE = 64_000  # bytes of JSON that are read in a thread, so that other requests go on
WIDTH = {"page": 48, **{options["concurrency_id"]: options["concurrency_limit"] for options in (TRANSLATES,)}}

# Gradio's page asks to end an event before it has heard its number, if a visitor is quick; Gradio itself answers with
# an error, which stands in the console. Nothing can be ended by no number.
ENDS = ("/gradio_api/cancel", "/gradio_api/reset")

CLOSE = (b"connection", b"close")
MALFORMED = "The request is not JSON of the form that README.md describes."
BUSY = "Too many requests are waiting. Please try again in a moment."


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

    def __init__(self, app: App) -> None:
        self.app, self.bodies = app, Bodies()
        self._line: Line | None = None
        self._calls: set[str] | None = None  # the questions that go through Gradio's queue

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, method = below(scope), scope["method"]
        if self._calls is None:
            names = {one.api_name for one in scope["app"].get_blocks().fns.values()}
            self._calls = {name for name in QUESTIONS if name in names}
        if not is_offered(method, path, self._calls):
            await answer(send, 404, refusal("invalid", "This app does not offer this."))
        elif method not in WRITES and (result := RESULTS.fullmatch(path)) and not is_known(scope["app"], result[2]):
            await answer(
                send, 404, refusal("invalid", "There is no such event: ask first, then fetch its answer once.")
            )
        elif path == STREAM and not has_answers(scope["app"], session_of(scope)):
            # Gradio says so within a stream that it answers with 200: no page would notice.
            await answer(send, 404, refusal("invalid", "There is no such session."))
        elif path == STREAM:
            await self._stream(scope, receive, send)
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

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a stream of answers. Where its session ends meanwhile, Gradio raises an error in the middle of the
        response; then it ends as any other."""
        started = False

        async def send_noted(message: dict) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, send_noted)
        except RuntimeError:
            if not started:
                raise
            await send({"type": "http.response.body", "body": b""})

    async def _post(self, path: str, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        call, asked = CALLS.fullmatch(path), QUESTION.fullmatch(path)
        if path.startswith(TOOLS):
            await self.app(scope, _replay(body, receive), send)
            return
        if asked is not None:
            try:
                lane = QUESTIONS[asked[1]].lane
                await self._while_wanted(lane, scope, body, receive, send, PAGE_SHARE)
            except Busy as error:
                await answer(send, 503, refusal("busy", str(error)))
            return
        try:
            content = await _read_json(body)
            function = function_of(scope["app"], content.get("fn_index"))
            if path in ENDS:
                if content.get("event_id", "") is None:
                    await answer(send, 200, {"success": True})
                    return
                content = ended_alone(scope["app"], content)
            elif call is not None and call[2] in ENDPOINTS:
                content = ENDPOINTS[call[2]].checked(content, by_field=call[1] == BY_FIELD)
            elif function is not None and function.api_name in ENDPOINTS:
                content = {**content, "data": ENDPOINTS[function.api_name].checked(content)["data"]}
            elif len(body) > MAX_PAGE or body.count(b",") > MAX_VALUES:
                raise ValueError(f"The page's questions have at most {MAX_PAGE:,} bytes and {MAX_VALUES:,} values.")
        except ValueError as error:
            await answer(send, 422, refusal("invalid", str(error)))
            return
        body = await _write_json(content, len(body))
        relay = without_echo(send)
        if path in ENDS:
            await self.app(scope, _replay(body, receive), relay)
            return
        at_once = call is not None and call[1] in ONE_REQUEST
        if at_once and call[2] == PAGE and (function is None or function.queue):
            await answer(send, 404, refusal("invalid", "This app does not offer this."))
            return
        if call is not None and call[2] in ENDPOINTS:
            lane = ENDPOINTS[call[2]].options.get("concurrency_id", "page")
        else:
            lane = "page" if at_once or function is None else function.concurrency_id
        try:
            if at_once:
                await self._while_wanted(lane, scope, body, receive, relay)
            else:
                by_page = path == JOIN and (function is None or function.api_name not in ENDPOINTS)
                self._line_of(scope).check(lane, _address(scope), PAGE_SHARE if by_page else SHARE)
                await self.app(scope, _replay(body, receive), relay)
        except Busy as error:
            await answer(send, 503, refusal("busy", str(error)))

    def _line_of(self, scope: Scope) -> Line:
        if self._line is None:
            app = scope["app"]
            most, at_once = line_limits(app)
            self._line = Line({**WIDTH, "model": at_once}, most, lambda *which: waiting_from(app, *which))
        return self._line

    async def _while_wanted(
        self, lane: str, scope: Scope, body: bytes, receive: Receive, send: Send, share: float = SHARE
    ) -> None:
        """Answer a call in its turn. If the caller leaves, it leaves the line or, once it runs, stops at the end of the
        part that is running."""
        gone, runs = threading.Event(), False

        async def run() -> None:
            nonlocal runs
            async with self._line_of(scope).turn(lane, _address(scope), share):
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


def session_of(scope: Scope) -> str:
    """Which session the request names; empty: none."""
    return parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[0]


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


def _missing() -> Iterator[str]:
    calls = ('"/call/{api_name}"', '"/call/v2/{api_name}"', '"/run/{api_name}"', '"/api/{api_name}"', '"/cancel"')
    yield from unsaid("routes.py", *calls, '"/queue/data"')
    yield from unsaid("queueing.py", "self.pending_messages_per_session:")


PART = Part("the guard at the door", _missing, "routes of Gradio's that were renamed are refused: read its routes.py")
