"""Fit the lenses of a checkpoint, for what its streams say before their time: attention-atlas lenses --help

Writes lenses.safetensors, with the digest of the weights that it is of. On two cores the shipped models take minutes;
started again after a kill, it goes on with what lies in lenses.parts beside it.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.analysis.lenses.fit import SLOPES, fit
from attention_atlas.model.analysis.lenses.fitted import FILE, Found, Lenses, save
from attention_atlas.model.analysis.lenses.measure import found_words
from attention_atlas.model.analysis.why.averages import asked_sentences
from attention_atlas.model.evaluation import everyday
from attention_atlas.model.program import add_checkpoint, add_output, command_line, destination, program, whole
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.translator import Translator

DOMAINS = {"multi30k": "captions", "news": "news"}
MEASURED = 200  # sentences of each


def main(argv: list[str] | None = None) -> None:
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
    lenses = replace(lenses, found=found_in(translator, lenses, args.data))
    save(path, lenses)
    shutil.rmtree(folder)
    print(f"{path}: {lenses.sentences} sentences, {path.stat().st_size:,} bytes")
    for name, one in lenses.found.items():
        print(f"{name}, {one.sentences} sentences: own {one.own}, another's {one.other}")


def found_in(translator: Translator, lenses: Lenses, data: Path | None) -> dict[str, Found]:
    """How often the encoder's lens finds words of the translation, in the first direction that has such sentences: in
    everyday ones of the project's own, and in the captions and the news of a data folder."""
    found = {}
    for direction in translator.directions:
        pairs = {}
        if direction in everyday.DIRECTIONS:
            pairs["everyday"] = [(one.source, one.references[0]) for one in everyday.read_everyday(direction)]
        for splits in read_folder(data, [parse_direction(direction)]) if data else []:
            if (name := DOMAINS.get(splits.dev.name)) and splits.dev.oriented(direction):
                pairs[name] = splits.dev.oriented(direction)[:MEASURED]
        for name, some in pairs.items():
            found.setdefault(name, found_words(translator, lenses, some, direction))
    return found


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("attention-atlas lenses", __doc__)
    add = parser.add_argument
    add_checkpoint(parser)
    add_output(parser, FILE)
    add("--sentences", type=Path, help="a file, one a line; default: this project's own in the source languages")
    add("--data", type=Path, help="a data folder: its captions and news are read, to measure how often words are found")
    add(
        "--slopes",
        type=whole(),
        default=SLOPES,
        help="sentences of each direction to take slopes of, default %(default)s",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    program(main)
