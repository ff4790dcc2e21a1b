"""How long it takes to say how far to trust a translation: python -m bench.trust --help

Medians of repeated runs in one process, with the threads that the app gives a pass, on a sentence of a checkpoint's
examples, beside the bars in seconds: the line under a translation, the panel Trust, thirty passes with dropout, and two
models on one sentence (the model and itself).
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median

from attention_atlas.model.analysis.model_comparison import compare_models
from attention_atlas.model.program import add_checkpoint, add_json, command_line, integer, parse_args, program
from attention_atlas.model.serve.device import share_cores
from attention_atlas.model.translator import Translator
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.panels.verify import trust
from attention_atlas.viz.server import options

TEXT = {"de": "Eine Frau liest ihrem Kind abends ein Buch vor.", "en": "A woman reads her child a book every evening."}
BARS = {"line": 0.03, "panel": 0.3, "dropout": 1.5, "two models": 0.4}  # seconds


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    share_cores(options.parse([]).concurrency)  # as the app does
    translator = Translator.load(args.checkpoint, args.device)
    trace = translator.translate(TEXT[translator.directions[0][:2]])
    works = {
        "line": lambda: Scene(trace, made_by=translator).reading,
        "panel": lambda: list(trust.trust(Scene(trace, made_by=translator), 0)),
        "dropout": lambda: list(trust.trust(Scene(trace, made_by=translator), trust.PASSES)),
        "two models": lambda: compare_models((translator, trace), (translator, trace)),
    }
    rows = [{"model": translator.name, "tokens": [len(trace.source_ids), len(trace.target_ids)]}]
    for name, work in works.items():
        seconds = []
        for _ in range(args.runs + 1):
            started = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - started)
        taken = median(seconds[1:])  # the first one loads what all later ones use
        rows.append({"what": name, "seconds": round(taken, 4), "bar_seconds": BARS[name], "met": taken <= BARS[name]})
    print("\n".join(map(json.dumps, rows)))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.trust", __doc__)
    add_checkpoint(parser)
    parser.add_argument("--runs", type=integer(), default=9, help="default 9")
    add_json(parser, "also write the report there")
    return parse_args(parser, argv)


if __name__ == "__main__":
    program(main)
