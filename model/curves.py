"""Alignment error rates of a checkpoint's heads beside links by hand, by layer and row: python -m model.curves --help

Writes alignment.json into the checkpoint's folder, with the digest of the weights, and the table into its card, between
two marks. The links (gold.talp) and their sentences (gold.de, gold.en, or other languages; words between spaces) lie in
a folder that is not shipped; only figures leave it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from model.align import read_pairs
from model.analysis.alignment.curve import curve, markdown
from model.files import replace_file, write_json
from model.trace.alignment.formats import read_line
from model.trace.alignment.links import turned
from model.trace.alignment.score import Gold
from model.trace.directions import parse_direction
from model.translator import Translator

FILE, CARD, GOLD = "alignment.json", "README.md", "gold"
FIRST, LAST = "<!-- alignment: written by python -m model.curves -->", "<!-- end of alignment -->"


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    translator = Translator.load(args.checkpoint, args.device)
    found = []
    for direction in translator.directions:
        if gold := sentences(args.gold, direction):
            found.append(curve(translator, direction, [pair for pair, _ in gold], [links for _, links in gold]
                               ).to_json())
            print(f"{direction}\n{markdown(found[-1])}")
    write_json(args.checkpoint / FILE, {"digest": translator.digest, "directions": found})
    if (args.checkpoint / CARD).is_file():
        write_card(args.checkpoint / CARD, found)


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


def write_card(path: Path, found: list[dict]) -> None:
    """Put the tables between the card's two marks; a card without them is left as it is."""
    text = path.read_text(encoding="utf-8")
    before, mark, rest = text.partition(FIRST)
    _, last, after = rest.partition(LAST)
    if not (mark and last):
        return
    tables = "\n\n".join(f"{one['direction']}, {one['sentences']} sentences:\n\n{markdown(one)}" for one in found
                         ) or "Not measured with these weights."
    replace_file(path, lambda partial: partial.write_text(f"{before}{FIRST}\n\n{tables}\n\n{LAST}{after}",
                                                          encoding="utf-8"))


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m model.curves", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--checkpoint", type=Path, default=Path("checkpoints/de-en"), help="default checkpoints/de-en")
    add("--gold", type=Path, default=Path("data/alignment"), help="folder of links by hand; default data/alignment")
    add("--device", help="cpu or cuda")
    return parser.parse_args(argv)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
