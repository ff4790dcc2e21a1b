"""Measure the parts of a translation, a start and the page's panels: python -m bench.parts --help

Torch has one thread, as in the app for small models. Parts are measured in processor time, the least of several runs,
next to the time in which the part's floating-point operations can be done and its weights be read, at the speeds of a
matrix product and of a sum in the same run. Panels are measured in elapsed time, the median of several openings, so
nothing else may run. Memory is resident after each stage of a start.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from statistics import median

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.model.decode.distributions import DistributionCollector
from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.decode.recorded import RecordedDecode, StepRecorder
from attention_atlas.model.decode.trace_builder import Request, TraceBuilder
from attention_atlas.model.program import add_checkpoint, add_json, command_line, integer, parse_args, run_program
from attention_atlas.model.serve.cores import Cores
from attention_atlas.model.serve.device import cores
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.storage import to_npz
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translator.tracing import trace_requests
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.panel import Panel, Text
from attention_atlas.viz.panels.scene import Scene
from bench.common import NO_END, ROOT, Row, print_rows, torch_threads, write_json
from bench.made.captions import texts
from bench.why import inputs, matrix_speed

SENTENCES = 64
# Torch counts attention's products only on a GPU, and no products of packed matrices. Counts by shape.
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
UNCOUNTED = {
    ATTENTION: lambda *shapes, **_: sdpa_flop_count(*shapes[:3]),
    torch.ops.quantized.linear_dynamic_fp16: lambda x, packed, *, out_shape, **_: 2 * math.prod(out_shape) * x[-1],
}
# Runs in a process of its own: after each stage, prints the processor time of its thread and the resident memory.
START = """
import time
def report(stage):
    pages = int(open("/proc/self/statm").read().split()[1])
    print(stage, 1e3 * time.thread_time(), pages * 4096 / 1e6, sep="\\t")
report("Python")
import torch; torch.set_num_threads(1); report("importing torch")
{app}
from attention_atlas.model.translator import Translator
report("importing the rest")
translator = Translator.load({folder!r}, "cpu"); report("loading a checkpoint")
translator.translate({text!r}); report("the first translation")
"""
APP = 'import gradio; report("importing gradio")\nimport app; report("importing the app")'


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    with torch_threads(1):
        translator = Translator.load(args.checkpoint, "cpu")
        rows = print_rows(row for section in args.sections for row in SECTIONS[section](translator, args))
    write_json(args.json, rows)


def with_maps(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Measure the parts of bench.speed.translate_with_maps: one sentence to a forced length with every map."""
    model = translator.model
    (text,) = texts(1, parse_direction(translator.directions[0])[0])
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
        recorder = StepRecorder(1, maps=True)
        (ids,) = greedy(model, memory, [length], recorder=recorder, **ends)
        steps = list(recorder.distributions._waiting)
        distributions = recorder.distributions.by_sentence()

    def collect() -> None:
        collector = DistributionCollector(1)
        for step in steps:
            collector.add(*step)
        collector.by_sentence()

    def trace() -> object:
        recorded = RecordedDecode(recorder.maps(model, memory, translator.changes), distributions)
        return TraceBuilder(recorded, tokenizer, seconds=0.0, device="cpu", checkpoint="", digest="")(0, request, ids)

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
    sentences = texts(SENTENCES, parse_direction(translator.directions[0])[0])
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
    folder, (text,) = str(args.checkpoint.resolve()), texts(1, parse_direction(translator.directions[0])[0])
    for name, imports in (("the library", ""), ("the app", APP)):
        command = [sys.executable, "-c", START.format(app=imports, folder=folder, text=text)]
        runs = [
            [line.split("\t") for line in subprocess.check_output(command, cwd=ROOT, text=True).splitlines()]
            for _ in range(args.starts)
        ]
        for i, (stage, _, megabytes) in enumerate(runs[0]):
            spent = [float(run[i][1]) - (float(run[i - 1][1]) if i else 0.0) for run in runs]
            row = {"start of": name, "stage": stage, "milliseconds": round(min(spent), 1)}
            yield {**row, "megabytes then": round(float(megabytes))}


def panels(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Measure each panel on one caption as it opens, to its first part and to all of it."""
    (text,) = texts(1, parse_direction(translator.directions[0])[0])
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


def count_flops(work: Callable[[], object], *, inference: bool = True) -> float:
    """Return the floating-point operations of the matrix products. inference: False if `work` sets its own mode."""
    with FlopCounterMode(display=False, custom_mapping=UNCOUNTED) as counter, torch.inference_mode(inference):
        work()
    return counter.get_total_flops()


def reading_speed(count: int) -> float:
    """Return the bytes per second that a sum of `count` numbers reads."""
    numbers = torch.ones(count)
    return numbers.nbytes / (least_milliseconds(numbers.sum, 5) / 1e3)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.parts", __doc__)
    add_checkpoint(parser)
    parser.add_argument("--sections", nargs="+", choices=tuple(SECTIONS), default=list(SECTIONS), help="default: all")
    parser.add_argument("--panels", nargs="+", help="names of those to open, default: all")
    parser.add_argument("--cores", type=integer(), default=cores(), help="that a visitor may have, default: all")
    parser.add_argument("--lengths", type=int, nargs="+", default=[8, 64], help="target tokens, default 8 64")
    parser.add_argument(
        "--runs", type=integer(), default=5, help="of which the least is taken, of panels the median, default 5"
    )
    parser.add_argument("--starts", type=integer(), default=3, help="new processes, default 3")
    add_json(parser, "also write the rows as one list")
    return parse_args(parser, argv)


if __name__ == "__main__":
    run_program(main)
