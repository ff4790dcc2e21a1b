"""Which requests the app answers. Everything else is refused, whatever Gradio would do with it."""

from __future__ import annotations

import re
from collections.abc import Container

from viz.questions.registry import QUESTIONS
from viz.server.endpoints import TOOLS
from viz.server.named import ENDPOINTS

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
MAX_NAME = 255  # characters of a file's name: for a longer one the system has an error of its own

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


def is_offered(method: str, path: str, calls: Container[str] = ()) -> bool:
    """Whether the app answers this method at this path (decoded, below the page's own root). calls: the page's
    questions that go through Gradio's queue."""
    if path == TOOLS or path.startswith(f"{TOOLS}/"):
        return True
    if method in WRITES:
        call, asked = CALLS.fullmatch(path), QUESTION.fullmatch(path)
        if asked is not None:
            return asked[1] in QUESTIONS
        return path in _WRITTEN or (call is not None and (call[2] in ENDPOINTS or _is_page_call(call, calls)))
    if method not in READS:
        return False
    if max(map(len, path.split("/"))) > MAX_NAME:
        return False
    result = RESULTS.fullmatch(path)
    if result is not None:
        return result[1] in ENDPOINTS or result[1] in calls
    return (path.rstrip("/") or "/") in _READ or path.startswith(_READ_BELOW)


def _is_page_call(call: re.Match, calls: Container[str]) -> bool:
    return call[1] == "call" and call[2] in calls
