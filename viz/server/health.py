"""Health for proxies (/healthz, /readyz), numbers for Prometheus (/metrics), and an orderly end: no new question is
taken, and answers under way are finished."""

from __future__ import annotations

import time

from starlette.applications import Starlette

from attention_atlas.viz.questions.registry import QUESTIONS
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.server.endpoints import refusal
from attention_atlas.viz.server.guard import CALLS, QUESTION
from attention_atlas.viz.server.line import Line
from attention_atlas.viz.server.middleware import TEXT, App, Receive, Scope, Send, answer, below

try:
    import prometheus_client
except ImportError:  # an extra
    prometheus_client = None

ALIVE, READY, METRICS = "/healthz", "/readyz", "/metrics"
WITHOUT = "There are no metrics: install the extra, pip install 'attention-atlas[metrics]'.\n"
SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)  # bounds of what is counted as so slow
ASKS = ("/gradio_api/call/", "/gradio_api/run/", "/gradio_api/api/", "/gradio_api/queue/", "/ask/")  # and answers
QUIET = 0.3  # seconds without an answer under way: a program asks first, and fetches the answer with its next request
SAID = "The server is about to end, and takes no more questions. Please try again in a moment."


class Health:
    """ASGI middleware: answers for itself at three paths, and counts all others."""

    def __init__(self, app: App, line: Line) -> None:
        self.app, self.line = app, line
        self.counts = Counts() if prometheus_client else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = below(scope)
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif path == ALIVE:
            await answer(send, 200, b"alive\n", TEXT)
        elif path == READY:
            now, most = len(self.line), self.line.waiting
            # Gradio serves a moment before all is in place.
            complete = getattr(scope["app"].state, "complete", False)
            ready = now < most and complete and not leaving(scope["app"])
            state = {"ready": ready, "waiting": now, "most": most}
            await answer(send, 200 if ready else 503, state)
        elif path == METRICS and self.counts is None:
            await answer(send, 404, WITHOUT.encode(), TEXT)
        elif path == METRICS:
            metrics = self.counts.written(len(self.line), self.line.waiting)
            await answer(send, 200, metrics, prometheus_client.CONTENT_TYPE_LATEST.encode())
        elif self.counts is None:
            await self.app(scope, receive, send)
        else:
            await self.counts.counted(route(path), self.app, scope, receive, send)


def route(path: str) -> str:
    """What a request is counted as: an endpoint by its name, else "page" or "queue"; few names, whatever is asked."""
    called, asked = CALLS.match(path), QUESTION.fullmatch(path)
    if asked:
        return asked[1] if asked[1] in QUESTIONS else "page"
    if called:
        return called[2] if called[2] in ENDPOINTS else "page"
    return "queue" if path.startswith("/gradio_api/queue/") else "page"


class Counts:
    """Requests by route and status, how long each took, and the line before the model."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)  # memory, processor time, open files
        kept = {"registry": self.registry}
        self.requests = prometheus_client.Counter("atlas_requests", "Requests", ("route", "status"), **kept)
        self.seconds = prometheus_client.Histogram(
            "atlas_request_seconds", "From a request to the end of its answer", ("route",), buckets=SECONDS, **kept
        )
        self.waiting = prometheus_client.Gauge("atlas_waiting", "Requests that wait", **kept)
        self.most = prometheus_client.Gauge("atlas_waiting_limit", "Requests that may wait", **kept)

    async def counted(self, name: str, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        started, status = time.perf_counter(), 500

        async def noted(message: dict) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await app(scope, receive, noted)
        finally:
            self.requests.labels(name, str(status)).inc()
            self.seconds.labels(name).observe(time.perf_counter() - started)

    def written(self, now: int, most: int) -> bytes:
        self.waiting.set(now)
        self.most.set(most)
        return prometheus_client.generate_latest(self.registry)


class Leaving:
    """ASGI middleware: counts answers in app.state.under_way, and refuses questions once the server is leaving."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not below(scope).startswith(ASKS):
            await self.app(scope, receive, send)
            return
        state = scope["app"].state
        if scope["method"] == "POST" and leaving(scope["app"]):
            await answer(send, 503, refusal("busy", SAID))
            return
        state.under_way = getattr(state, "under_way", 0) + 1
        try:
            await self.app(scope, receive, send)
        finally:
            state.under_way -= 1


def leaving(app: Starlette) -> bool:
    return getattr(app.state, "leaving", False)


def leave(app: Starlette, seconds: float) -> bool:
    """From another thread than the server's: take no more questions, and wait until all answers that are under way have
    been fetched, or as long as this. Whether they were."""
    app.state.leaving = True
    end, quiet = time.monotonic() + seconds, time.monotonic()
    while (now := time.monotonic()) < end:
        if getattr(app.state, "under_way", 0):
            quiet = now
        elif now - quiet >= QUIET:
            return True
        time.sleep(0.02)
    return False
