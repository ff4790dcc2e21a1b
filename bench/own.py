"""Measure random weights at the sizes of published models: python -m bench.own --help

    step      one decoding step compared with the time to read its weights, and a translation with every map compared
              with transformers' MarianMTModel with eager attention at its better number of threads
    opening   a folder as on the Hub, an old pickle, and a converted folder: seconds to the first translation, in all
              and by part, and anonymous memory. Random weights never end a sentence, so the translation gets as many
              tokens as its source has; `endless` is without that limit
    visitors  50 visitors at once with texts of 400 words, and with texts as long as the model or --tokens allows: the
              app's memory, in all and besides the weights, and its answers

Figures are medians, and ratios hold within one run.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import torch

from attention_atlas.model import processor
from attention_atlas.model.decode.trace_builder import Request
from attention_atlas.model.nets.decoder_step import DecoderStep
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.program import DEFAULT_CHECKPOINT, CommandLine, parse_args, run_program
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.translator import Translator, tracing
from bench import load, speed
from bench.common import ROOT, Measurement, table, take_turns, timed, torch_threads, write_json
from bench.made import peers, shapes

TEXT = "Zwei Kinder bauen am Strand eine Burg aus Sand."
TOKENS, WORDS = 32, 400
UNLIMITED = 1 << 20  # tokens: as many as the model allows
SHIPPED = "shipped"


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    torch.set_num_threads(args.threads)
    measurements = [Measurement("processor", f"{processor.name()}, {args.threads} cores", "")]
    with tempfile.TemporaryDirectory() as folder:
        for shape in args.shapes:
            for section in args.sections:
                if (shape, section) != (SHIPPED, "opening"):
                    rows = SECTIONS[section](shape, Path(folder) / f"{shape}-{section}", args)
                    print(table(rows), flush=True)
                    measurements += rows
                    gc.collect()
    write_json(args.json, measurements)


def step(shape: str, folder: Path, args: argparse.Namespace) -> list[Measurement]:
    """Measure a decoding step and a translation. SHIPPED: the checkpoint of --checkpoint, without a peer."""
    peer = None if shape == SHIPPED else shapes.random_model(shape)
    folder = args.checkpoint if peer is None else shapes.write(peer, folder / "opus-mt-de-en")
    translator = Translator.load(folder, "cpu")
    request = Request(TEXT, tuple(translator.encode(TEXT)), translator.directions[0])
    source = torch.tensor([request.source_ids])
    read = weights_read(translator)
    buffer = torch.ones(read // 4)
    with torch.inference_mode():
        memory, decoder_step = translator.model.encode(source), DecoderStep(translator.model)
    seconds = take_turns(
        {"step": partial(take_steps, translator, memory, decoder_step), "reading": partial(torch.sum, buffer)},
        args.repeats,
    )
    each = seconds["step"] / TOKENS
    measurements = [
        Measurement(f"{shape}_weights_read", read / 1e6, "MB"),
        Measurement(f"{shape}_step", 1e3 * each, "ms"),
        Measurement(f"{shape}_bandwidth", read / seconds["reading"] / 1e9, "GB/s"),
        Measurement(f"{shape}_step_by_roofline", each / seconds["reading"], "x"),
    ]
    del buffer
    works = {"ours": partial(speed.translate_with_maps, translator, [request], TOKENS)}
    if peer is None:
        milliseconds = 1e3 * take_turns(works, args.repeats)["ours"]
        return [*measurements, Measurement(f"{shape}_translate_maps", milliseconds, "ms")]
    for threads in range(1, args.threads + 1):
        works[f"theirs_{threads}"] = partial(generate, peer, source, threads)
    seconds = take_turns(works, args.repeats)
    best = min(value for name, value in seconds.items() if name != "ours")
    return [
        *measurements,
        *(Measurement(f"{shape}_translate_maps_{name}", 1e3 * value, "ms") for name, value in seconds.items()),
        Measurement(f"{shape}_translate_maps_ratio", best / seconds["ours"], "x"),
    ]


def weights_read(translator: Translator) -> int:
    """Return the bytes of weights that a step reads: the decoder's and the output matrix.

    The projections to keys and values of the source run once, and of the target's embedding a step reads one row.
    """
    model = translator.model
    of_source = [layer.cross_attention.projection for layer in model.decoder.layers]  # queries, keys, values
    once = sum(parameter.nbytes * 2 // 3 for projection in of_source for parameter in projection.parameters())
    bias = 0 if model.output_bias is None else model.output_bias.nbytes
    return sum(p.nbytes for p in model.decoder.parameters()) - once + model.output_matrix.nbytes + bias


@torch.inference_mode()
def take_steps(translator: Translator, memory: SourceMemory, decoder_step: DecoderStep) -> None:
    """Take the cached step and choose the next token, TOKENS times; encoding and building the step are not included."""
    cache, ids = translator.model.new_cache(), torch.tensor([translator.tokenizer.begin_id])
    for _ in range(TOKENS):
        ids = torch.from_numpy(decoder_step(ids, memory, cache).numpy().argmax(-1))


def generate(peer, source: torch.Tensor, threads: int) -> None:
    """Decode TOKENS greedy tokens with every map on `threads` threads."""
    with torch_threads(threads):
        peers.generate(peer, source, torch.ones_like(source), TOKENS, maps=True)


def opening(shape: str, folder: Path, args: argparse.Namespace) -> list[Measurement]:
    """Measure new processes up to their first translation. The files were just written, so they are cached."""
    peer = shapes.random_model(shape)
    folders = {
        "converted": folder / "converted",
        "direct": shapes.write(peer, folder / "opus-mt-de-en"),
        "old_pickle": shapes.write(peer, folder / "pickled" / "opus-mt-de-en", pickled=True),
    }
    del peer
    gc.collect()
    seconds = timed(partial(convert, folders["direct"], folders["converted"]))
    measurements = [Measurement(f"{shape}_conversion", seconds, "s")]
    endless = median_of_starts(folders["converted"], 1)
    for name, path in folders.items():
        parts = median_of_starts(path, args.starts, tokens=int(endless["source"]))
        measurements += [
            Measurement(f"{shape}_{name}_opening_to_first_translation", parts["first"], "s"),
            Measurement(f"{shape}_{name}_anonymous_memory", parts["memory"], "MB"),
            Measurement(f"{shape}_{name}_anonymous_by_weights", parts["memory"] / parts["weights"], "x"),
        ]
        if name == "converted":
            measurements += [
                Measurement(f"{shape}_of_that_opening", parts["open"], "s"),
                Measurement(f"{shape}_of_that_encoder", parts["encoder"], "s"),
                Measurement(f"{shape}_of_that_steps", parts["steps"], "s"),
                Measurement(f"{shape}_of_that_number_of_steps", parts["target"], "steps"),
                Measurement(f"{shape}_of_that_each_step", 1e3 * parts["steps"] / parts["target"], "ms"),
                Measurement(f"{shape}_of_that_maps_and_trace", parts["maps"], "s"),
                Measurement(f"{shape}_endless_opening_to_first_translation", endless["first"], "s"),
                Measurement(f"{shape}_endless_number_of_steps", endless["target"], "steps"),
            ]
    return measurements


def convert(source: Path, converted: Path) -> None:
    """Convert a folder in a process of its own."""
    command = [sys.executable, "-m", "attention_atlas.model.convert", str(source), "--out", str(converted)]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


def median_of_starts(folder: Path, starts: int, *, tokens: int = UNLIMITED) -> dict[str, float]:
    """Return the medians of open_and_translate() in new processes. tokens: the limit of the translation."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        runs = list(pool.map(open_and_translate, [folder] * starts, [tokens] * starts))
    return {name: median(run[name] for run in runs) for name in runs[0]}


def open_and_translate(folder: Path, tokens: int) -> dict[str, float]:
    """Open a model in this process and translate TEXT.

    Returns seconds to open it, in the encoder, in all steps, for the maps, and in all (first); anonymous memory and
    weights in megabytes; and the tokens of both sides.
    """
    # A translation may have one token less than max_tokens, as its begin symbol counts.
    limits = BatchLimits() if tokens == UNLIMITED else BatchLimits(tokens=tokens + 1)
    anonymous_memory = partial(load.memory, "self", "RssAnon")
    before, peak, opened = anonymous_memory(), 0.0, threading.Event()

    def watch() -> None:
        # Only while the model is opened, when memory peaks: on two cores a third thread slows a step by a quarter.
        nonlocal peak
        while not opened.wait(0.002):
            peak = max(peak, anonymous_memory())

    threading.Thread(target=watch, daemon=True).start()
    started = time.monotonic()
    translator = Translator.load(folder, "cpu", limits=limits)
    loaded = time.monotonic()
    opened.set()
    spans: dict[str, tuple[float, float]] = {}
    translator.model.encode = record_span(translator.model.encode, "encode", spans)
    tracing.decode_and_record = record_span(tracing.decode_and_record, "decode", spans)
    trace = translator.translate(TEXT)
    end = time.monotonic()
    return {
        "open": loaded - started,
        "encoder": spans["encode"][1] - spans["encode"][0],
        "steps": spans["decode"][1] - spans["encode"][1],
        "maps": end - spans["decode"][1],
        "first": end - started,
        "memory": max(peak, anonymous_memory()) - before,
        "weights": translator.weight_bytes / 1e6,
        "source": len(trace.source_ids),
        "target": len(trace.target_ids),
    }


def record_span(work: Callable, name: str, spans: dict[str, tuple[float, float]]) -> Callable:
    """Return a function that does the same and stores when it began and ended."""

    def recorded(*arguments, **options):
        began = time.monotonic()
        answer = work(*arguments, **options)
        spans[name] = began, time.monotonic()
        return answer

    return recorded


def visitors(shape: str, folder: Path, args: argparse.Namespace) -> list[Measurement]:
    """Measure the app while all visitors ask at once, each in a session of their own.

    The folder is a converted one: of another format, memory would also hold the file.
    """
    model = args.checkpoint
    if shape != SHIPPED:
        model = folder / "converted"
        convert(shapes.write(shapes.random_model(shape), folder / "opus-mt-de-en"), model)
    translator = Translator.load(model, "cpu")
    limit, weights = min(translator.max_tokens, args.tokens), translator.weight_bytes
    texts = {f"{WORDS}_words": " ".join(["Hund"] * WORDS), f"{limit}_tokens": longest_text(translator, limit)}
    del translator
    gc.collect()
    measurements = []
    (folder / "none").mkdir(parents=True)
    with (
        load.running_app(["--checkpoints", str(folder / "none"), "--model", str(model)]) as (port, pid),
        ThreadPoolExecutor(args.visitors) as pool,
    ):
        for name, text in texts.items():
            different = [f"{text}{'.' * (number % 3)}"[:9000] for number in range(args.visitors)]
            outcomes = Counter(pool.map(partial(visit, port), different))
            peak, prefix = load.memory(pid, "VmHWM") / 1000, f"{shape}_visitors_{name}"
            measurements += [
                *(Measurement(f"{prefix}_{key}", n, f"of {args.visitors}") for key, n in sorted(outcomes.items())),
                Measurement(f"{prefix}_peak_memory", peak, "GB"),
                Measurement(f"{prefix}_beside_weights", peak - weights / 1e9, "GB"),
            ]
    return measurements


def longest_text(translator: Translator, limit: int) -> str:
    """Return the longest text of the word Hund that has at most `limit` tokens."""
    words = ["Hund"]
    while len(translator.tokenizer.encode_source(" ".join([*words, "Hund", "..."]), "en", "de")) <= limit:
        words.append("Hund")
    return " ".join(words)


def visit(port: int, text: str) -> str:
    """Visit the page and call the API with the same text; return the call's outcome."""
    caller = load.Caller(port, load.CALL_LIMIT)
    try:
        caller.visit(text)
        answer = caller.call("translate", [text, "", 1])
    except load.ERRORS as error:
        return f"failed, {type(error).__name__}"
    return answer.get("error", answer["status"])


SECTIONS = {"step": step, "opening": opening, "visitors": visitors}


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("python -m bench.own", __doc__)
    add = parser.add_argument
    add("--sections", nargs="+", choices=tuple(SECTIONS), default=["step", "opening"], help="default: step opening")
    add(
        "--shapes",
        nargs="+",
        choices=(*shapes.SHAPES, SHIPPED),
        default=["opus-mt"],
        help="default: opus-mt; the shipped model has no section opening",
    )
    add("--checkpoint", type=Path, default=DEFAULT_CHECKPOINT, help=f"the shipped model, default {DEFAULT_CHECKPOINT}")
    add("--threads", type=int, default=2, help="of torch, default 2")
    add("--repeats", type=int, default=9, help="of each work, default 9")
    add("--starts", type=int, default=3, help="new processes for each folder, default 3")
    add("--tokens", type=int, default=UNLIMITED, help="of the visitors' longer text; default: as many as may be")
    add("--visitors", type=int, default=50, help="at once, default 50")
    parser.add_json()
    args = parse_args(parser, argv)
    if args.shapes == [SHIPPED] and args.sections == ["opening"]:
        parser.error("the shipped model has no section opening")
    return args


if __name__ == "__main__":
    run_program(main)
