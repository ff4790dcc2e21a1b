"""The ASGI middleware before Gradio."""

from __future__ import annotations

from starlette.middleware import Middleware

from viz.server import first_paint, guard, headers, health, leaving
from viz.server.line import Line


def middleware(line: Line, *, lent: bool = False) -> list[Middleware]:
    """Return the layers, the outermost first. line: what requests wait in. lent: whether the page's questions go
    through Gradio's queue, which lends a GPU."""
    return [
        Middleware(headers.Headers),
        Middleware(health.Health, line=line),
        Middleware(guard.Guard, line=line, lent=lent),
        Middleware(leaving.Leaving),
        Middleware(first_paint.FirstPaint, lent=lent),
    ]
