"""The corpora of a training run: command-line options, and reading without leaks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.training.sources.readers import Corpus, Splits, read_aligned, read_synthetic, remove_leaks
from attention_atlas.model.training.sources.words import keep_familiar

PAIRS = {  # options that name line-aligned files
    "--pair": "line-aligned files to train on (Moses, EuroParl), such as de-en train.de train.en; with this option "
    "--data is not read",
    "--dev-pair": "line-aligned files to choose on",
    "--test-pair": "line-aligned files to keep from training: pairs that share a side with them are left out",
    "--synthetic": "also train on these line-aligned files, whose SOURCE a model translated from TARGET "
    "(back-translation); such sources are tagged",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options that name corpora."""
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        help="folder with multi30k/data/task1/raw/, tatoeba/*-eng.zip, tatoeba-2021/ and news/; what is there is used",
    )
    parser.add_argument(
        "--corpora",
        nargs="+",
        metavar="NAME",
        help="read these alone from the folder, such as multi30k tatoeba (also tatoeba-2021, news)",
    )
    for name, about in PAIRS.items():
        parser.add_argument(
            name, nargs=3, action="append", default=[], metavar=("DIRECTION", "SOURCE", "TARGET"), help=about
        )


def find(args: argparse.Namespace, directions: list[str], *, added: Iterable[Corpus] = ()) -> list[Splits]:
    """Return the corpora named by the options, without training pairs that share a side with a held-out pair.

    added: further corpora to train on. Raises ValueError if a direction has no corpus.
    """
    if args.pair:
        corpora = [
            *(Splits(train=train) for train in _read_files(args.pair)),
            *(Splits(dev=dev) for dev in _read_files(args.dev_pair)),
            *(Splits(test=test) for test in _read_files(args.test_pair)),
        ]
    else:
        corpora = read_folder(args.data, [parse_direction(d) for d in directions])
    if not args.pair and (names := getattr(args, "corpora", None)):
        corpora = [splits for splits in corpora if splits.train.name in names]
    for direction in directions:
        if not any(splits.train.oriented(direction) for splits in corpora):
            where = "--pair" if args.pair else f"the folder {args.data}"
            raise ValueError(f"no corpus for the direction {direction} in {where}")
    corpora += map(Splits, added)
    for direction, source, target in args.synthetic:
        corpora.append(Splits(read_synthetic(source, target, parse_direction(direction))))
    held_out = [part for splits in corpora for part in (splits.dev, splits.test)]
    splits_without_leaks = [Splits(remove_leaks(s.train, held_out), s.dev, s.test) for s in keep_familiar(corpora)]
    for direction in directions:
        if not any(splits.train.oriented(direction) for splits in splits_without_leaks):
            raise ValueError(f"{direction}: every training pair shares a side with a held-out (dev or test) pair")
    return splits_without_leaks


def dev_pairs(root: Path, direction: str, limit: int | None = None) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the names and the pairs of the dev parts in a data folder, one pair of each corpus in turn, so that a
    limit takes pairs from all. Raises ValueError if the direction has none."""
    corpora = [s.dev for s in read_folder(root, [parse_direction(direction)]) if s.dev.oriented(direction)]
    if not corpora:
        raise ValueError(f"no development sentences for the direction {direction} in the folder {root}")
    turns = zip_longest(*(corpus.oriented(direction) for corpus in corpora))
    pairs = [pair for turn in turns for pair in turn if pair is not None]
    return [f"{corpus.name} dev" for corpus in corpora], pairs[:limit]


def _read_files(rows: list) -> list[Corpus]:
    return [read_aligned(source, target, parse_direction(direction)) for direction, source, target in rows]
