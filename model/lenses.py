"""Fit the lenses of a checkpoint, for what its streams say before their time: attention-atlas lenses --help

Writes lenses.safetensors, with the digest of the weights that it is of. On two cores the shipped models take minutes;
started again after a kill, it goes on with what lies in lenses.parts beside it.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.analysis.lenses.encoder import measure_hits
from attention_atlas.model.analysis.lenses.fit import SLOPES, fit
from attention_atlas.model.analysis.lenses.storage import FILE, HitRates, Lenses, save
from attention_atlas.model.analysis.why.averages import asked_sentences
from attention_atlas.model.program import add_checkpoint, add_output, command_line, destination, integer, program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.training.sources.readers import read_aligned
from attention_atlas.model.translator import Translator

DOMAINS = {"multi30k": "captions", "news": "news"}
MEASURED = 200  # sentences of each
Pairs = Mapping[str, Mapping[str, Sequence[tuple[str, str]]]]  # direction -> name -> (source, reference)


def main(argv: list[str] | None = None, pairs: Pairs | None = None) -> None:
    """pairs: of further sentences to measure on."""
    args = parse(argv)
    path = destination(args, FILE)
    translator = Translator.load(args.checkpoint, args.device)
    folder = path.with_suffix(".parts")  # whoever starts again goes on there
    with tqdm(unit=" parts") as bar:

        def watch(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        lenses = fit(
            translator, asked_sentences(translator, args.sentences), slopes=args.slopes, folder=folder, watch=watch
        )
    lenses = replace(lenses, hit_rates=found_in(translator, lenses, measured_on(translator, args, pairs or {})))
    save(path, lenses)
    shutil.rmtree(folder)
    print(f"{path}: {lenses.sentences} sentences, {path.stat().st_size:,} bytes")
    for name, one in lenses.hit_rates.items():
        print(f"{name}, {one.sentences} sentences: own {one.own}, another's {one.other}")


def measured_on(translator: Translator, args: argparse.Namespace, pairs: Pairs) -> Pairs:
    """Return `pairs`, those of the files that --pair names, and the captions and the news of a data folder."""
    found = {direction: dict(pairs.get(direction, {})) for direction in translator.directions}
    for direction, source, target in args.pair:
        translator.check_direction(direction)
        corpus = read_aligned(source, target, parse_direction(direction))
        found[direction][corpus.name] = corpus.pairs[:MEASURED]
    for direction in translator.directions if args.data else ():
        for splits in read_folder(args.data, [parse_direction(direction)]):
            if (name := DOMAINS.get(splits.dev.name)) and splits.dev.oriented(direction):
                found[direction][name] = splits.dev.oriented(direction)[:MEASURED]
    return found


def found_in(translator: Translator, lenses: Lenses, pairs: Pairs) -> dict[str, HitRates]:
    """How often the encoder's lens finds words of the translation, of each name in the first direction that has it."""
    found: dict[str, HitRates] = {}
    for direction, named in pairs.items():
        for name, some in named.items():
            found.setdefault(name, measure_hits(translator, lenses, some, direction))
    return found


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("attention-atlas lenses", __doc__)
    add = parser.add_argument
    add_checkpoint(parser)
    add_output(parser, FILE)
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
        help="sentences of each direction to take slopes of, default %(default)s",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    program(main)
