"""A page for `python -m bench.browser`: the explorer over a random trace, and beside it what it is measured
against, a gr.Plot of the same maps that asks the server for every head. `python -m bench.page.app --help`"""

from __future__ import annotations

import os

from model.program import command_line, program

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from collections.abc import Callable

import gradio as gr

from bench.made.synthetic import random_trace
from model.trace.kinds import AttentionKind
from viz import assets, theme
from viz.figures.heatmap import plot_heatmap
from viz.maps.reduce import View
from viz.ui import explorer
from viz.ui.component import serve_web_files
from viz.ui.desk.desk import Desk
from viz.ui.desk.history import found
from viz.ui.rpc import Message, told
from viz.ui.session import Selection, Session
from viz.wire.payload import payload


def build(tokens: int, source: int | None = None) -> gr.Blocks:
    """Random attention, 6 layers x 8 heads x 3 kinds, `tokens` a side; source: another number of source tokens, as of a
    long text, whose maps are computed when they are looked at."""
    serve_web_files()
    private = {"api_visibility": "private", "show_progress": "hidden"}
    with gr.Blocks(title="Benchmark", analytics_enabled=False) as demo:
        traces = [random_trace(source or tokens, tokens, seed=seed, held=bool(source)) for seed in range(2)]
        history, count = gr.State(tuple(traces)), gr.State(0)
        selection = Selection(AttentionKind.ENCODER_SELF if source else AttentionKind.CROSS)
        component = explorer.component(payload(traces[0], selection if source else None))
        desk = Desk(component, Session(gr.State(traces[0]), gr.State(selection)))
        for event, answer in (("layers", explorer.layers), ("tiles", explorer.tiled), ("cell", explorer.cell)):

            def find(message: Message, history: tuple, answer: Callable = answer) -> dict:
                return answer(found(history, message.data.get("key")), message.data)

            desk.answers(event, find, [history])
        translate = gr.Button("Translate", elem_id="translate")

        def another(n: int) -> tuple:
            return told(**payload(traces[(n + 1) % 2], selection if source else None)), n + 1

        translate.click(another, [count], [component, count], **private)

        heads = [gr.Button(f"H{head + 1}", elem_id=f"plot-head-{head}") for head in range(8)]
        plot = gr.Plot(plot_heatmap(traces[0], View("cross", 2, 0)), elem_id="plot")
        for head, button in enumerate(heads):
            button.click(lambda head=head: plot_heatmap(traces[0], View("cross", 2, head)), [], [plot], **private)
    return demo


def main(argv: list[str] | None = None) -> None:
    parser = command_line("bench.page.app", __doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=30)
    parser.add_argument("--source", type=int, help="tokens of the source, as of a long text")
    args = parser.parse_args(argv)
    css = theme.css_variables() + assets.page_style()
    build(args.tokens, args.source).launch(
        server_name="127.0.0.1", server_port=args.port, css=css, run_history=False, quiet=True
    )


if __name__ == "__main__":
    program(main)
