"""Measure the training of a toy: python -m bench.toy --help

Updates of the default toy with the frames that the page shows, and the same updates alone, which take turns; the time
to the first frame; and the time of a translation by a served checkpoint while three visitors train.
"""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from attention_atlas.model.nets import networks
from attention_atlas.model.program import DEFAULT_CHECKPOINT, CommandLine, parse_args, run_program
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.training.toy import corpora, settings
from attention_atlas.model.training.toy.run import ToyRun
from attention_atlas.model.training.toy.settings import ToySettings
from attention_atlas.model.training.toy.toys import Toys
from attention_atlas.model.translator import Translator
from bench.common import Measurement, median_seconds, table, write_json

TEXT = corpora.CORPORA[corpora.DEFAULT].text
PAIRS = corpora.read(TEXT)


def train_alone(updates: int) -> float:
    """Return the seconds of some updates of the default toy, with nothing recorded."""
    run = ToyRun(PAIRS, ToySettings())
    batch, model = run.corpus, networks.build(ToySettings().config(*run.tokenizer.sizes)).train()
    real = batch.outputs != run.tokenizer.pad_id
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    started = time.perf_counter()
    for _ in range(updates):
        logits = model.project(model.decode(batch.inputs, model.encode(batch.source))[0])
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(logits[real], batch.outputs[real]).backward()
        optimizer.step()
    return time.perf_counter() - started


def train_with_frames(updates: int) -> tuple[float, float]:
    """Return the seconds of as many updates with the frames that the page asks for, and to the first frame."""
    started = time.perf_counter()
    turns = Toys().watch(ToyRecipe.of(TEXT, {}, updates))
    next(turns)
    first = time.perf_counter() - started
    for _ in turns:
        pass
    return time.perf_counter() - started, first


def translate_during_training(translator: Translator, text: str, visitors: int, runs: int = 20) -> float:
    """Return the median seconds of a translation while some visitors train."""
    toys, ended = Toys(), threading.Event()

    def train() -> None:
        for _ in toys.watch(ToyRecipe.of(TEXT, {}, settings.MAX_UPDATES)):
            if ended.is_set():
                return

    threads = [threading.Thread(target=train) for _ in range(visitors)]
    for thread in threads:
        thread.start()
    seconds = median_seconds(lambda: translator.translate(text), runs)
    ended.set()
    for thread in threads:
        thread.join()
    return seconds


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m bench.toy", __doc__)
    parser.add_argument("--checkpoint", type=Path, default=DEFAULT_CHECKPOINT)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_json()
    args = parse_args(parser, argv)
    torch.set_num_threads(1)
    rounds = [(train_alone(args.updates), *train_with_frames(args.updates)) for _ in range(args.rounds)]
    plain, whole, first = (statistics.median(column) for column in zip(*rounds))
    translator = Translator.load(args.checkpoint, device="cpu")
    example = next(iter(translator.examples.get(translator.directions[0], ())), None)
    text = example.text if example else "Das ist gut."
    alone, busy = (translate_during_training(translator, text, visitors) for visitors in (0, 3))
    measurements = [
        Measurement(f"updates_bare_{args.updates}", plain, "s"),
        Measurement(f"updates_watched_{args.updates}", whole, "s"),
        Measurement("first_frame", first, "s"),
        Measurement("translation_alone", alone, "s"),
        Measurement("translation_while_three_train", busy, "s"),
    ]
    print(table(measurements))
    write_json(args.json, measurements)


if __name__ == "__main__":
    run_program(main)
