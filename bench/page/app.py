"""A page for `python -m bench.browser`: the explorer over a random trace, and beside it what it is measured
against, a gr.Plot of the same maps that asks the server for every head. `python -m bench.page.app --help`"""

from __future__ import annotations

import os

from model.program import command_line, program

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from types import SimpleNamespace

import gradio as gr

from bench.made.synthetic import random_trace
from model.trace.address import Address
from model.trace.kinds import AttentionKind
from model.trace.translation import TranslationTrace
from viz import assets, theme
from viz.figures.heatmap import plot_heatmap
from viz.maps.reduce import View
from viz.questions import registry
from viz.questions.registry import Context
from viz.questions.traces import Traces
from viz.ui import explorer
from viz.ui.rpc import told
from viz.ui.server import ask
from viz.ui.session import Selection
from viz.wire.payload import payload

NO_MODELS = SimpleNamespace(made=lambda digest: None)  # in the place of Translators: the traces are all there is


def build(tokens: int, source: int | None = None) -> gr.Blocks:
    """Random attention, 6 layers x 8 heads x 3 kinds, `tokens` a side; source: another number of source tokens, as of a
    long text, whose maps are computed when they are looked at."""
    private = {"api_visibility": "private", "show_progress": "hidden"}
    with gr.Blocks(title="Benchmark", analytics_enabled=False) as demo:
        traces = [random_trace(source or tokens, tokens, seed=seed, held=bool(source)) for seed in range(2)]
        count = gr.State(0)
        selection = Selection(AttentionKind.ENCODER_SELF if source else AttentionKind.CROSS)
        component = explorer.component(explorer_payload(traces[0], selection if source else None))
        translate = gr.Button("Translate", elem_id="translate")

        def another(n: int) -> tuple:
            return told(**explorer_payload(traces[(n + 1) % 2], selection if source else None)), n + 1

        translate.click(another, [count], [component, count], **private)

        heads = [gr.Button(f"H{head + 1}", elem_id=f"plot-head-{head}") for head in range(8)]
        plot = gr.Plot(plot_heatmap(traces[0], View("cross", 2, 0)), elem_id="plot")
        for head, button in enumerate(heads):
            button.click(lambda head=head: plot_heatmap(traces[0], View("cross", 2, head)), [], [plot], **private)
    context = Context(NO_MODELS, Traces(NO_MODELS))
    for trace in traces:
        context.traces.add(trace)
    registry.load_all()
    ask.answer_from(demo, context)
    return demo


def explorer_payload(trace: TranslationTrace, selection: Selection | None) -> dict:
    """The payload of a trace with its address, by which the explorer asks for the rest."""
    return {**payload(trace, selection), "address": Address.of(trace).to_plain()}


def main(argv: list[str] | None = None) -> None:
    parser = command_line("bench.page.app", __doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=30)
    parser.add_argument("--source", type=int, help="tokens of the source, as of a long text")
    args = parser.parse_args(argv)
    css = theme.css_variables() + assets.page_style()
    demo = build(args.tokens, args.source)
    routes = {"routes": ask.routes(demo)}
    demo.launch(
        server_name="127.0.0.1", server_port=args.port, css=css, run_history=False, quiet=True, app_kwargs=routes
    )


if __name__ == "__main__":
    program(main)
