"""The ASGI middleware before Gradio."""

from __future__ import annotations

from starlette.middleware import Middleware

from model.serve.limits import BatchLimits
from viz.ui.server import first_paint, guard, headers, health, leaving


def middleware(limits: BatchLimits, *, lent: bool = False) -> list[Middleware]:
    """Return the layers, the outermost first. lent: whether the page's questions go through Gradio's queue, which lends
    a GPU."""
    line = guard.line_of(limits)
    return [
        Middleware(headers.Headers),
        Middleware(health.Health, line=line),
        Middleware(guard.Guard, line=line, lent=lent),
        Middleware(leaving.Leaving),
        Middleware(first_paint.FirstPaint, lent=lent),
    ]
