"""Which row of the page's matrix to believe, measured: python -m model.faithfulness --help

Translates sentences, asks why the least certain content word of each was written, and takes words away in the order of
each method, by another replacement than it was made with. Writes faithfulness.json into the checkpoint's folder and
prints the table for its card. Under torchrun, processes share the sentences; the result is the same.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from model.analysis.why import averages
from model.analysis.why.faithful import FILE, Sentence, examine, redrawn, summarise
from model.files import write_json
from model.nets.networks import check_transformer
from model.serve import processes
from model.trace.why.faithfulness import Faithfulness
from model.translator import Translator


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    translator = Translator.load(args.checkpoint, args.device)
    check_transformer(translator.model)
    path = args.checkpoint / averages.FILE
    means = averages.load(path, translator) if path.is_file() else None
    if args.sentences:
        lines = [line for line in args.sentences.read_text(encoding="utf-8").splitlines() if line.strip()]
        texts = [(direction, line) for direction in translator.directions for line in lines[:args.limit]]
    else:
        texts = [(direction, line) for direction, lines in averages.own_sentences(translator).items()
                 for line in lines[:args.limit]]
    if not texts:
        raise ValueError("there are no sentences: name a file with --sentences")
    with processes.side_by_side():
        found = [sentence for sentence in examined(translator, texts, means, args.randomised) if sentence is not None]
        if processes.rank() == 0:
            report(args.checkpoint, translator, found, means is not None)


def examined(translator: Translator, texts: list[tuple[str, str]], means: averages.Means | None,
             randomised: int) -> list[Sentence | None]:
    """Every text's result, in order, whichever process found it."""
    rank, world = processes.rank(), processes.count()
    stages = redrawn(translator.model) if randomised else []
    mine = {}
    for index in tqdm(range(rank, len(texts), world), unit=" sentences", disable=rank > 0):
        direction, text = texts[index]
        mine[index] = examine(translator, text, direction, means, seed=index,
                              stages=stages if index < randomised else ())
    together = {index: sentence for part in processes.gathered(mine) for index, sentence in part.items()}
    return [together[index] for index in range(len(texts))]


def report(folder: Path, translator: Translator, sentences: list[Sentence], with_means: bool) -> None:
    """Write the file and print the table."""
    scored_by = "mean embedding of own sentences" if with_means else "mean embedding of the vocabulary"
    found = Faithfulness(translator.name, translator.digest, translator.directions, len(sentences), scored_by,
                         summarise(sentences))
    write_json(folder / FILE, asdict(found))
    print(found.markdown())
    stages = next((m.randomised for m in found.methods if m.randomised), {})
    for stage in stages:
        print(f"redrawn down to {stage}: " + ", ".join(
            f"{m.method} {'none' if m.randomised[stage] is None else format(m.randomised[stage], '.2f')}"
            f"{' (class-agnostic)' if m.class_agnostic else ''}" for m in found.methods))


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m model.faithfulness", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--checkpoint", type=Path, default=Path("checkpoints/de-en"), help="default checkpoints/de-en")
    add("--sentences", type=Path, help="a file, one a line; default: this project's own in the source languages")
    add("--limit", type=int, default=200, help="how many of each direction; default 200")
    add("--randomised", type=int, default=20, help="on how many to compare with redrawn weights; default 20")
    add("--device", help="cpu or cuda")
    args = parser.parse_args(argv)
    if args.limit < 1:
        parser.error(f"--limit must be at least 1, found {args.limit}")
    return args


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
