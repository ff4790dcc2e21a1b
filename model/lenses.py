"""Fit lenses, which decode a checkpoint's residual streams at earlier layers: attention-atlas lenses --help

Writes lenses.safetensors, with the digest of the weights. The shipped models take minutes on two cores. A stopped run
continues from the folder lenses.parts when it is started again.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.analysis.lenses.fit import SLOPES, fit
from attention_atlas.model.analysis.lenses.read import measure_hits
from attention_atlas.model.analysis.lenses.storage import FILE, HitRates, Lenses, save
from attention_atlas.model.analysis.why.means import choose_sentences
from attention_atlas.model.program import CommandLine, integer, measurement_path, run_program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.training.sources.readers import read_aligned
from attention_atlas.model.translator import Translator

DOMAINS = {"multi30k": "captions", "news": "news"}
MEASURED = 200  # sentences of each domain
Pairs = Mapping[str, Mapping[str, Sequence[tuple[str, str]]]]  # direction -> name -> (source, reference)


def main(argv: list[str] | None = None, pairs: Pairs | None = None) -> None:
    """Run the program. pairs: further sentences to measure on."""
    args = parse(argv)
    path = measurement_path(args, FILE)
    translator = Translator.load(args.checkpoint, args.device)
    folder = path.with_suffix(".parts")  # of a stopped run
    with tqdm(unit=" parts") as bar:

        def watch(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        lenses = fit(
            translator, choose_sentences(translator, args.sentences), slopes=args.slopes, folder=folder, watch=watch
        )
    lenses = replace(lenses, hit_rates=measure(translator, lenses, collect_pairs(translator, args, pairs or {})))
    save(path, lenses)
    shutil.rmtree(folder)
    print(f"{path}: {lenses.sentences} sentences, {path.stat().st_size:,} bytes")
    for name, rates_of in lenses.hit_rates.items():
        print(f"{name}, {rates_of.sentences} sentences: own {rates_of.own}, another's {rates_of.other}")


def collect_pairs(translator: Translator, args: argparse.Namespace, pairs: Pairs) -> Pairs:
    """Return `pairs`, those of the files that --pair names, and the captions and the news of a data folder."""
    collected = {direction: dict(pairs.get(direction, {})) for direction in translator.directions}
    for direction, source, target in args.pair:
        translator.check_direction(direction)
        corpus = read_aligned(source, target, parse_direction(direction))
        collected[direction][corpus.name] = corpus.pairs[:MEASURED]
    for direction in translator.directions if args.data else ():
        for splits in read_folder(args.data, [parse_direction(direction)]):
            if (name := DOMAINS.get(splits.dev.name)) and splits.dev.oriented(direction):
                collected[direction][name] = splits.dev.oriented(direction)[:MEASURED]
    return collected


def measure(translator: Translator, lenses: Lenses, pairs: Pairs) -> dict[str, HitRates]:
    """Return how often the encoder's lens finds words of the translation, by name, in its first direction."""
    rates: dict[str, HitRates] = {}
    for direction, by_name in pairs.items():
        for name, sentences in by_name.items():
            if name not in rates:
                rates[name] = measure_hits(translator, lenses, sentences, direction)
    return rates


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas lenses", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    parser.add_output(FILE)
    add("--sentences", type=Path, help="a file, one a line; default: this project's own in the source languages")
    add(
        "--pair",
        nargs=3,
        action="append",
        default=[],
        metavar=("DIRECTION", "SOURCE", "REFERENCE"),
        help=f"line-aligned files to measure on how often words are found, the first {MEASURED} lines",
    )
    add("--data", type=Path, help="a data folder: its captions and news are read, to measure how often words are found")
    add(
        "--slopes",
        type=integer(),
        default=SLOPES,
        help="sentences of each direction whose slopes are taken, default %(default)s",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
