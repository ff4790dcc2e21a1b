"""A model opened in this process, and its first translation: python -m bench.made.opened FOLDER TEXT

Prints JSON: seconds of the parts, and the memory that is no file's. Random weights never end a sentence; --tokens gives
a translation's greatest length, and a real one is about as long as its source.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from attention_atlas.model.program import command_line, program
from attention_atlas.model.serve.limits import BatchLimits
from attention_atlas.model.translator import Translator, tracing


def main(argv: list[str] | None = None) -> None:
    parser = command_line("python -m bench.made.opened", __doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text")
    parser.add_argument("--tokens", type=int, help="of the translation at most; default: as the model has it")
    args = parser.parse_args(argv)
    # Of max_tokens a side, a translation may have one less: its begin is no part of it.
    limits = BatchLimits() if args.tokens is None else BatchLimits(tokens=args.tokens + 1)
    print(json.dumps(opened(args.folder, args.text, limits)))


def opened(folder: Path, text: str, limits: BatchLimits) -> dict[str, float]:
    """Seconds until the model is there (open), in the encoder, in all steps, in the pass that gives the maps, in all
    (first); megabytes that are no file's; tokens of both sides."""
    before, most, loaded = anonymous(), 0, threading.Event()

    def watch() -> None:
        # Only while it is opened, when most is held: on two cores a step takes a quarter longer beside a third thread.
        nonlocal most
        while not loaded.wait(0.002):
            most = max(most, anonymous())

    threading.Thread(target=watch, daemon=True).start()
    started = time.monotonic()
    translator = Translator.load(folder, "cpu", limits=limits)
    there = time.monotonic()
    loaded.set()
    spans: dict[str, tuple[float, float]] = {}
    translator.model.encode = timed(translator.model.encode, "encode", spans)
    tracing.decode_and_record = timed(tracing.decode_and_record, "decode", spans)
    trace = translator.translate(text)
    end = time.monotonic()
    return {
        "open": there - started,
        "encoder": spans["encode"][1] - spans["encode"][0],
        "steps": spans["decode"][1] - spans["encode"][1],
        "maps": end - spans["decode"][1],
        "first": end - started,
        "memory": (max(most, anonymous()) - before) / 1000,
        "weights": translator.weight_bytes / 1e6,
        "source": len(trace.source_ids),
        "target": len(trace.target_ids),
    }


def timed(work: Callable, name: str, spans: dict[str, tuple[float, float]]) -> Callable:
    """The same, which leaves when it began and ended."""

    def watched(*arguments, **options):
        began = time.monotonic()
        found = work(*arguments, **options)
        spans[name] = began, time.monotonic()
        return found

    return watched


def anonymous() -> int:
    """Kilobytes of this process that are no file's."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


if __name__ == "__main__":
    program(main)
