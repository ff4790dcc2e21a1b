"""Fit the lenses of a checkpoint, for what its streams say before their time: python -m model.lenses --help

Writes lenses.safetensors, with the digest of the weights that it is of. On two cores the shipped models take minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tqdm import tqdm

from model.analysis.lenses.fit import SLOPES, fit
from model.analysis.lenses.fitted import FILE, save
from model.analysis.why.averages import own_sentences
from model.program import add_checkpoint, add_output, command_line, destination, program, whole
from model.training import corpora
from model.translator import Translator

DEV = 1000  # sentences of each direction


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    path = destination(args, FILE)
    translator = Translator.load(args.checkpoint, args.device)
    with tqdm(unit=" sentences") as bar:

        def watch(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        lenses = fit(translator, texts(args, translator), slopes=args.slopes, watch=watch)
    save(path, lenses)
    print(f"{path}: {lenses.sentences} sentences, {path.stat().st_size:,} bytes")


def texts(args: argparse.Namespace, translator: Translator) -> dict[str, list[str]]:
    """Sentences by direction: of a file, of the corpora's dev parts, or the project's own. ValueError for none."""
    if args.sentences:
        lines = args.sentences.read_text(encoding="utf-8").splitlines()
        return {direction: lines for direction in translator.directions}
    if args.data:
        return {d: [s for s, _ in corpora.dev_pairs(args.data, d, DEV)[1]] for d in translator.directions}
    if not (found := own_sentences(translator)):
        raise ValueError(
            "there are no sentences of this project's own in the source languages of "
            f"{', '.join(translator.directions)}: name a file with --sentences"
        )
    return {direction: list(lines) for direction, lines in found.items()}


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("model.lenses", __doc__)
    add = parser.add_argument
    add_checkpoint(parser)
    add_output(parser, FILE)
    add("--sentences", type=Path, help="a file, one a line; default: this project's own in the source languages")
    add("--data", type=Path, help="a data folder: the dev parts of its corpora instead")
    add(
        "--slopes",
        type=whole(),
        default=SLOPES,
        help="sentences of each direction to take slopes of, default %(default)s",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    program(main)
