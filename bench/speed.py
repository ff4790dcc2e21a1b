"""Measure speed and memory: python -m bench.speed --help

Figures are medians over repeated runs of one process. Times are comparable within a run; between machines, compare the
ratios.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

import torch
from torch import Tensor

from attention_atlas.model.decode.greedy import greedy
from attention_atlas.model.decode.recorded import greedy_with_records
from attention_atlas.model.decode.trace_builder import Request, TraceBuilder
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.program import add_checkpoint, add_json, command_line, integer, parse_args, run_program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.train import Trainer
from attention_atlas.model.training.batches import Examples
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.translator import Translator
from bench.common import NO_END, ROOT, Measurement, table, take_turns, timed, torch_threads, write_json

LENGTHS = (8, 16, 32, 64)  # target tokens
SENTENCES = {
    "de": (
        "Der kleine Hund schläft unter dem großen Tisch.",
        "Meine Schwester malt heute ein rotes Boot.",
        "Zwei Kinder bauen am Strand eine Burg aus Sand.",
        "Wann fährt der nächste Zug nach Hamburg ab?",
    ),
    "en": (
        "The small dog sleeps under the big table.",
        "Today my sister is painting a red boat.",
        "Two children build a castle of sand on the beach.",
        "When does the next train to Hamburg leave?",
    ),
    "fr": (
        "Le petit chien dort sous la grande table.",
        "Ma sœur peint aujourd'hui un bateau rouge.",
        "Deux enfants construisent un château de sable.",
        "Quand part le prochain train pour Lyon ?",
    ),
}


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    with torch_threads(args.threads):
        measurements = measure(Translator.load(args.checkpoint, args.device), args)
    print(table(measurements))
    write_json(args.json, measurements)


def measure(translator: Translator, args: argparse.Namespace) -> list[Measurement]:
    """Return all measurements of the report."""
    measurements = decoding(translator, args.lengths, args.repeats)
    times = {m.name: m.value for m in measurements}
    for n in args.lengths:
        speedup = times[f"decode_naive_{n}"] / times[f"decode_cached_{n}"]
        measurements.append(Measurement(f"cached_speedup_{n}", speedup, "x"))
    for n in args.lengths:
        overhead = times[f"translate_maps_{n}"] / times[f"decode_cached_{n}"] - 1
        measurements.append(Measurement(f"maps_overhead_{n}", 100 * overhead, "%"))
    measurements.append(batch_translation(translator, args.sentences))
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of translating, before training takes more
    mebibytes = largest / (2**20 if sys.platform == "darwin" else 2**10)
    measurements.append(Measurement("peak_memory", mebibytes, "MiB"))
    measurements.append(training(translator, args.updates))
    return [*measurements, *startup(args)]


def decoding(translator: Translator, lengths: list[int], repeats: int) -> list[Measurement]:
    """Measure the milliseconds to a forced number of target tokens, one sentence at a time.

    With every attention map; with the cache and without maps; and without the cache.
    """
    direction = translator.directions[0]
    text = SENTENCES.get(parse_direction(direction)[0], SENTENCES["en"])
    request = Request(text[0], tuple(translator.encode(" ".join(text[:2]), direction)), direction, NO_INTERVENTIONS)
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
    build = TraceBuilder(
        recorded,
        tokenizer,
        seconds=time.perf_counter() - started,
        device=str(translator.device),
        checkpoint=translator.name,
        digest=translator.digest,
    )
    return [build(row, request, targets[row]) for row, request in enumerate(requests)]


def batch_translation(translator: Translator, count: int) -> Measurement:
    """Measure the sentences per second of greedy decoding in batches of 64."""
    direction = translator.directions[0]
    texts = SENTENCES.get(parse_direction(direction)[0], SENTENCES["en"])
    many = [texts[i % len(texts)] for i in range(count)]
    seconds = [timed(lambda: translator.translate_batch(many, direction), translator.device) for _ in range(3)]
    return Measurement("batch_translations_per_second", count / median(seconds), "1/s")


def training(translator: Translator, updates: int) -> Measurement:
    """Measure the target tokens per second of training a copy of the model, in updates of about 1,000 tokens."""
    source, target = parse_direction(translator.directions[0])
    pairs = [*zip(SENTENCES.get(source, SENTENCES["en"]), SENTENCES.get(target, SENTENCES["en"]))] * 25
    examples = Examples.encode(pairs, translator.tokenizer, target, max_length=translator.config.max_length)
    config = TrainConfig(max_updates=1000, cooldown_updates=0, tokens_per_batch=1000)
    trainer = Trainer(config, Transformer(translator.config), translator.tokenizer, examples, translator.device)
    trainer.model.train()
    trainer.step()
    rates = []
    for _ in range(updates):
        before = trainer.state.tokens
        seconds = timed(trainer.step, translator.device)
        rates.append((trainer.state.tokens - before) / seconds)
    return Measurement("train_tokens_per_second", median(rates), "1/s")


def startup(args: argparse.Namespace) -> list[Measurement]:
    """Measure the seconds from a process's start to its first translation with all maps, and those of each stage."""
    device = "None" if args.device is None else repr(args.device)
    steps = {
        "python": "from time import monotonic",
        "import_torch": "import torch",
        "import_rest": "from attention_atlas.model.translator import Translator",
        "load": f"translator = Translator.load({str(args.checkpoint.resolve())!r}, {device})",
        "translate": f"translator.translate({SENTENCES['de'][0]!r})",
    }
    program = "\n".join(f"{step}\nprint(monotonic())" for step in steps.values())
    starts = []
    for _ in range(args.starts):
        started = time.monotonic()  # a clock that all processes share
        done = subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        starts.append([started, *map(float, done.stdout.split())])
    return [Measurement("startup", median(times[-1] - times[0] for times in starts), "s")] + [
        Measurement(f"startup_{name}", median(times[i + 1] - times[i] for times in starts), "s")
        for i, name in enumerate(steps)
    ]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.speed", __doc__)
    add = parser.add_argument
    add_checkpoint(parser)
    add("--threads", type=integer(), default=2, help="of torch on the CPU, default 2")
    add("--lengths", type=int, nargs="+", default=list(LENGTHS), help="target tokens, default 8 16 32 64")
    add("--repeats", type=integer(), default=9, help="of each decode, default 9")
    add("--sentences", type=integer(), default=256, help="of the batch, default 256")
    add("--updates", type=integer(), default=5, help="of training, default 5")
    add("--starts", type=integer(), default=3, help="new processes, default 3")
    add_json(parser)
    return parse_args(parser, argv)


if __name__ == "__main__":
    run_program(main)
