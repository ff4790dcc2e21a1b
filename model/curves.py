"""Alignment error rates of a checkpoint's heads beside links by hand, by layer and row: python -m model.curves --help

Writes alignment.json into the checkpoint's folder, with the digest of the weights, and the tables into its card. The
links (gold.talp) and their sentences (gold.de, gold.en, or other languages; words between spaces) lie in a folder
that is not shipped; only figures leave it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from model.align import read_pairs
from model.analysis.alignment.curve import curve, markdown
from model.files import write_json, write_section
from model.nets.networks import check_transformer
from model.program import add_checkpoint, add_output, command_line, destination, program
from model.trace.alignment.formats import read_line
from model.trace.alignment.links import turned
from model.trace.alignment.score import Gold
from model.trace.directions import parse_direction
from model.translator import Translator

FILE, CARD, GOLD = "alignment.json", "README.md", "gold"
HEADING = "## Word alignments"
ABOUT = """How far the heads' links are from links by hand, alignment error rate in percent: on the sentences of RWTH
Aachen's German–English gold that a data folder has, the debates of a parliament, of whose like the model has read none.
Each target word goes with the source word that has most weight; a row stands for the token it reads or for the one it
predicts. The best head of a layer is chosen on the same sentences. `python -m model.curves` measures it and writes this
section."""


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    out = destination(args, FILE)
    translator = Translator.load(args.checkpoint, args.device)
    check_transformer(translator.model)
    found = []
    for direction in translator.directions:
        if gold := sentences(args.gold, direction):
            found.append(
                curve(translator, direction, [pair for pair, _ in gold], [links for _, links in gold]).to_json()
            )
            print(f"{direction}\n{markdown(found[-1])}")
    write_json(out, {"digest": translator.digest, "directions": found})
    if not args.out:
        write_section(args.checkpoint / CARD, section(found))


def sentences(folder: Path, direction: str) -> list[tuple[tuple[list[str], list[str]], Gold]]:
    """Words of both sides with their links, source first; none where the folder has no such languages. The links' own
    first language is the one that comes first by name."""
    languages = parse_direction(direction)
    files = [folder / f"{GOLD}.{language}" for language in languages]
    if not all(path.is_file() for path in (*files, folder / f"{GOLD}.talp")):
        return []
    lines = (folder / f"{GOLD}.talp").read_text(encoding="utf-8").splitlines()
    pairs = list(read_pairs(*files))
    if len(lines) != len(pairs):
        raise ValueError(f"{folder}: {len(pairs)} sentences and {len(lines)} lines of links")
    golds = [read_line(line, first=1) for line in lines]
    if list(languages) != sorted(languages):
        golds = [Gold(turned(gold.sure), turned(gold.possible)) for gold in golds]
    return [(pair, gold) for pair, gold in zip(pairs, golds) if all(pair)]


def section(found: Sequence[dict]) -> str:
    """The card's section, of Curve.to_json()'s values."""
    tables = [f"{one['direction']}, {one['sentences']} sentences:\n\n{markdown(one)}" for one in found]
    return "\n\n".join([HEADING, ABOUT, *(tables or ["Not measured with these weights."])])


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("model.curves", __doc__)
    add = parser.add_argument
    add_checkpoint(parser)
    add_output(parser, f"{FILE}, and the tables in its card")
    add("--gold", type=Path, default=Path("data/alignment"), help="folder of links by hand; default data/alignment")
    return parser.parse_args(argv)


if __name__ == "__main__":
    program(main)
