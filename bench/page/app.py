"""A page for `python -m bench.browser`: the explorer over a random trace, and beside it what it is measured
against, a gr.Plot of the same maps that asks the server for every head. `python -m bench.page.app --help`"""

from __future__ import annotations

import json
import os
import threading

from attention_atlas.model.program import command_line, program

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from types import SimpleNamespace

import gradio as gr

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
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

# Show the other trace, as the answer to a question does.
SHOW_OTHER = """() => import(new URL("{store}", document.baseURI)).then(({{ store }}) => {{
  const maps = {maps}, next = (window.shown ?? 0) + 1;
  window.shown = next;
  store.set({{ translation: {{ map: maps[next % maps.length] }} }});
}})"""
NO_MODELS = SimpleNamespace(made=lambda digest: None)  # in the place of Translators: the traces are all there is


def build(tokens: int, source: int | None = None) -> shell.Page:
    """Random attention, 6 layers x 8 heads x 3 kinds, `tokens` a side; source: another number of source tokens, as of a
    long text, whose maps are computed when they are looked at."""
    private = {"api_visibility": "private", "show_progress": "hidden"}
    with gr.Blocks(title="Benchmark", analytics_enabled=False) as demo:
        traces = [random_trace(source or tokens, tokens, seed=seed, held=bool(source)) for seed in range(2)]
        selection = Selection(AttentionKind.ENCODER_SELF if source else AttentionKind.CROSS)
        payloads = [explorer_payload(trace, selection if source else None) for trace in traces]
        explorer.add_explorer(payloads[0])
        translate = gr.Button("Translate", elem_id="translate")
        translate.click(
            None, js=SHOW_OTHER.format(store=f"{assets.address()}store/store.js", maps=json.dumps(for_page(payloads)))
        )

        heads = [gr.Button(f"H{head + 1}", elem_id=f"plot-head-{head}") for head in range(8)]
        plot = gr.Plot(plot_heatmap(traces[0], View("cross", 2, 0)), elem_id="plot")
        for head, button in enumerate(heads):
            button.click(lambda head=head: plot_heatmap(traces[0], View("cross", 2, head)), [], [plot], **private)
    context = Context(NO_MODELS, Traces(NO_MODELS))
    for trace in traces:
        context.traces.add(trace)
    registry.load_all()
    return shell.Page(demo, context)


def explorer_payload(trace: TranslationTrace, selection: Selection | None) -> dict:
    """The payload of a trace with its address, by which the explorer asks for the rest."""
    return {**payload(trace, selection), "address": Address.of(trace).to_plain()}


def main(argv: list[str] | None = None) -> None:
    parser = command_line("python -m bench.page.app", __doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=30)
    parser.add_argument("--source", type=int, help="tokens of the source, as of a long text")
    args = parser.parse_args(argv)
    build(args.tokens, args.source).launch(server_name="127.0.0.1", server_port=args.port)
    threading.Event().wait()


if __name__ == "__main__":
    program(main)
