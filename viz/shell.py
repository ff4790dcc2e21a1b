"""The page as a Gradio app: a Blocks of documented components, the named endpoints, and the options of its launch.

The components only hold the page's modules (viz/web/); those keep the page's state, and ask the server for answers at
/ask (viz/server/ask.py).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field

import gradio as gr
from fastapi import FastAPI
from starlette.middleware import Middleware

from model.translators import Translators
from viz import assets, theme
from viz.questions import registry
from viz.questions.registry import Context
from viz.questions.traces import Traces
from viz.server import api, ask, guard, health, web_files
from viz.server.line import Line
from viz.server.middleware import Headers
from viz.ui import header, language, tabs

TITLE = "Attention Atlas"
LABELS = (*header.LABELS, *tabs.LABELS)
MAX_SESSIONS = 50  # that Gradio keeps, of programs that call the endpoints; the page has none
THREADS = 96


@dataclass
class Page:
    """A page, what answers its questions, and the line that requests wait in. lent: whether questions go through
    Gradio's queue, which lends a GPU."""

    demo: gr.Blocks
    context: Context
    line: Line | None = None
    lent: bool = False
    app: FastAPI | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.line is None:
            self.line = guard.line_of(self.context.limits)

    def launch(self, *, queue: int = 64, concurrency: int = 1, **options: object) -> str:
        """Serve the page without waiting for its end. Returns its address.

        queue: calls of the endpoints that may wait. concurrency: those that run at once. options: of Blocks.launch.
        """
        self.demo.queue(max_size=queue, default_concurrency_limit=concurrency)
        routes = [web_files.route(), ask.route(self.context)]
        layers = [  # the outermost first
            Middleware(Headers),
            Middleware(health.Health, line=self.line),
            Middleware(guard.Guard, line=self.line, lent=self.lent),
            Middleware(health.Leaving),
            Middleware(web_files.FirstPaint, lent=self.lent),
        ]
        self.app, url, _ = self.demo.launch(
            prevent_thread_lock=True,
            quiet=True,
            theme=_theme(),
            css=theme.css_variables() + assets.page_style(),
            i18n=language.translations(LABELS),
            run_history=False,
            footer_links=["api"],
            max_threads=THREADS,
            state_session_capacity=MAX_SESSIONS,
            # A Space's Node process would answer past the middleware, and its page asks other hosts for fonts.
            ssr_mode=False,
            mcp_server=importlib.util.find_spec("mcp") is not None,
            app_kwargs={"routes": routes, "middleware": layers, "docs_url": None, "redoc_url": None},
            **options,
        )
        guard.close_silent_connections(self.demo.server)
        self.app.state.complete = True
        return url


def build(translators: Translators, lend: Callable[[Callable], Callable] | None = None) -> Page:
    """Build the page over these models. lend: on ZeroGPU, makes a function run where a GPU is lent."""
    registry.load_all()
    context = Context(translators, Traces(translators), limits=next(iter(translators.values())).limits)
    line = guard.line_of(context.limits)
    with gr.Blocks(title=TITLE, analytics_enabled=False) as demo:
        header.title(TITLE, translators)
        api.build(translators, line, lend)
        if lend:
            ask.add_calls(context, lend)
        tabs.build(context, header.build(context))
    return Page(demo, context, line, lent=lend is not None)


def _theme() -> gr.themes.Base:
    accent, paper = "var(--atlas-accent)", "var(--atlas-paper)"
    return gr.themes.Base(
        primary_hue="blue", neutral_hue="slate", font=list(theme.FONT), font_mono=list(theme.MONO)
    ).set(
        body_text_color_subdued="var(--atlas-muted)",
        body_text_color_subdued_dark="var(--atlas-muted)",
        color_accent=accent,
        body_background_fill=paper,
        body_background_fill_dark=paper,
        button_primary_background_fill=accent,
        button_primary_background_fill_dark=accent,
        button_primary_background_fill_hover="var(--atlas-ink)",
        button_primary_background_fill_hover_dark="var(--atlas-ink)",
        button_primary_text_color="var(--atlas-on-accent)",
        button_primary_text_color_dark="var(--atlas-on-accent)",
    )
