"""Measure speed compared with other implementations: python -m bench.compare --help

At the checkpoint's sizes: transformers' MarianMTModel, torch.nn.Transformer with the tutorial's greedy loop (both with
random weights and forced lengths), and CTranslate2 with our weights. Everything compared takes turns in one process;
figures are medians, and ratios hold within one run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from attention_atlas.model.program import DEFAULT_CHECKPOINT, CommandLine, integer, parse_args, run_program

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # transformers builds a model here and must not fetch one

import torch

from attention_atlas.model.decode.trace_builder import Request
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.serve.device import keep_freed_memory
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.train import Trainer
from attention_atlas.model.training.batches import Batch, make_batch, plan_batches
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.translator import Translator
from bench import speed
from bench.common import Measurement, table, take_turns, torch_threads, write_json
from bench.made import growth
from bench.made.captions import encode_examples, source_texts
from bench.made.peers import CTranslate2, Marian, Tutorial
from bench.speed import LENGTHS


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.compare", __doc__)
    add = parser.add_argument
    add("--sections", nargs="+", choices=tuple(SECTIONS), default=list(SECTIONS), help="default: all")
    add("--checkpoint", type=Path, default=DEFAULT_CHECKPOINT, help=f"default {DEFAULT_CHECKPOINT}")
    add("--device", choices=("cpu", "cuda"), help="default: the CPU, then CUDA where there is one")
    add("--threads", type=integer(), default=2, help="of torch and CTranslate2 on the CPU, default 2")
    add("--lengths", type=int, nargs="+", default=list(LENGTHS), help="target tokens with maps, default 8 16 32 64")
    add("--repeats", type=integer(), default=9, help="of each translation with maps, default 9")
    add("--rounds", type=integer(), default=3, help="of the batch, and of each size of the growth, default 3")
    add("--sentences", type=integer(), default=1000, help="captions in the batch, default 1000")
    add("--batch-size", type=integer(), default=64, help="captions translated together, default 64")
    add("--updates", type=integer(), default=9, help="of training, default 9")
    add("--starts", type=integer(), default=5, help="new processes, default 5")
    add("--growth-lengths", type=int, nargs="+", default=list(growth.LENGTHS), help="default 8 16 .. 512")
    add("--growth-batches", type=int, nargs="+", default=list(growth.BATCHES), help="default 1 2 .. 64")
    add("--png", type=Path, metavar="FILE", help="draw the growth")
    parser.add_json()
    args = parse_args(parser, argv, "png")
    measurements = []
    with torch_threads(args.threads):
        for device in [args.device] if args.device else ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
            translator = Translator.load(args.checkpoint, device)
            for section in args.sections:
                rows = SECTIONS[section](translator, args)
                measurements += [m if device == "cpu" else replace(m, name=f"{m.name}_{device}") for m in rows]
                print(table(rows), flush=True)
    write_json(args.json, measurements)


def maps(translator: Translator, args: argparse.Namespace) -> list[Measurement]:
    """Measure the milliseconds to translate one sentence to a forced length with every attention map.

    The tutorial's loop, as written and without gradients, gives no maps. Marian's maps stay in one part for each
    step.
    """
    config, tokenizer = translator.config, translator.tokenizer
    (text,) = source_texts(translator, 1)
    request = Request(text, tuple(translator.encode(text)), translator.directions[0], NO_INTERVENTIONS)
    marian = Marian(config, tokenizer, translator.device, maps=True)
    tutorial = Tutorial(config).to(translator.device).eval()
    source, measurements = torch.tensor([request.source_ids]), []
    for length in args.lengths:
        as_written = partial(tutorial.greedy, request.source_ids, length=length, begin_id=tokenizer.begin_id)
        works: dict[str, Callable[[], object]] = {
            "ours_maps": lambda n=length: speed.translate_with_maps(translator, [request], n),
            "marian_maps": lambda n=length: marian(source, n),
            "tutorial_loop": as_written,
            "tutorial_loop_no_grad": torch.inference_mode()(as_written),
        }
        seconds = take_turns(works, args.repeats, translator.device)
        measurements += [Measurement(f"{name}_{length}", 1e3 * value, "ms") for name, value in seconds.items()]
        ours = seconds.pop("ours_maps")
        measurements += [Measurement(f"{name}_ratio_{length}", value / ours, "x") for name, value in seconds.items()]
    return measurements


def batch(translator: Translator, args: argparse.Namespace) -> list[Measurement]:
    """Measure captions per second from text to text, greedily in float32, in batches sorted by length.

    Marian decodes each batch for as many steps as ours needs.
    """
    keep_freed_memory()  # as attention-atlas translate does
    tokenizer, many = translator.tokenizer, source_texts(translator, args.sentences)

    def encoded() -> list[list[int]]:
        return [translator.encode(text) for text in many]

    sources = encoded()
    targets = translator.generate(sources, batch_size=args.batch_size)
    longest = max(map(len, targets))
    order = sorted(range(len(many)), key=lambda i: len(sources[i]))
    batches = [order[start : start + args.batch_size] for start in range(0, len(order), args.batch_size)]
    marian = Marian(translator.config, tokenizer, translator.device, maps=False)

    def with_marian() -> None:
        ids = encoded()
        for rows in batches:
            output = marian(pad([ids[i] for i in rows], tokenizer.pad_id), max(len(targets[i]) for i in rows))
            for row in output.sequences.tolist():
                tokenizer.decode(row)

    with tempfile.TemporaryDirectory() as folder:
        peer = CTranslate2(
            translator.model, tokenizer, Path(folder), threads=args.threads, device=translator.device.type
        )

    def with_ctranslate2() -> list[list[int]]:
        translations = peer(encoded(), batch_size=args.batch_size, longest=longest)
        for ids in translations:
            tokenizer.decode(ids)
        return translations

    marian(pad([sources[i] for i in batches[0]], tokenizer.pad_id), 2)  # warms up; the others have run already
    # CTranslate2 has one limit for all sentences, so it may go on where ours stops at a sentence's own limit.
    same = sum(ours == theirs[: len(ours)] for ours, theirs in zip(targets, with_ctranslate2()))
    seconds = take_turns(
        {
            "ours_batch": lambda: translator.translate_batch(many, batch_size=args.batch_size),
            "marian_batch": with_marian,
            "ctranslate2_batch": with_ctranslate2,
        },
        args.rounds,
        translator.device,
        warm=True,
    )
    return [
        *(Measurement(name, len(many) / value, "1/s") for name, value in seconds.items()),
        Measurement("ours_batch_ratio_marian", seconds["marian_batch"] / seconds["ours_batch"], "x"),
        Measurement("ctranslate2_batch_ratio_ours", seconds["ours_batch"] / seconds["ctranslate2_batch"], "x"),
        Measurement("ctranslate2_same_ids", same, f"of {len(many)}"),
    ]


def train(translator: Translator, args: argparse.Namespace) -> list[Measurement]:
    """Measure target tokens per second of training on captions, in float32 and in bfloat16 autocast.

    Sizes, batches, loss and optimiser are the same for both.
    """
    device, tokenizer, config = translator.device, translator.tokenizer, TrainConfig()
    examples = encode_examples(translator, args.sentences)
    plan = plan_batches(examples, config.tokens_per_batch, seed=config.seed, epoch=0)
    batches = [make_batch(examples, rows, tokenizer).to(device) for rows in islice(cycle(plan), args.updates + 1)]
    works: dict[str, Callable[[], None]] = {}

    def add(name: str, step: Callable[[Batch], None]) -> None:
        remaining = iter(batches)
        works[name] = lambda: step(next(remaining))

    for precision in ("float32", "bfloat16"):
        half = precision == "bfloat16"
        trainer = Trainer(replace(config, bf16=half), Transformer(translator.config), tokenizer, examples, device)
        trainer.model.train()
        add(f"ours_train_{precision}", trainer.step_on)
        add(f"torch_nn_train_{precision}", tutorial_step(Tutorial(translator.config).to(device), config, half=half))
    tokens = median(batch.tokens for batch in batches[1:])
    rates = {name: tokens / seconds for name, seconds in take_turns(works, args.updates, device).items()}
    best = {
        who: max(value for name, value in rates.items() if name.startswith(who))
        for who in ("ours_train", "torch_nn_train")
    }
    return [Measurement(name, value, "tokens/s") for name, value in (rates | best).items()] + [
        Measurement("ours_train_ratio", best["ours_train"] / best["torch_nn_train"], "x")
    ]


def tutorial_step(model: Tutorial, config: TrainConfig, *, half: bool) -> Callable[[Batch], None]:
    """Return a training step as in PyTorch's tutorial, with our loss, clipping and optimiser settings."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    criterion = torch.nn.CrossEntropyLoss(ignore_index=model.config.pad_id, label_smoothing=config.label_smoothing)
    kind = model.embedding.weight.device.type

    def step(batch: Batch) -> None:
        with torch.autocast(kind, torch.bfloat16) if half else contextlib.nullcontext():
            loss = criterion(model(batch.source, batch.inputs).flatten(0, 1), batch.outputs.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def startup(translator: Translator, args: argparse.Namespace) -> list[Measurement]:
    """Measure the seconds from the start of a process to its first translation, and those of each stage."""
    return speed.startup(args.checkpoint, translator.device.type, args.starts)


def grow(translator: Translator, args: argparse.Namespace) -> list[Measurement]:
    """Measure time and memory by length and batch size, with fitted exponents, and draw them if --png is given."""
    series = growth.measure(translator, lengths=args.growth_lengths, batches=args.growth_batches, repeats=args.rounds)
    if args.png:
        growth.draw(series, args.png)
    return growth.measurements(series)


SECTIONS = {"maps": maps, "batch": batch, "train": train, "startup": startup, "growth": grow}


if __name__ == "__main__":
    run_program(main)
