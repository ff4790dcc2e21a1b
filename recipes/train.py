"""Train a network with the recipe of the shipped checkpoints: python -m recipes.train --help

Like attention-atlas train, with further training data: replaced names and numbers, filled frames, composed sentences,
sayings, typing errors.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from attention_atlas.model import train
from attention_atlas.model.program import run_program
from attention_atlas.model.training import corpora
from attention_atlas.model.training.source import Source
from attention_atlas.model.training.sources.readers import Splits
from recipes import sayings
from recipes.marks import read_marks, without
from recipes.mixture import Mixture, MixtureConfig


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name corpora. `--repeat sayings TIMES` adds the sayings."""
    corpora.add_options(parser)
    parser.add_argument(
        "--without",
        nargs="+",
        type=Path,
        default=[],
        help="lists of training pairs to leave out, of recipes.judge (may be changed on --resume)",
    )


def find(args: argparse.Namespace, wanted: list[str]) -> list[Splits]:
    """Return the corpora named by the options, without the marked pairs."""
    added = sayings.read_sayings() if sayings.NAME in dict(args.repeat) else ()
    marks = read_marks(args.without)
    return [Splits(without(s.train, marks), s.dev, s.test) for s in corpora.find(args, wanted, added=added)]


MIXED = Source("python -m recipes.train", MixtureConfig, Mixture, add_options, find)


def main(argv: list[str] | None = None) -> None:
    train.main(argv, MIXED, __doc__)


if __name__ == "__main__":
    run_program(main)
