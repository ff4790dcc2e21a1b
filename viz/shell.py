"""The page as a Gradio app: a Blocks of documented components, the named endpoints, and the options of its launch.

The components only load the page's modules (viz/web/). Those keep the page's state and ask the server questions at /ask
(viz/server/ask.py).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

import gradio as gr
from fastapi import FastAPI
from starlette.middleware import Middleware

from attention_atlas.model.translators import Translators
from attention_atlas.viz import assets, directions, theme
from attention_atlas.viz.component import add_component, label, translations
from attention_atlas.viz.explorer import explorer
from attention_atlas.viz.panels.registry import TABS as LAB_TABS
from attention_atlas.viz.panels.registry import Tab, describe_tab
from attention_atlas.viz.questions import header, opening, registry, train
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import CacheBytes, Traces
from attention_atlas.viz.server import api, ask, guard, health, web_files
from attention_atlas.viz.server.middleware import Headers
from attention_atlas.viz.server.request_queue import RequestQueue
from attention_atlas.viz.tours import guide
from attention_atlas.viz.wire.summary import INVITATION, invitation
from attention_atlas.viz.words import say

TITLE = "Attention Atlas"
SENTENCE, DIRECTION, TRANSLATE = say("Sentence"), say("Direction"), say("Translate")


def _build_explorer(context: Context, first: dict) -> None:
    """Lay out the tab of the maps. Later translations reach it through the page's store."""
    explorer.add_explorer(first.get("explorer", {"invitation": INVITATION}), model=True)


def _build_stepper(context: Context, first: dict) -> None:
    add_component("stepper", options={"colours": theme.SCALES["viridis"]}, elem_id="stepper")


def _build_panels(tab: Tab, context: Context, first: dict) -> None:
    """Lay out a tab of panels; the tab Train begins with the network that a visitor can train."""
    options = describe_tab(tab, [translator.config for translator in context.translators.values()])
    if tab.name == "train":
        options["groups"].insert(0, train.group())
    add_component("lab", elem_id=f"lab-{tab.name}", options=options)


TABS = (  # (title, id, build(context, first))
    (say("Attention"), "explorer", _build_explorer),
    (say("Step by step"), "stepper", _build_stepper),
    *((tab.title, tab.name, partial(_build_panels, tab)) for tab in LAB_TABS),
)
LABELS = (SENTENCE, DIRECTION, TRANSLATE, *directions.LABELS, *(title for title, *_ in TABS))
MAX_SESSIONS = 50  # that Gradio keeps, of programs that call the endpoints; the page has none
THREADS = 96


@dataclass
class Page:
    """A page, the context of its questions, and the queue of its requests.

    lent     whether questions go through Gradio's queue, which lends a GPU
    opening  what browsers set to English open with (viz.questions.opening), if that is not what all others do
    """

    demo: gr.Blocks
    context: Context
    request_queue: RequestQueue | None = None
    lent: bool = False
    opening: dict | None = None
    app: FastAPI | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.request_queue is None:
            self.request_queue = guard.create_queue(self.context.limits)

    def launch(
        self, *, queue: int = 64, concurrency: int = 1, hosts: Collection[str] | None = None, **options: object
    ) -> str:
        """Start serving the page in the background, and return its address.

        Args:
            queue: the number of endpoint calls that may wait in Gradio's queue
            concurrency: the number of them that run at once
            hosts: the names allowed in a request's Host header; None for any
            options: further options of Blocks.launch
        """
        os.environ.setdefault("GRADIO_RUN_HISTORY", "False")  # launch(run_history=) needs Gradio 6.24
        self.demo.queue(max_size=queue, default_concurrency_limit=concurrency)
        routes = [web_files.route(), ask.route(self.context)]
        if self.opening:
            routes.insert(0, web_files.opening_route(self.opening))
        layers = [  # the outermost first
            Middleware(Headers),
            Middleware(health.Health, request_queue=self.request_queue),
            Middleware(guard.Guard, request_queue=self.request_queue, lent=self.lent, hosts=hosts),
            Middleware(health.Shutdown),
            Middleware(web_files.FirstPaint, lent=self.lent, opens=self.opening is not None),
        ]
        self.app, url, _ = self.demo.launch(
            prevent_thread_lock=True,
            quiet=True,
            theme=_theme(),
            css=theme.css_variables() + assets.page_style(),
            i18n=translations(LABELS),
            footer_links=["api"],
            max_threads=THREADS,
            state_session_capacity=MAX_SESSIONS,
            # With server-side rendering a Node process answers without the middleware and loads fonts from other hosts.
            ssr_mode=False,
            mcp_server=importlib.util.find_spec("mcp") is not None,
            app_kwargs={"routes": routes, "middleware": layers, "docs_url": None, "redoc_url": None},
            **options,
        )
        guard.close_silent_connections(self.demo.server)
        self.app.state.complete = True
        return url


def build(
    translators: Translators, lend: Callable[[Callable], Callable] | None = None, cache_bytes: CacheBytes = CacheBytes()
) -> Page:
    """Build the page for these models.

    Args:
        translators: the models
        lend: on ZeroGPU, makes a function run where a GPU is lent
        cache_bytes: the sizes of the server's caches
    """
    registry.load_all()
    context = Context(translators, Traces(translators, cache_bytes), limits=next(iter(translators.values())).limits)
    request_queue = guard.create_queue(context.limits)
    with gr.Blocks(title=TITLE, analytics_enabled=False) as demo:
        add_component(
            "title",
            {
                "heading": TITLE,
                "text": say("Translate a sentence, then point at its words."),
            },
            options={"tour": guide.invitation(translators)},
            elem_id="atlas-title",
        )
        with gr.Column(visible=False):  # Gradio renders nothing for hidden components
            api.build(translators, request_queue, lend)
            if lend:
                ask.add_calls(context, lend)
        first = _header(context)
        with gr.Tabs(elem_id="tabs"):
            for title, name, build_tab in TABS:
                with gr.Tab(label(title), id=name, elem_id=f"tab-{name}"):
                    build_tab(context, first)
        guide.build()
    own_route = opening.own_route(translators)
    own = opening.describe(context, own_route) if own_route else None
    return Page(demo, context, request_queue, lent=lend is not None, opening=own)


def _header(context: Context) -> dict:
    """Build the part above the tabs, in which a sentence is typed and its translation shown.

    Returns what the page opens with (viz.questions.opening).
    """
    translators = context.translators
    first = opening.describe(context, translators.routes[0])
    with gr.Row(elem_id="atlas-input", equal_height=True):
        text = gr.Textbox(
            first["text"],
            label=label(SENTENCE),
            show_label=False,
            lines=1,
            max_lines=4,
            autofocus=True,
            scale=6,
            min_width=320,
            elem_id="source-text",
            submit_btn=False,
        )
        add_component("examples", first["examples"], elem_id="examples")
        menu = gr.Dropdown(
            [*directions.entries(translators), (label(directions.YOURS), directions.TOY)],
            value=first["entry"],
            label=label(DIRECTION),
            show_label=False,
            scale=2,
            min_width=160,
            elem_id="direction",
            filterable=False,
        )
        go = gr.Button(label(TRANSLATE), variant="primary", scale=0, min_width=110, elem_id="translate")
    add_component("languages", elem_id="languages", visible=any(translator.languages for translator in translators.all))
    state = first.get("translation") or invitation(translators[translators.routes[0].label])
    options = {"searches": header.SEARCHES}
    result = add_component("translation", state, events=("fill",), options=options, elem_id="translation")
    private = {"show_progress": "hidden", "api_visibility": "private"}
    gr.on([text.submit, go.click], None, text, js=_calls("submit"), **private)
    menu.input(None, menu, js=_calls("chooseDirection"), **private)
    result.fill(None, outputs=[text, menu], js=_calls("takeValues"), **private)
    return first


def _calls(name: str) -> str:
    """Return a listener that calls this function of viz/web/store/controls.js with the values of its inputs."""
    module = f"{assets.address()}store/controls.js"
    return f'async (...values) => (await import(new URL("{module}", document.baseURI))).{name}(...values)'


def _theme() -> gr.themes.Base:
    accent = "var(--atlas-accent)"
    colours = {
        "body_text_color_subdued": "var(--atlas-muted)",
        "body_background_fill": "var(--atlas-paper)",
        "button_primary_background_fill": accent,
        "button_primary_background_fill_hover": "var(--atlas-ink)",
        "button_primary_text_color": "var(--atlas-on-accent)",
    }
    dark = {f"{name}_dark": colour for name, colour in colours.items()}
    base = gr.themes.Base(primary_hue="blue", neutral_hue="slate", font=list(theme.FONT), font_mono=list(theme.MONO))
    return base.set(color_accent=accent, **colours, **dark)
