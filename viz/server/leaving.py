"""A server that was told to end: it takes no new question, and finishes the answers that are under way."""

from __future__ import annotations

import time

from starlette.applications import Starlette

from viz.server.answers import refusal
from viz.server.asgi import App, Receive, Scope, Send, answer, below

ASKS = ("/gradio_api/call/", "/gradio_api/run/", "/gradio_api/api/", "/gradio_api/queue/", "/ask/")  # and answers
QUIET = 0.3  # seconds without an answer under way: a program asks first, and fetches the answer with its next request
SAID = "The server is about to end, and takes no more questions. Please try again in a moment."


class Leaving:
    """ASGI middleware: counts answers under way in `app.state.under_way`; once `app.state.leaving` is there, what asks
    for another one is told to come back."""

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


def complete(app: Starlette) -> bool:
    """Whether all of it is in place: Gradio serves a moment before that."""
    return getattr(app.state, "complete", False)


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
