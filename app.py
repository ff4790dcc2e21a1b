"""Attention Atlas: translate a sentence and look at every attention head. `python app.py --help`"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import threading

from model.program import program
from model.serve.late import late

# Before gradio is imported: nothing about the people who use this page leaves it.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
if "SPACE_ID" in os.environ:  # behind Hugging Face's proxy, whose address varies
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "*")
# Before torch is: how often its threads look for work before they sleep. Its own 300,000 times keep a core for
# milliseconds that another program has to wait for: with one such program on two cores, a step of T5-base's size takes
# 170 to 1,400 ms; looking so often, 70. Alone it takes 20 ms either way.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

try:
    import spaces  # there on Hugging Face Spaces; it must come before torch
except ImportError:
    spaces = None
with late("pandas"):  # which Gradio imports and this page never uses: 33 MB, and a sixth of a second
    import gradio as gr


from model.families import hub
from model.serve.cores import Cores
from model.serve.device import allow_many_files, cores, return_freed_memory, share_cores
from model.serve.limits import BatchLimits
from model.translators import Translators
from viz import assets, theme
from viz.questions import registry
from viz.questions.registry import Context
from viz.questions.traces import Traces
from viz.ui import direction, header, language, tabs
from viz.ui.component import serve_web_files
from viz.ui.gradio6 import parts, tool_answers
from viz.ui.gradio6.discreet_log import keep_text_out_of_records, keep_text_out_of_tracebacks
from viz.ui.gradio6.guard import check_port
from viz.ui.gradio6.lent_gpu import wrap_for_zero_gpu
from viz.ui.server import ask, named
from viz.ui.server.leaving import leave
from viz.ui.server.options import parse

TITLE = "Attention Atlas"
FINISHING_SECONDS, CLOSING_SECONDS = 2.5, 1.5
COLLECTED_AFTER = 50_000  # new objects; Python's own 700 are those of a single answer
IDLE = 600  # seconds in which nobody asks a model, after which it leaves memory
LISTENING = 1 if os.name == "nt" else 60  # seconds: on Windows a wait does not hear Ctrl+C


def build_demo(translators: Translators, *, zero_gpu: bool = False) -> gr.Blocks:
    """The whole page over these translators. zero_gpu: its questions go through Gradio's queue, which lends a GPU."""
    serve_web_files()
    registry.load_all()
    limits = next(iter(translators.values())).limits
    context = Context(translators, Traces(translators), limits=limits)
    with gr.Blocks(title=TITLE, analytics_enabled=False) as demo:
        header.title(TITLE, translators)
        named.build(translators)  # first: a handler of the page may not take an endpoint's name
        if zero_gpu:
            ask.add_calls(context)
        tabs.build(context, header.build(context))
    ask.answer_from(demo, context)
    demo.space_id = None  # with it, a Space's page asks Google for fonts and Hugging Face for its name (measured)
    return demo


def launch_options(demo: gr.Blocks) -> dict:
    """What the page needs from launch(), whoever launches it (the app, the tests, the benchmark)."""
    colours = gr.themes.Base(
        primary_hue="blue", neutral_hue="slate", font=list(theme.FONT), font_mono=list(theme.MONO)
    ).set(
        body_text_color_subdued="var(--atlas-muted)",
        body_text_color_subdued_dark="var(--atlas-muted)",
        color_accent="var(--atlas-accent)",
        body_background_fill="var(--atlas-paper)",
        body_background_fill_dark="var(--atlas-paper)",
        button_primary_background_fill="var(--atlas-accent)",
        button_primary_background_fill_dark="var(--atlas-accent)",
        button_primary_background_fill_hover="var(--atlas-ink)",
        button_primary_background_fill_hover_dark="var(--atlas-ink)",
        button_primary_text_color="var(--atlas-on-accent)",
        button_primary_text_color_dark="var(--atlas-on-accent)",
    )
    # Server-side rendering stays off, even on a Space: its Node process answers past the guard and without its headers,
    # and its page asks Google for fonts (measured with Gradio 6.31).
    return {
        "theme": colours,
        "css": theme.css_variables() + assets.page_style(),
        "run_history": False,
        "footer_links": ["api"],  # its settings half-translate the page: ours are viz/web/page/display.js
        "max_threads": 96,
        "ssr_mode": False,
        "i18n": language.translations(demo.config),
        "mcp_server": tool_answers.OFFERED,  # its endpoints
        "app_kwargs": {
            "routes": ask.routes(demo),
            "middleware": parts.middleware(),
            "docs_url": None,
            "redoc_url": None,
        },
    }


def launch(demo: gr.Blocks, **options: object) -> str:
    """Launch a page that has its queue, without waiting for its end; its address."""
    parts.before_launch(demo)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options(demo), **options)
    parts.after_launch(demo)
    return url


def serve(demo: gr.Blocks, translators: Translators, args: argparse.Namespace) -> None:
    """Serve until SIGTERM or Ctrl+C; then finish what is under way, but end within four seconds, whatever is left."""
    ended = threading.Event()
    demo.queue(max_size=args.queue, default_concurrency_limit=args.concurrency)
    for translator in translators.all:
        translator.rest()
    # The page stays as long as the process: no collection of garbage need walk through it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    host = f"[{args.host}]" if ":" in args.host else args.host
    launch(demo, server_name=host, server_port=args.port, state_session_capacity=args.max_sessions)
    print(f"{TITLE} is served on http://{host}:{args.port}", flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    while not ended.wait(LISTENING):
        for translator in translators.all:
            translator.rest(IDLE)
    leave(demo.app, FINISHING_SECONDS)
    closing = threading.Thread(target=demo.close, kwargs={"verbose": False}, daemon=True)
    closing.start()
    closing.join(CLOSING_SECONDS)
    for translator in translators.all:
        translator.close()
    os._exit(0)  # a translation still under way would hold a normal exit up


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    check_port(args.host, args.port)
    keep_text_out_of_tracebacks()
    keep_text_out_of_records()
    return_freed_memory()
    allow_many_files()
    share_cores(args.concurrency)
    # ZeroGPU lends a GPU to handlers only: what runs before the first of them runs on the CPU.
    zero_gpu = spaces is not None and spaces.config.Config.zero_gpu
    shared = Cores(cores())
    limits = BatchLimits(at_once=args.concurrency, waiting=args.queue, cores=shared)
    translators = Translators.load(
        args.checkpoints,
        "cpu" if zero_gpu else args.device,
        limits=limits,
        models=[hub.locate(name) for name in args.model],
    )
    for translator in translators.all:
        translator.serve_alone()
    if not any(map(direction.is_large, translators.all)):
        # A small model's pass is fastest on one thread: every thread of the server has torch helpers of its own, which
        # fall asleep between small operations. Alone on two cores `why` took 1.05 s with two threads, 0.7 s with one.
        shared.number = 1
    demo = build_demo(translators, zero_gpu=zero_gpu)
    if zero_gpu:
        translators.to("cuda")
        for translator in translators.all:
            translator.scratch.mkdir(exist_ok=True)  # shared by the processes that are lent a GPU
        wrap_for_zero_gpu(demo, spaces)
    serve(demo, translators, args)


if __name__ == "__main__":
    program(main)
