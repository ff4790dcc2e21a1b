"""Survey what every head of a checkpoint does over a corpus: attention-atlas survey --help

Writes heads.json, with the digest of the weights. A stopped run continues when it is started again, and processes of
torchrun share the sentences, with the same result. No sentence of the corpus is stored: the examples are this project's
own sentences.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.analysis.alignment.links import find_linking_heads
from attention_atlas.model.analysis.sentences import has_sentences, sentences
from attention_atlas.model.analysis.survey.corpus import WINDOW, Corpus, encode_or_empty
from attention_atlas.model.analysis.survey.run import SurveyRun, save
from attention_atlas.model.analysis.why.means import FILE as MEANS_FILE
from attention_atlas.model.analysis.why.means import load_means
from attention_atlas.model.checkpoint import HEADS
from attention_atlas.model.files import read_parallel
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.program import CommandLine, integer, measurement_path, run_program
from attention_atlas.model.serve import processes
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.survey.survey import OWN, DirectionSurvey, Survey
from attention_atlas.model.training.corpora import dev_pairs
from attention_atlas.model.translator import Translator

LINKED = 100  # sentences on which the heads that link words are chosen


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    path = measurement_path(args, HEADS)
    if path is None:
        raise ValueError("--limit is for a trial: name its file with --out")
    with processes.process_group():
        translator = Translator.load(args.checkpoint, args.device)
        check_transformer(translator.model)
        parts = path.with_name(f"{path.name}.parts")  # of a stopped run
        surveys = {
            direction: survey(args, translator, direction, corpus, parts)
            for direction, corpus in choose_corpora(args, translator).items()
        }
        if processes.rank() == 0:
            save(path, Survey(translator.name, translator.digest, surveys))
            shutil.rmtree(parts, ignore_errors=True)
            print(
                f"{path}: {', '.join(f'{d} {s.sentences} sentences' for d, s in surveys.items())}, "
                f"{path.stat().st_size:,} bytes"
            )


def survey(
    args: argparse.Namespace, translator: Translator, direction: str, corpus: Corpus, parts: Path
) -> DirectionSurvey | None:
    """Survey one direction. Returns None in all processes but the first. parts: the folder of unfinished work."""
    path = args.checkpoint / MEANS_FILE
    if args.ablate and not path.is_file():
        raise ValueError(f"{path} is missing: run attention-atlas means, or leave out --ablate")
    means = load_means(path, translator) if args.ablate else None
    first = [source for source, _ in islice(corpus.read(), LINKED) if encode_or_empty(translator, direction, source)]
    linked_by = find_linking_heads(translator, direction, first)
    run = SurveyRun(translator, direction, corpus, args.seed, args.ablate, means, linked_by, parts)
    rank, world = processes.rank(), processes.world_size()
    if rank == 0:
        run.gather()
    processes.barrier()
    total = min(run.windows * WINDOW, args.limit or run.windows * WINDOW)
    with tqdm(total=total, desc=direction, unit=" sentences", disable=rank > 0) as bar:
        # A process knows only its own progress: the bar multiplies it by their number.
        run.work(rank, world, watch=lambda done: bar.update(min(done * world * WINDOW, total) - bar.n))
    processes.barrier()
    return run.result() if rank == 0 else None


def choose_corpora(args: argparse.Namespace, translator: Translator) -> dict[str, Corpus]:
    """Return the corpora by direction. Raises ValueError if there is none."""
    directions = [translator.check_direction(d) for d in args.directions or translator.directions]
    if args.sentences:
        name = " and ".join(path.name for path in args.sentences)
        return dict.fromkeys(directions, Corpus(name, lambda: read_sentences(args)))
    if args.data:
        corpora = {}
        for direction in directions:
            names, pairs = dev_pairs(args.data, direction, args.limit)
            corpora[direction] = Corpus(", ".join(names), partial(iter, pairs))
        return corpora
    return {direction: own_corpus(direction, args.limit) for direction in directions}


def own_corpus(direction: str, limit: int | None) -> Corpus:
    """Return up to `limit` of this project's own sentences. Raises ValueError if none is in the source language."""
    language = parse_direction(direction)[0]
    if not has_sentences(direction):
        raise ValueError(f"there are no sentences of this project's own in {language!r}: name a file with --sentences")
    return Corpus(OWN, lambda: ((line, "") for line in islice(sentences(language), limit)), own=True)


def read_sentences(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the pairs of --sentences, with empty targets for one file. Raises ValueError if they differ in length."""
    for source, *targets in islice(read_parallel(*args.sentences), args.limit):
        yield source, "".join(targets)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas survey", __doc__)
    add = parser.add_argument
    parser.add_checkpoint()
    add(
        "--sentences",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="sources, or sources and their references line by "
        "line; default: this project's own sentences, which the model translates itself",
    )
    add("--data", type=Path, help="or the dev parts of the corpora in this folder, as for attention-atlas train")
    add("--directions", nargs="+", help="default: all of the checkpoint's")
    parser.add_output(HEADS, trial=True)
    add(
        "--ablate",
        type=integer(0),
        default=0,
        metavar="N",
        help="ablate every head on the first N sentences; default 0",
    )
    add("--seed", type=int, default=0, help="of the bootstrap; default 0")
    args = parser.parse_args(argv)
    if args.sentences and (args.data or len(args.sentences) > 2):
        parser.error("--sentences takes one or two files, and excludes --data")
    return args


if __name__ == "__main__":
    run_program(main)
