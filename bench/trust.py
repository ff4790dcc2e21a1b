"""Measure how long it takes to say how far to trust a translation: python -m bench.trust --help

Medians of repeated runs in one process, with the app's threads for each pass, next to the bars in seconds: the line
under a translation, the panel Trust, thirty passes with dropout, and two models on one sentence (the model and itself).
"""

from __future__ import annotations

from attention_atlas.model.analysis.model_comparison import compare_models
from attention_atlas.model.program import CommandLine, integer, parse_args, run_program
from attention_atlas.model.serve.device import share_cores
from attention_atlas.model.translator import Translator
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.verify import trust
from attention_atlas.viz.server import options
from bench.common import Row, compare_with_bar, median_seconds, print_rows, write_json

TEXT = {"de": "Eine Frau liest ihrem Kind abends ein Buch vor.", "en": "A woman reads her child a book every evening."}
BARS = {"line": 0.03, "panel": 0.3, "dropout": 1.5, "two models": 0.4}  # seconds


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.trust", __doc__)
    parser.add_checkpoint()
    parser.add_argument("--runs", type=integer(), default=9, help="default 9")
    parser.add_json("also write the report there")
    args = parse_args(parser, argv)
    share_cores(options.parse([]).concurrency)  # as the app does
    translator = Translator.load(args.checkpoint, args.device)
    trace = translator.translate(TEXT[translator.directions[0][:2]])
    works = {
        "line": lambda: Scene(trace, made_by=translator).reading,
        "panel": lambda: list(trust.trust(Scene(trace, made_by=translator), 0)),
        "dropout": lambda: list(trust.trust(Scene(trace, made_by=translator), trust.PASSES)),
        "two models": lambda: compare_models((translator, trace), (translator, trace)),
    }
    rows: list[Row] = [{"model": translator.name, "tokens": [len(trace.source_ids), len(trace.target_ids)]}]
    rows += [compare_with_bar(name, median_seconds(work, args.runs), BARS[name]) for name, work in works.items()]
    write_json(args.json, print_rows(rows))


if __name__ == "__main__":
    run_program(main)
