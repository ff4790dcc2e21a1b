"""A page for `python -m bench.browser`: the explorer on a random trace, and a gr.Plot of the same maps that asks the
server for every head, as a comparison. `python -m bench.page.app --help`"""

from __future__ import annotations

import json
import os
import threading

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from types import SimpleNamespace

import gradio as gr

from attention_atlas.model.program import CommandLine, run_program
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.viz import assets, shell
from attention_atlas.viz.explorer import explorer
from attention_atlas.viz.figures.attention import plot_heatmap
from attention_atlas.viz.maps.reduce import View
from attention_atlas.viz.panels.scene import Selection
from attention_atlas.viz.questions import registry
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.questions.traces import Traces
from attention_atlas.viz.wire.payload import payload
from attention_atlas.viz.words import for_page
from bench.made.synthetic import random_trace

# Show the trace that is not shown, as the answer to a question does.
SHOW_NEXT = """() => import(new URL("{store}", document.baseURI)).then(({{ store }}) => {{
  const maps = {maps}, next = (window.shown ?? 0) + 1;
  window.shown = next;
  store.set({{ translation: {{ map: maps[next % maps.length] }} }});
}})"""
NO_MODELS = SimpleNamespace(by_digest=lambda digest: None)  # stands in for Translators: the traces need no model


def build(tokens: int, source: int | None = None) -> shell.Page:
    """Build the page with random attention: 6 layers x 8 heads x 3 kinds, `tokens` a side.

    source: another number of source tokens, as in a long text, whose maps are computed when they are looked at.
    """
    private = {"api_visibility": "private", "show_progress": "hidden"}
    with gr.Blocks(title="Benchmark", analytics_enabled=False) as demo:
        traces = [random_trace(source or tokens, tokens, seed=seed, is_long=bool(source)) for seed in range(2)]
        selection = Selection(AttentionKind.ENCODER_SELF) if source else None
        payloads = [{**payload(trace, selection), "address": Address.of(trace).to_plain()} for trace in traces]
        explorer.add_explorer(payloads[0])
        script = SHOW_NEXT.format(store=f"{assets.address()}store/store.js", maps=json.dumps(for_page(payloads)))
        gr.Button("Translate", elem_id="translate").click(None, js=script)
        heads = [gr.Button(f"H{head + 1}", elem_id=f"plot-head-{head}") for head in range(8)]
        plot = gr.Plot(plot_heatmap(traces[0], View("cross", 2, 0)), elem_id="plot")
        for head, button in enumerate(heads):
            button.click(lambda head=head: plot_heatmap(traces[0], View("cross", 2, head)), [], [plot], **private)
    context = Context(NO_MODELS, Traces(NO_MODELS))
    for trace in traces:
        context.traces.add(trace)
    registry.load_all()
    return shell.Page(demo, context)


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.page.app", __doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=30)
    parser.add_argument("--source", type=int, help="number of source tokens, as in a long text")
    args = parser.parse_args(argv)
    build(args.tokens, args.source).launch(server_name="127.0.0.1", server_port=args.port)
    threading.Event().wait()


if __name__ == "__main__":
    run_program(main)
