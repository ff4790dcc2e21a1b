"""Measure speed and memory: python -m bench.speed --help

Figures are medians over repeated runs of one process. Times are comparable within a run; between machines, compare the
ratios.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.decode.recorded import greedy_with_records
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.decode.trace_builder import Request, build_trace
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import CommandLine, integer, parse_args, run_program
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.train import Trainer
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.translator import Translator
from bench.common import (
    NO_END,
    Measurement,
    median_seconds,
    run_stages,
    table,
    take_turns,
    timed,
    torch_threads,
    write_json,
)
from bench.made.captions import encode_examples, source_texts, texts

LENGTHS = (8, 16, 32, 64)  # target tokens


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.speed", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    add("--threads", type=integer(), default=2, help="of torch on the CPU, default 2")
    add("--lengths", type=int, nargs="+", default=list(LENGTHS), help="target tokens, default 8 16 32 64")
    add("--repeats", type=integer(), default=9, help="of each decode, default 9")
    add("--sentences", type=integer(), default=256, help="of the batch, default 256")
    add("--updates", type=integer(), default=5, help="of training, default 5")
    add("--starts", type=integer(), default=3, help="new processes, default 3")
    parser.add_json()
    args = parse_args(parser, argv)
    with torch_threads(args.threads):
        measurements = measure(Translator.load(args.checkpoint, args.device), args)
    print(table(measurements))
    write_json(args.json, measurements)


def measure(translator: Translator, args: argparse.Namespace) -> list[Measurement]:
    """Return all measurements of the report."""
    measurements = decoding(translator, args.lengths, args.repeats)
    times = {m.name: m.value for m in measurements}
    for n in args.lengths:
        maps, cached, naive = (times[f"{name}_{n}"] for name in ("translate_maps", "decode_cached", "decode_naive"))
        measurements.append(Measurement(f"cached_speedup_{n}", naive / cached, "x"))
        measurements.append(Measurement(f"maps_overhead_{n}", 100 * (maps / cached - 1), "%"))
    measurements.append(batch_translation(translator, args.sentences))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of translating, before training takes more
    mebibytes = largest / (2**20 if sys.platform == "darwin" else 2**10)
    measurements.append(Measurement("peak_memory", mebibytes, "MiB"))
    measurements.append(training(translator, args.updates))
    return [*measurements, *startup(args.checkpoint, args.device, args.starts)]


def decoding(translator: Translator, lengths: list[int], repeats: int) -> list[Measurement]:
    """Measure the milliseconds to a forced number of target tokens, one sentence at a time.

    With every attention map; with the cache and without maps; and without the cache.
    """
    (text,) = source_texts(translator, 1)
    request = Request(text, tuple(translator.encode(text)), translator.directions[0], NO_INTERVENTIONS)
    source = [list(request.source_ids)]
    measurements = []
    for length in lengths:
        works: dict[str, Callable[[], object]] = {
            "translate_maps": lambda n=length: translate_with_maps(translator, [request], n),
            "decode_cached": lambda n=length: decode_cached(translator, source, n),
            "decode_naive": lambda n=length: decode_naive(translator, request.source_ids, n),
        }
        times = take_turns(works, repeats, translator.device)
        measurements += [Measurement(f"{name}_{length}", 1e3 * seconds, "ms") for name, seconds in times.items()]
    return measurements


@torch.inference_mode()
def decode_cached(translator: Translator, sources: Sequence[list[int]], length: int) -> list[list[int]]:
    """Decode `length` greedy tokens for each source with the key/value cache, as the app does."""
    memory = translator.model.encode(pad(sources, translator.tokenizer.pad_id).to(translator.device))
    return greedy(
        translator.model, memory, [length] * len(sources), begin_id=translator.tokenizer.begin_id, end_id=NO_END
    )


@torch.inference_mode()
def decode_naive(translator: Translator, source_ids: tuple[int, ...], length: int) -> list[int]:
    """Decode the same tokens, running the whole decoder over the whole prefix at each step.

    Keys and values of the source are computed again, too. The encoder runs once and only the last row is projected, as
    in greedy_decode of The Annotated Transformer.
    """
    model: Transformer = translator.model
    memory = model.encode(torch.tensor([source_ids], device=translator.device))
    prefix = torch.tensor([[translator.tokenizer.begin_id]], device=translator.device)
    for _ in range(length):
        hidden, _ = model.decode(prefix, SourceMemory(memory.memory, memory.mask))
        best: Tensor = model.project(hidden[:, -1]).argmax(-1)
        prefix = torch.cat((prefix, best[:, None]), dim=1)
    return prefix[0, 1:].tolist()


@torch.inference_mode()
def translate_with_maps(translator: Translator, requests: Sequence[Request], length: int) -> list[TranslationTrace]:
    """Do what Translator.trace_batch does, to a forced length: decode, record one pass, and build the traces."""
    started, tokenizer = time.perf_counter(), translator.tokenizer
    sources = pad([list(request.source_ids) for request in requests], tokenizer.pad_id).to(translator.device)
    memory = translator.model.encode(sources, record=True)
    targets, recorded = greedy_with_records(
        translator.model, memory, [length] * len(requests), begin_id=tokenizer.begin_id, end_id=NO_END
    )
    build = partial(
        build_trace,
        recorded,
        tokenizer,
        seconds=time.perf_counter() - started,
        device=str(translator.device),
        checkpoint=translator.name,
        digest=translator.digest,
    )
    return [build(row, request, targets[row]) for row, request in enumerate(requests)]


def batch_translation(translator: Translator, count: int) -> Measurement:
    """Measure the captions per second of greedy decoding in batches of 64."""
    many = source_texts(translator, count)
    seconds = median_seconds(lambda: translator.translate_batch(many), 3, translator.device)
    return Measurement("batch_translations_per_second", count / seconds, "1/s")


def training(translator: Translator, updates: int) -> Measurement:
    """Measure the target tokens per second of training a copy of the model, in updates of about 1,000 tokens."""
    examples = encode_examples(translator, 100)
    config = TrainConfig(max_updates=1000, cooldown_updates=0, tokens_per_batch=1000)
    trainer = Trainer(config, Transformer(translator.config), translator.tokenizer, examples, translator.device)
    trainer.model.train()
    trainer.step()  # warms up
    before = trainer.state.tokens
    seconds = timed(lambda: [trainer.step() for _ in range(updates)], translator.device)
    return Measurement("train_tokens_per_second", (trainer.state.tokens - before) / seconds, "1/s")


def startup(checkpoint: Path, device: str | None, starts: int) -> list[Measurement]:
    """Measure the seconds from a process's start to its first translation with all maps, and those of each stage."""
    stages = {
        "startup_python": "import time",
        "startup_import_torch": "import torch",
        "startup_import_rest": "from attention_atlas.model.translator import Translator",
        "startup_load": f"translator = Translator.load({str(checkpoint.resolve())!r}, {device!r})",
        "startup_translate": f"translator.translate({texts(1, 'de')[0]!r})",
    }
    times = run_stages(stages.values(), "time.monotonic() - started", starts)[..., 0]
    seconds = np.median(np.diff(times, prepend=0.0), axis=0)
    return [
        Measurement("startup", float(np.median(times[:, -1])), "s"),
        *(Measurement(name, float(value), "s") for name, value in zip(stages, seconds)),
    ]


if __name__ == "__main__":
    run_program(main)
