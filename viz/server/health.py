"""Health checks for proxies (/healthz, /readyz), Prometheus metrics (/metrics), and a graceful shutdown, which refuses
new questions and finishes the answers under way.
"""

from __future__ import annotations

import time

from starlette.applications import Starlette

from attention_atlas.viz.questions.registry import QUESTIONS
from attention_atlas.viz.server.api import ENDPOINTS
from attention_atlas.viz.server.endpoints import refusal
from attention_atlas.viz.server.guard import CALLS, QUESTION
from attention_atlas.viz.server.middleware import TEXT, App, Receive, Scope, Send, answer, below
from attention_atlas.viz.server.request_queue import RequestQueue

try:
    import prometheus_client
except ImportError:  # it comes with the extra "metrics"
    prometheus_client = None

ALIVE, READY, METRICS = "/healthz", "/readyz", "/metrics"
NO_METRICS = "There are no metrics: install the extra, pip install 'attention-atlas[metrics]'.\n"
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)  # seconds, of the histogram of answer times
QUESTION_PREFIXES = ("/gradio_api/call/", "/gradio_api/run/", "/gradio_api/api/", "/gradio_api/queue/", "/ask/")
# Seconds without an answer under way before the server ends: a program sends a call first and fetches its answer with
# a second request.
QUIET_SECONDS = 0.3
SHUTTING_DOWN = "The server is about to end, and takes no more questions. Please try again in a moment."


class Health:
    """ASGI middleware that answers /healthz, /readyz and /metrics, and counts all other requests."""

    def __init__(self, app: App, request_queue: RequestQueue) -> None:
        self.app, self.request_queue = app, request_queue
        self.metrics = Metrics(request_queue) if prometheus_client else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = below(scope)
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif path == ALIVE:
            await answer(send, 200, b"alive\n", TEXT)
        elif path == READY:
            waiting, limit = len(self.request_queue), self.request_queue.max_waiting
            # Gradio answers a moment before the launch is complete.
            is_complete = getattr(scope["app"].state, "complete", False)
            is_ready = waiting < limit and is_complete and not is_shutting_down(scope["app"])
            await answer(send, 200 if is_ready else 503, {"ready": is_ready, "waiting": waiting, "most": limit})
        elif path == METRICS and self.metrics is None:
            await answer(send, 404, NO_METRICS.encode(), TEXT)
        elif path == METRICS:
            text = prometheus_client.generate_latest(self.metrics.registry)
            await answer(send, 200, text, prometheus_client.CONTENT_TYPE_LATEST.encode())
        elif self.metrics is None:
            await self.app(scope, receive, send)
        else:
            await self.metrics.measure(route_label(path), self.app, scope, receive, send)


def route_label(path: str) -> str:
    """Return the label under which a request is counted: the name of an endpoint or question, "queue" or "page"."""
    call, question = CALLS.match(path), QUESTION.fullmatch(path)
    if question:
        return question[1] if question[1] in QUESTIONS else "page"
    if call:
        return call[2] if call[2] in ENDPOINTS else "page"
    return "queue" if path.startswith("/gradio_api/queue/") else "page"


class Metrics:
    """Prometheus metrics: requests by route and status, their duration, and the length of the request queue."""

    def __init__(self, request_queue: RequestQueue) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self.registry)  # memory, processor time, open files
        options = {"registry": self.registry}
        self.requests = prometheus_client.Counter("atlas_requests", "Requests", ("route", "status"), **options)
        self.seconds = prometheus_client.Histogram(
            "atlas_request_seconds", "From a request to the end of its answer", ("route",), buckets=BUCKETS, **options
        )
        waiting = prometheus_client.Gauge("atlas_waiting", "Requests that wait", **options)
        waiting.set_function(lambda: len(request_queue))
        limit = prometheus_client.Gauge("atlas_waiting_limit", "Requests that may wait", **options)
        limit.set_function(lambda: request_queue.max_waiting)

    async def measure(self, label: str, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app on a request, and record its status and duration under this label."""
        started, status = time.perf_counter(), 500

        async def send_and_note_status(message: dict) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await app(scope, receive, send_and_note_status)
        finally:
            self.requests.labels(label, str(status)).inc()
            self.seconds.labels(label).observe(time.perf_counter() - started)


class Shutdown:
    """ASGI middleware that counts the answers under way in app.state.under_way, and refuses new questions once the
    server shuts down."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not below(scope).startswith(QUESTION_PREFIXES):
            await self.app(scope, receive, send)
            return
        state = scope["app"].state
        if scope["method"] == "POST" and is_shutting_down(scope["app"]):
            await answer(send, 503, refusal("busy", SHUTTING_DOWN))
            return
        state.under_way = getattr(state, "under_way", 0) + 1
        try:
            await self.app(scope, receive, send)
        finally:
            state.under_way -= 1


def is_shutting_down(app: Starlette) -> bool:
    """Return whether shut_down() was called."""
    return getattr(app.state, "is_shutting_down", False)


def shut_down(app: Starlette, seconds: float) -> bool:
    """Refuse new questions and wait until all answers under way are fetched, for at most so many seconds.

    Call it from another thread than the server's. Returns whether all answers were fetched.
    """
    app.state.is_shutting_down = True
    end, quiet_since = time.monotonic() + seconds, time.monotonic()
    while (now := time.monotonic()) < end:
        if getattr(app.state, "under_way", 0):
            quiet_since = now
        elif now - quiet_since >= QUIET_SECONDS:
            return True
        time.sleep(0.02)
    return False
