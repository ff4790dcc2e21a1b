"""Where the time goes that bars are set for: python -m bench.parts --help

Torch has one thread, as in the app that serves small models. Parts: processor time, the least of several runs, which
what else the machine does concerns little; beside it the time in which the part's floating-point operations can be done
and its weights be read, at the speeds of a matrix product and of a sum that were measured in the same run. Panels:
the time that passes, which is what a visitor waits; the median of several openings, so nothing else may run. Memory is
what is resident after each stage of the app's start.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from attention_atlas.model.analysis.why.methods import METHODS
from attention_atlas.model.decode.distributions import DistributionCollector
from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.decode.recorded import RecordedDecode, StepRecorder
from attention_atlas.model.decode.trace_builder import Request, TraceBuilder
from attention_atlas.model.program import add_checkpoint, add_json, command_line, integer, parse_args, program
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
from bench.made.captions import texts
from bench.speed import NO_END
from bench.why import inputs, matrix_speed

Row = dict[str, object]
ROOT = Path(__file__).resolve().parents[1]
SENTENCES = 64
# Torch counts the products of its kernels for attention on a GPU only, and none of packed matrices; of shapes, and of
# what else they are given.
ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
UNCOUNTED = {
    ATTENTION: lambda *shapes, **_: sdpa_flop_count(*shapes[:3]),
    torch.ops.quantized.linear_dynamic_fp16: lambda x, packed, *, out_shape, **_: 2 * math.prod(out_shape) * x[-1],
}
# Run in a process of its own: after each line, the processor time of its thread and the resident memory.
START = """
import time
def told(what):
    pages = int(open("/proc/self/statm").read().split()[1])
    print(what, 1e3 * time.thread_time(), pages * 4096 / 1e6, sep="\\t")
told("Python")
import torch; torch.set_num_threads(1); told("importing torch")
{middle}
translator = Translator.load({folder!r}, "cpu"); told("loading a checkpoint")
trace_requests(translator, [translator._request({text!r}, None, NO_INTERVENTIONS)]); told("the first translation")
"""
IMPORTS = """
{before}
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.translator import Translator
from attention_atlas.model.translator.tracing import trace_requests
told("importing the rest")
"""
GRADIO = 'import gradio; told("importing gradio")\nimport app; told("importing the app")'


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        translator = Translator.load(args.checkpoint, "cpu")
        rows = [row for section in args.sections for row in SECTIONS[section](translator, args)]
    finally:
        torch.set_num_threads(before)
    print("\n".join(map(json.dumps, rows)))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def with_maps(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """One sentence to a forced length with every map: bench.speed.translate_with_maps, part by part."""
    model = translator.model
    (text,) = texts(1, parse_direction(translator.directions[0])[0])
    request = translator._request(text, None, translator.changes)
    source = torch.tensor([request.source_ids])
    speed, bandwidth = matrix_speed(translator.config.d_model), reading_speed(model.step_numbers)
    encoder = sum(weight.nbytes for weight in model.encoder.parameters())
    for length in args.lengths:
        for part, work, bytes_read, more in _parts(translator, request, source, length):
            flops = counted(work) + more
            read = encoder if bytes_read == "encoder" else bytes_read
            yield {
                "one sentence with maps, target tokens": length,
                "part": part,
                "milliseconds": least(work, args.runs),
                "bound_milliseconds": round(1e3 * max(flops / speed, read / bandwidth), 3),
            }


def _parts(
    translator: Translator, request: Request, source: torch.Tensor, length: int
) -> Iterator[tuple[str, Callable[[], object], int | str, float]]:
    """What is done, how many bytes of weights it reads, and floating-point operations that torch does not count."""
    model, tokenizer = translator.model, translator.tokenizer
    ends = {"begin_id": tokenizer.begin_id, "end_id": NO_END}
    with torch.inference_mode():
        memory = model.encode(source, record=True)
        recorder = StepRecorder(1, maps=True)
        (ids,) = greedy(model, memory, [length], recorder=recorder, **ends)
        waiting = list(recorder.distributions._waiting)
        chosen = recorder.distributions.by_sentence()

    def choices() -> None:
        again = DistributionCollector(1)
        for step in waiting:
            again.add(*step)
        again.by_sentence()

    def trace() -> object:
        recorded = RecordedDecode(recorder.maps(model, memory, translator.changes), chosen)
        return TraceBuilder(recorded, tokenizer, seconds=0.0, device="cpu", checkpoint="", digest="")(0, request, ids)

    step = length * model.step_numbers
    yield "encoder", lambda: model.encode(source, record=True), "encoder", 0.0
    yield "steps", lambda: greedy(model, memory, [length], **ends), 4 * step, 2.0 * step
    yield "what each step chose by", choices, 0, 0.0
    yield "maps and trace", trace, 0, 0.0


def why(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Each method about the last of 16 + 16 tokens, from the recorded pass on."""
    case, _ = inputs(translator.model)
    speed = matrix_speed(translator.config.d_model)
    yield _of_method("the recorded pass", lambda: replace(case).output, speed, args.runs)
    for method in METHODS.values():
        yield _of_method(str(method.slug), lambda method=method: method(case), speed, args.runs)


def _of_method(name: str, work: Callable[[], object], speed: float, runs: int) -> Row:
    return {
        "why": name,
        "milliseconds": least(work, runs),
        "bound_milliseconds": round(1e3 * counted(work) / speed, 3),
    }


def many(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Captions with all maps to NPZ, milliseconds a sentence: one by one, and in batches of the same."""
    sentences = texts(SENTENCES, parse_direction(translator.directions[0])[0])
    some = sentences[:: SENTENCES // 8]
    traces = translator.trace_batch(some)
    requests = [translator._request(text, None, translator.changes) for text in some]
    works = {
        "one by one": (lambda: [trace_requests(translator, [request]) for request in requests], len(some)),
        "in batches": (lambda: list(translator.traces(sentences)), SENTENCES),
        "to NPZ": (lambda: [to_npz(trace) for trace in traces], len(some)),
    }
    for name, (work, count) in works.items():
        yield {"captions with maps": name, "milliseconds a sentence": round(least(work, args.runs) / count, 3)}


def start(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """From a new process to the first translation; then the same with the app's imports."""
    folder, (text,) = str(args.checkpoint.resolve()), texts(1, parse_direction(translator.directions[0])[0])
    for who, before in (("the library", ""), ("the app", GRADIO)):
        program = START.format(middle=IMPORTS.format(before=before), folder=folder, text=text)
        command = [sys.executable, "-c", program]
        runs = [
            [line.split("\t") for line in subprocess.check_output(command, cwd=ROOT, text=True).splitlines()]
            for _ in range(args.starts)
        ]
        for number, (what, *_) in enumerate(runs[0]):
            spent = [float(run[number][1]) - (float(run[number - 1][1]) if number else 0.0) for run in runs]
            yield {
                "start of": who,
                "stage": what,
                "milliseconds": round(min(spent), 1),
                "megabytes then": round(float(runs[0][number][2])),
            }


def panels(translator: Translator, args: argparse.Namespace) -> Iterator[Row]:
    """Each panel of the page on one caption, as it opens: to the first that it shows, and to all of it."""
    (text,) = texts(1, parse_direction(translator.directions[0])[0])
    speed, served = matrix_speed(translator.config.d_model), Translators([translator])
    alone = Cores(args.cores)
    alone.number = 1
    for panel in chain(*registry.PANELS.values()):
        if args.panels and panel.name not in args.panels:
            continue

        def opened(trace: TranslationTrace, panel: Panel = panel) -> tuple[float, float]:
            """Seconds to the first part, and to the last."""
            scene, began, ends = Scene(trace, made_by=translator, served=served), time.perf_counter(), []
            given = [
                one.known(trace, translator) if isinstance(one, Text) and one.known else one.start
                for one in panel.controls
            ]
            found = [] if panel.unmet_needs(scene) else panel.content(scene, *given)
            for _ in [found] if isinstance(found, list) else found:
                ends.append(time.perf_counter() - began)
            return ends[0], ends[-1]

        def seconds() -> tuple[float, float]:
            """Of a new translation, of which nothing is kept yet, by a visitor who is alone."""
            trace = translator.translate(text)
            with alone.share():
                return opened(trace)

        seconds()
        first, whole = zip(*(seconds() for _ in range(args.runs)))
        flops = counted(partial(opened, translator.translate(text)), inference=False)
        yield {
            "panel": panel.name,
            "first part, milliseconds": round(1e3 * median(first), 3),
            "milliseconds": round(1e3 * median(whole), 3),
            "bound_milliseconds": round(1e3 * flops / speed, 3),
        }


SECTIONS = {"maps": with_maps, "why": why, "npz": many, "start": start, "panels": panels}


def least(work: Callable[[], object], runs: int) -> float:
    """Milliseconds of processor time that this thread needs for it, after a run that does not count."""
    found = []
    with torch.inference_mode():
        work()
        for _ in range(runs):
            began = time.thread_time()
            work()
            found.append(time.thread_time() - began)
    return round(1e3 * min(found), 3)


def counted(work: Callable[[], object], *, inference: bool = True) -> float:
    """Floating-point operations of its products, those of an embedding bag left out. inference: False for what
    switches that on by itself."""
    with FlopCounterMode(display=False, custom_mapping=UNCOUNTED) as found, torch.inference_mode(inference):
        work()
    return found.get_total_flops()


def reading_speed(count: int) -> float:
    """Bytes a second that a sum of so many numbers reads, from wherever they lie."""
    numbers = torch.ones(count)
    return numbers.nbytes / (least(numbers.sum, 5) / 1e3)


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
    program(main)
