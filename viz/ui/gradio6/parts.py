"""All that rests on Gradio's internals, and what the app does with it."""

from __future__ import annotations

import gradio as gr
from starlette.middleware import Middleware

from viz.ui.gradio6 import (
    discreet_log,
    edited_scripts,
    files,
    guard,
    lent_gpu,
    preloads,
    tool_answers,
    visitors,
    wakeful_queue,
)
from viz.ui.gradio6.part import check
from viz.ui.server import connections, headers, health, leaving

MODULES = (
    preloads,
    files,
    edited_scripts,
    wakeful_queue,
    visitors,
    guard,
    discreet_log,
    tool_answers,
    lent_gpu,
)
PARTS = tuple(module.PART for module in MODULES)


def middleware() -> list[Middleware]:
    """What stands before Gradio, the outermost first."""
    check(PARTS)
    layers = (headers.Headers, health.Health, guard.Guard, leaving.Leaving, files.Files, preloads.Preloads)
    return [Middleware(layer) for layer in layers]


def before_launch(demo: gr.Blocks) -> None:
    """For a page that has its queue."""
    wakeful_queue.wake_on_arrival(demo._queue)


def after_launch(demo: gr.Blocks) -> None:
    """For a page that is served."""
    visitors.use_visitors(demo)
    tool_answers.answer_tools_in_json(demo)
    connections.close_silent_connections(demo.server)
    demo.app.state.complete = True
