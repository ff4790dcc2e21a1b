"""What every head of a checkpoint does, over a corpus: attention-atlas survey --help

Writes heads.json, with the digest of the weights. Killed, it goes on where it was when it
is started again; under torchrun, processes share the sentences. The result is the same. No sentence of the corpus is
written down: the examples are this project's own sentences."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path

from tqdm import tqdm

from attention_atlas.model.analysis.alignment.linker import find_linking_heads, linker
from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.analysis.survey.corpus import WINDOW, Corpus, encoded
from attention_atlas.model.analysis.survey.run import SurveyRun, save
from attention_atlas.model.analysis.why import averages
from attention_atlas.model.checkpoint import HEADS
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.program import (
    add_checkpoint,
    add_limit,
    add_output,
    command_line,
    destination,
    integer,
    program,
)
from attention_atlas.model.serve import processes
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.trace.survey.survey import OWN, DirectionSurvey, Survey
from attention_atlas.model.trace.why.means import Means
from attention_atlas.model.training import corpora
from attention_atlas.model.translator import Translator

LINKED = 100  # sentences on which heads are chosen that link words


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    path = destination(args, HEADS)
    if path is None:
        raise ValueError("--limit is for a try: say with --out where it is written")
    with processes.process_group():
        translator = Translator.load(args.checkpoint, args.device)
        check_transformer(translator.model)
        parts = path.with_name(f"{path.name}.parts")  # what is done so far
        found = {
            direction: survey(args, translator, direction, corpus, parts)
            for direction, corpus in chosen(args, translator).items()
        }
        if processes.rank() == 0:
            save(path, Survey(translator.name, translator.digest, found))
            shutil.rmtree(parts, ignore_errors=True)
            print(
                f"{path}: {', '.join(f'{d} {s.sentences} sentences' for d, s in found.items())}, "
                f"{path.stat().st_size:,} bytes"
            )


def survey(
    args: argparse.Namespace, translator: Translator, direction: str, corpus: Corpus, parts: Path
) -> DirectionSurvey | None:
    """One direction; None in processes other than the first. parts: a folder for what is done so far."""
    means = means_of(args, translator) if args.ablate else None
    first = [source for source, _ in islice(corpus.read(), LINKED) if encoded(translator, direction, source)]
    linked_by = find_linking_heads(translator, direction, first)
    run = SurveyRun(
        translator,
        direction,
        corpus,
        args.seed,
        args.ablate,
        means,
        linker(linked_by) if linked_by else None,
        parts,
    )
    rank, world = processes.rank(), processes.world_size()
    if rank == 0:
        run.gather()
    processes.barrier()
    total = min(run.windows * WINDOW, args.limit or run.windows * WINDOW)
    with tqdm(total=total, desc=direction, unit=" sentences", disable=rank > 0) as bar:
        # Of what all have done each process knows its own part: the bar shows that times their number.
        run.work(rank, world, watch=lambda done: bar.update(min(done * world * WINDOW, total) - bar.n))
    processes.barrier()
    return replace(run.result(), linked_by=linked_by) if rank == 0 else None


def chosen(args: argparse.Namespace, translator: Translator) -> dict[str, Corpus]:
    """The corpora by direction. ValueError where there is none."""
    directions = [translator.check_direction(d) for d in args.directions or translator.directions]
    if args.sentences:
        return {
            direction: Corpus(" and ".join(path.name for path in args.sentences), lambda: aligned(args))
            for direction in directions
        }
    if args.data:
        return {direction: held_out(args, direction) for direction in directions}
    return {direction: own_corpus(direction, args.limit) for direction in directions}


def own_corpus(direction: str, limit: int | None) -> Corpus:
    """This project's own sentences, at most `limit` of them. ValueError where there are none in the source language."""
    language = parse_direction(direction)[0]
    if language not in languages():
        raise ValueError(f"there are no sentences of this project's own in {language!r}: name a file with --sentences")
    return Corpus(OWN, lambda: ((line, "") for line in islice(sentences(language), limit)), own=True)


def aligned(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Pairs of the named files, one line after another. ValueError if they are not equally long."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, encoding="utf-8")) for path in args.sentences]
        for number, lines in enumerate(zip_longest(*files)):
            if number == args.limit:
                return
            if None in lines:
                raise ValueError(f"{' and '.join(map(str, args.sentences))} differ in length: line {number + 1}")
            source, target = (*(line.rstrip("\n") for line in lines), "")[:2]
            yield source, target


def held_out(args: argparse.Namespace, direction: str) -> Corpus:
    """The dev parts of the corpora in the data folder."""
    names, pairs = corpora.dev_pairs(args.data, direction, args.limit)
    return Corpus(", ".join(names), lambda: iter(pairs))


def means_of(args: argparse.Namespace, translator: Translator) -> Means:
    """Those beside the weights. ValueError if they are not there."""
    path = args.checkpoint / averages.FILE
    if not path.is_file():
        raise ValueError(f"{path} is missing: run attention-atlas means, or leave out --ablate")
    return averages.load(path, translator)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("attention-atlas survey", __doc__)
    add = parser.add_argument
    add_checkpoint(parser)
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
    add_limit(parser)
    add_output(parser, HEADS)
    add(
        "--ablate",
        type=integer(0),
        default=0,
        metavar="N",
        help="switch every head off on the first N sentences; default 0",
    )
    add("--seed", type=int, default=0, help="of the bootstrap; default 0")
    args = parser.parse_args(argv)
    if args.sentences and (args.data or len(args.sentences) > 2):
        parser.error("--sentences takes one or two files, and no --data beside them")
    return args


if __name__ == "__main__":
    program(main)
