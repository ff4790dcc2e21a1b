"""Which corpora a program reads: its command-line options, their splits, and what is made of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

from attention_atlas.model.text.tokenizer import Tokenizer
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.training.sources.readers import Corpus, Splits, read_aligned, read_synthetic, without_leaks
from attention_atlas.model.training.sources.words import familiar


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that say where corpora are."""
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
    parser.add_argument(
        "--pair",
        nargs=3,
        action="append",
        default=[],
        metavar=("DIRECTION", "SOURCE", "TARGET"),
        help="line-aligned files to train on (Moses, EuroParl), such as de-en train.de train.en; "
        "with this option --data is not read",
    )
    parser.add_argument(
        "--dev-pair",
        nargs=3,
        action="append",
        default=[],
        metavar=("DIRECTION", "SOURCE", "TARGET"),
        help="line-aligned files to choose on",
    )
    parser.add_argument(
        "--test-pair",
        nargs=3,
        action="append",
        default=[],
        metavar=("DIRECTION", "SOURCE", "TARGET"),
        help="line-aligned files to keep from training: pairs that share a side with them are left out",
    )
    parser.add_argument(
        "--synthetic",
        nargs=3,
        action="append",
        default=[],
        metavar=("DIRECTION", "SOURCE", "TARGET"),
        help="also train on these line-aligned files, whose SOURCE a model translated from TARGET "
        "(back-translation); such sources are tagged",
    )


def find(args: argparse.Namespace, wanted: list[str], *, added: Iterable[Corpus] = ()) -> list[Splits]:
    """Return the corpora named by the options. added: others to train on. ValueError if there are none for a wanted
    direction."""
    directions = [parse_direction(d) for d in wanted]
    found = _files(args) if args.pair else read_folder(args.data, directions)
    if not args.pair and (names := getattr(args, "corpora", None)):
        found = [splits for splits in found if splits.train.name in names]
    for direction in wanted:
        if not any(splits.train.oriented(direction) for splits in found):
            where = "--pair" if args.pair else f"the folder {args.data}"
            raise ValueError(f"no corpus for the direction {direction} in {where}")
    nothing = Corpus("none", ("", ""), ())
    found += [Splits(corpus, nothing, nothing) for corpus in added]
    for direction, source, target in args.synthetic:
        found.append(Splits(read_synthetic(source, target, parse_direction(direction)), nothing, nothing))
    held_out = [part for splits in found for part in (splits.dev, splits.test)]
    clean = [Splits(without_leaks(s.train, held_out), s.dev, s.test) for s in familiar(found)]
    for direction in wanted:
        if not any(splits.train.oriented(direction) for splits in clean):
            raise ValueError(f"{direction}: every training pair shares a side with a held-out (dev or test) pair")
    return clean


def dev_pairs(root: Path, direction: str, limit: int | None = None) -> tuple[list[str], list[tuple[str, str]]]:
    """The names and the pairs of the dev parts in a data folder, one pair of each corpus in turn, so that a limit takes
    from all. ValueError if there are none for the direction."""
    found = [s.dev for s in read_folder(root, [parse_direction(direction)]) if s.dev.oriented(direction)]
    if not found:
        raise ValueError(f"no development sentences for the direction {direction} in the folder {root}")
    turns = zip_longest(*(corpus.oriented(direction) for corpus in found))
    pairs = [pair for turn in turns for pair in turn if pair is not None]
    return [f"{corpus.name} dev" for corpus in found], pairs[:limit]


def _files(args: argparse.Namespace) -> list[Splits]:
    def corpora(rows: list) -> list[Corpus]:
        return [read_aligned(source, target, parse_direction(direction)) for direction, source, target in rows]

    nothing = Corpus("none", ("", ""), ())
    return [
        *(Splits(train, nothing, nothing) for train in corpora(args.pair)),
        *(Splits(nothing, dev, nothing) for dev in corpora(args.dev_pair)),
        *(Splits(nothing, nothing, test) for test in corpora(args.test_pair)),
    ]


def train_tokenizer(found: list[Splits], *, vocabulary_size: int, algorithm: str, exact: bool = True) -> Tokenizer:
    """A tokenizer for all languages of the corpora, learnt from their training parts alone."""
    sentences = sorted({side for splits in found for pair in splits.train.pairs for side in pair})
    languages = sorted({language for splits in found for language in splits.train.languages if language})
    return Tokenizer.train(
        sentences, vocabulary_size=vocabulary_size, languages=languages, algorithm=algorithm, exact=exact
    )
