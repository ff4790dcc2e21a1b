"""Measure the parts of a translation, a start and the page's panels: python -m bench.parts --help

Torch has one thread, as in the app for small models. Parts are measured in processor time, the least of several runs,
next to the time in which the part's floating-point operations can be done and its weights be read, at the speeds of a
matrix product and of a sum in the same run. Panels are measured in elapsed time, the median of several openings, so
nothing else may run. Memory is resident after each stage of a start.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from statistics import median

import numpy as np
import torch

from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.model.decode.recorded import RecordedDecode, StepRecorder
from attention_atlas.model.decode.steps import StepDecoder, greedy
from attention_atlas.model.decode.trace_builder import Request, build_trace
from attention_atlas.model.program import CommandLine, integer, parse_args, run_program
from attention_atlas.model.serve.cores import Cores
from attention_atlas.model.serve.device import cores
from attention_atlas.model.trace.storage import to_npz
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translator.tracing import trace_requests
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.panel import Panel, Text
from attention_atlas.viz.panels.scene import Scene
from bench.common import NO_END, Row, print_rows, run_stages, torch_threads, write_json
from bench.made.captions import source_texts
from bench.why import count_flops, inputs, matrix_speed

SENTENCES = 64


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.parts", __doc__)
    parser.add_checkpoint()
    parser.add_argument("--sections", nargs="+", choices=tuple(SECTIONS), default=list(SECTIONS), help="default: all")
    parser.add_argument("--panels", nargs="+", help="names of those to open, default: all")
    parser.add_argument("--cores", type=integer(), default=cores(), help="that a visitor may have, default: all")
    parser.add_argument("--lengths", type=int, nargs="+", default=[8, 64], help="target tokens, default 8 64")
    parser.add_argument(
        "--runs", type=integer(), default=5, help="of which the least is taken, of panels the median, default 5"
    )
    parser.add_argument("--starts", type=integer(), default=3, help="new processes, default 3")
    parser.add_json("also write the rows as one list")
    args = parse_args(parser, argv)
    with torch_threads(1):
        translator = Translator.load(args.checkpoint, "cpu")
        rows = print_rows(row for section in args.sections for row in SECTIONS[section](translator, args))
    write_json(args.json, rows)


def with_maps(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Measure the parts of bench.speed.translate_with_maps: one sentence to a forced length with every map."""
    model = translator.model
    (text,) = source_texts(translator, 1)
    request = translator._request(text, None, translator.changes)
    source = torch.tensor([request.source_ids])
    speed, bandwidth = matrix_speed(translator.config.d_model), reading_speed(model.step_numbers)
    encoder_bytes = sum(weight.nbytes for weight in model.encoder.parameters())
    for length in args.lengths:
        step_numbers = length * model.step_numbers
        # bytes of weights that are read, and floating-point operations that torch does not count
        costs = {"encoder": (encoder_bytes, 0.0), "steps": (4 * step_numbers, 2.0 * step_numbers)}
        for part, work in translation_parts(translator, request, source, length).items():
            bytes_read, uncounted = costs.get(part, (0, 0.0))
            yield {
                "one sentence with maps, target tokens": length,
                "part": part,
                "milliseconds": least_milliseconds(work, args.runs),
                "bound_milliseconds": round(
                    1e3 * max((count_flops(work) + uncounted) / speed, bytes_read / bandwidth), 3
                ),
            }


def translation_parts(
    translator: Translator, request: Request, source: torch.Tensor, length: int
) -> dict[str, Callable[[], object]]:
    model, tokenizer = translator.model, translator.tokenizer
    ends = {"begin_id": tokenizer.begin_id, "end_id": NO_END}
    with torch.inference_mode():
        memory = model.encode(source, record=True)
        recorder = StepRecorder(maps=True)
        (ids,) = greedy(model, memory, [length], recorder=recorder, **ends)
        decoder = StepDecoder(model, memory, source.new_tensor([[tokenizer.begin_id]]))

    def collect() -> None:
        collector = StepRecorder(maps=False)
        for token in ids:
            collector.add([0], decoder, source.new_tensor([token]))
        collector.distributions()

    def trace() -> object:
        steps = recorder.distributions().split([length])
        recorded = RecordedDecode(recorder.maps(model, memory, translator.changes), steps)
        origin = {"seconds": 0.0, "device": "cpu", "checkpoint": "", "digest": ""}
        return build_trace(recorded, tokenizer, 0, request, ids, **origin)

    return {
        "encoder": lambda: model.encode(source, record=True),
        "steps": lambda: greedy(model, memory, [length], **ends),
        "what each step chose by": collect,
        "maps and trace": trace,
    }


def why(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Measure each method on the last of 16 + 16 tokens, after the recorded pass."""
    case, _ = inputs(translator.model)
    speed = matrix_speed(translator.config.d_model)
    works = {"the recorded pass": lambda: replace(case).output}
    works |= {str(method.slug): partial(method, case) for method in METHODS.values()}
    for name, work in works.items():
        bound = round(1e3 * count_flops(work) / speed, 3)
        yield {"why": name, "milliseconds": least_milliseconds(work, args.runs), "bound_milliseconds": bound}


def many(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Measure captions with all maps, one by one, in batches, and written to NPZ: milliseconds per sentence."""
    sentences = source_texts(translator, SENTENCES)
    sample = sentences[:: SENTENCES // 8]
    traces = translator.trace_batch(sample)
    requests = [translator._request(text, None, translator.changes) for text in sample]
    works = {
        "one by one": (lambda: [trace_requests(translator, [request]) for request in requests], len(sample)),
        "in batches": (lambda: list(translator.traces(sentences)), SENTENCES),
        "to NPZ": (lambda: [to_npz(trace) for trace in traces], len(sample)),
    }
    for name, (work, count) in works.items():
        yield {
            "captions with maps": name,
            "milliseconds a sentence": round(least_milliseconds(work, args.runs) / count, 3),
        }


def start(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Measure a new process up to its first translation, stage by stage, without and with the app's imports."""
    (text,) = source_texts(translator, 1)
    torch_stages = {"Python": "import time", "importing torch": "import torch; torch.set_num_threads(1)"}
    app_stages = {"importing gradio": "import gradio", "importing the app": "import app"}
    stages = {
        "importing the rest": "from attention_atlas.model.translator import Translator",
        "loading a checkpoint": f"translator = Translator.load({str(args.checkpoint.resolve())!r}, 'cpu')",
        "the first translation": f"translator.translate({text!r})",
    }
    readings = "time.thread_time(), open('/proc/self/statm').read().split()[1]"  # seconds, pages of 4 KiB
    for name, lines in (("the library", torch_stages | stages), ("the app", torch_stages | app_stages | stages)):
        runs = run_stages(lines.values(), readings, args.starts)
        seconds = np.diff(runs[..., 0], prepend=0.0).min(axis=0)
        for stage, spent, pages in zip(lines, seconds, runs[0, :, 1]):
            row = {"start of": name, "stage": stage, "milliseconds": round(1e3 * spent, 1)}
            yield {**row, "megabytes then": round(pages * 4096 / 1e6)}


def panels(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Measure each panel on one caption as it opens, to its first part and to all of it."""
    (text,) = source_texts(translator, 1)
    speed, served = matrix_speed(translator.config.d_model), Translators([translator])
    shared = Cores(args.cores)
    shared.number = 1  # the visitor is alone

    def open_panel(panel: Panel, trace: TranslationTrace) -> tuple[float, float]:
        """Return the seconds to the first part and to the last."""
        scene, began, ends = Scene(trace, made_by=translator, served=served), time.perf_counter(), []
        values = [
            control.known(trace, translator) if isinstance(control, Text) and control.known else control.start
            for control in panel.controls
        ]
        content = [] if panel.unmet_needs(scene) else panel.content(scene, *values)
        for _ in [content] if isinstance(content, list) else content:
            ends.append(time.perf_counter() - began)
        return ends[0], ends[-1]

    def open_on_new_trace(panel: Panel) -> tuple[float, float]:
        trace = translator.translate(text)  # nothing is cached for it
        with shared.share():
            return open_panel(panel, trace)

    for panel in chain(*registry.PANELS.values()):
        if args.panels and panel.name not in args.panels:
            continue
        open_on_new_trace(panel)  # warms up
        first, whole = zip(*(open_on_new_trace(panel) for _ in range(args.runs)))
        flops = count_flops(partial(open_panel, panel, translator.translate(text)), inference=False)
        yield {
            "panel": panel.name,
            "first part, milliseconds": round(1e3 * median(first), 3),
            "milliseconds": round(1e3 * median(whole), 3),
            "bound_milliseconds": round(1e3 * flops / speed, 3),
        }


SECTIONS = {"maps": with_maps, "why": why, "npz": many, "start": start, "panels": panels}


def least_milliseconds(work: Callable[[], object], runs: int) -> float:
    """Return the least processor time of this thread in several runs, after one to warm up."""
    times = []
    with torch.inference_mode():
        for _ in range(runs + 1):
            began = time.thread_time()
            work()
            times.append(time.thread_time() - began)
    return round(1e3 * min(times[1:]), 3)


def reading_speed(count: int) -> float:
    """Return the bytes per second that a sum of `count` numbers reads."""
    numbers = torch.ones(count)
    return numbers.nbytes / (least_milliseconds(numbers.sum, 5) / 1e3)


if __name__ == "__main__":
    run_program(main)
