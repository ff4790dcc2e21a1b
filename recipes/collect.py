"""Print sentences of one language for a model to translate, one per line.

    python -m recipes.collect --help

The sentences are Multi30k's captions of task 2, and the English sentences of one Tatoeba file that another lacks.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from attention_atlas.model.program import CommandLine, run_program
from attention_atlas.model.training.sources.readers import (
    TATOEBA_FILES,
    comparison_key,
    read_lines,
    read_tatoeba,
    split_tatoeba,
)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    for sentence in captions(args.data / "multi30k", args.language, args.captions):
        print(sentence)
    if args.everyday_of:
        for sentence in everyday(args.data / "tatoeba", args.everyday_of, args.unlike):
            print(sentence)


def captions(root: Path, language: str, count: int) -> list[str]:
    """Return the first `count` captions of task 2. Raises ValueError if a file is missing."""
    folder = root / "data" / "task2" / "raw"
    every = (line for number in range(1, 6) if count for line in read_lines(folder / f"train.{number}.{language}.gz"))
    return list(islice(every, count))


def everyday(folder: Path, of: str, unlike: str) -> list[str]:
    """Return the distinct English training sentences of Tatoeba's file for one language that occur neither in the file
    for the other language nor in a dev or test part of either."""
    there, other = (split_tatoeba(read_tatoeba(folder / TATOEBA_FILES[code][0], code)) for code in (of, unlike))
    known = {comparison_key(english) for part in other.values() for _, english in part.pairs}
    known |= {comparison_key(english) for split in ("dev", "test") for _, english in there[split].pairs}
    sentences = {}
    for _, english in there["train"].pairs:
        if comparison_key(english) not in known:
            sentences.setdefault(comparison_key(english), english)
    return list(sentences.values())


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("python -m recipes.collect", __doc__)
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), help="folder with multi30k/ and tatoeba/")
    add("--language", default="en", help="of the captions")
    add("--captions", type=int, default=0, help="how many captions")
    add("--everyday-of", choices=tuple(TATOEBA_FILES), help="also the English side of this language's Tatoeba file")
    add("--unlike", choices=tuple(TATOEBA_FILES), default="de", help="leave out those of this language's file")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_program(main)
