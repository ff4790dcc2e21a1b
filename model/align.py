"""Align the words of two line-aligned files by a checkpoint's cross-attention: attention-atlas align --help

    attention-atlas align source.de target.en --checkpoint checkpoints/de-en > links

writes a line of links for each line (Pharaoh format: 0-0 1-2, source first). Words are separated by spaces. The files
are read in batches, whatever their size. Processes of torchrun share them, and a stopped run with --out continues when
it is started again. The heads are chosen without links by hand, on the first lines, by the agreement of two readings:
of this model and the model of the other direction (--reverse), or of the maps' rows and columns.

    attention-atlas align --score gold.talp links

prints precision, recall and alignment error rate of links against links by hand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path

import numpy as np
from tqdm import tqdm

from attention_atlas.model.analysis.alignment.links import (
    AligningHeads,
    SentenceMaps,
    all_voters,
    average_heads,
    choose_heads,
    encode_words,
    link_by_columns,
    link_by_rows,
    score_maps,
)
from attention_atlas.model.analysis.alignment.monotone import link_by_jumps, link_by_path
from attention_atlas.model.files import read_parallel, value_errors
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.program import CommandLine, integer, refuse_existing, run_program
from attention_atlas.model.serve import processes
from attention_atlas.model.trace.alignment import (
    SYMMETRISATIONS,
    AlignmentScore,
    Links,
    parse_links,
    pool_scores,
    score_links,
    to_pharaoh,
    transpose_links,
)
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.translator import Translator

FORWARD, BACKWARD = "forward", "backward"
BATCH = 64  # lines
# Modes that follow the order of the words; they link the sentences of a batch together.
ORDERED: Mapping[str, Callable[[Sequence[np.ndarray]], list[Links]]] = {
    "path": lambda scores: [*map(link_by_path, scores)],
    "jumps": link_by_jumps,
}
MODES = (FORWARD, BACKWARD, *SYMMETRISATIONS, *ORDERED)

Pair = tuple[list[str], list[str]]


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    if args.score:
        gold_first, links_first = args.gold_first, args.links_first
        score = score_files(*args.score, gold_first=gold_first, links_first=links_first, reversed_links=args.reversed)
        print(
            f"precision {100 * score.precision:.2f}  recall {100 * score.recall:.2f}  "
            f"AER {100 * score.error_rate:.2f}  links {score.links}"
        )
        return
    if args.out:
        refuse_existing(args.out, args.replace)
    with processes.process_group():
        aligner = Aligner.load(args.checkpoint, args.direction, args.reverse, args.device)
        pairs = read_pairs(*args.files)
        first = list(islice(pairs, args.choose_on))
        heads = aligner.choose_heads([pair for pair in first if all(pair)])
        if processes.rank() == 0:
            print(describe_heads(heads), file=sys.stderr)
        partial = args.out and args.out.with_name(f"{args.out.name}.{run_key(args, aligner, heads)}.partial")
        write_links(aligner, heads, args.symmetrise, chain(first, pairs), partial)
        if args.out and processes.rank() == 0:
            partial.replace(args.out)


def write_links(aligner: Aligner, heads: AligningHeads, mode: str, pairs: Iterator[Pair], partial: Path | None) -> None:
    """Write the links of all lines in order; the processes align batches in turn.

    partial: the file of an unfinished run, which is continued; None: standard output.
    """
    rank, world = processes.rank(), processes.world_size()
    (done, *_) = processes.gather(truncate_to_batches(partial) if partial and rank == 0 else 0)
    for _ in islice(pairs, done):
        pass
    with (
        open(partial, "a", encoding="utf-8") if partial and rank == 0 else nullcontext(sys.stdout) as out,
        tqdm(unit=" lines", initial=done, disable=not sys.stderr.isatty() or rank > 0) as bar,
    ):
        while parts := [part for _ in range(world) if (part := list(islice(pairs, BATCH)))]:
            links = aligner.align(parts[rank], heads, mode) if rank < len(parts) else []
            for lines in processes.gather([*map(to_pharaoh, links)]):
                if rank == 0:
                    out.writelines(f"{line}\n" for line in lines)
                bar.update(len(lines))
            if rank == 0:
                out.flush()


def truncate_to_batches(partial: Path) -> int:
    """Cut a stopped run's file after its last whole batch. Returns the number of lines left."""
    if not partial.exists():
        return 0
    with open(partial, "r+b") as file:
        lines = end = position = 0
        for number, line in enumerate(file, 1):
            position += len(line)
            if number % BATCH == 0 and line.endswith(b"\n"):
                lines, end = number, position
        file.truncate(end)
    return lines


def run_key(args: argparse.Namespace, aligner: Aligner, heads: AligningHeads) -> str:
    """Return a key of a run's files, weights, heads and options, by which a stopped run is recognized."""
    weights = [translator.digest for translator in (aligner.translator, aligner.reverse) if translator]
    files = [(stat.st_size, stat.st_mtime_ns) for stat in map(Path.stat, args.files)]
    identity = (weights, files, aligner.direction, args.symmetrise, describe_heads(heads))
    return sha256(repr(identity).encode()).hexdigest()[:8]


@dataclass(frozen=True, eq=False)
class Aligner:
    """A model of a direction, and a model of the other direction or None."""

    translator: Translator
    direction: str
    reverse: Translator | None

    @classmethod
    def load(cls, folder: Path, direction: str | None, reverse: Path | None, device: str | None) -> Aligner:
        """Load the models. Raises ValueError if one does not translate its direction or is no Transformer."""
        translator = Translator.load(folder, device)
        direction = translator.check_direction(direction)
        aligner = cls(translator, direction, Translator.load(reverse, device) if reverse else None)
        check_transformer(translator.model)
        if aligner.reverse:
            aligner.reverse.check_direction(aligner.back)
            check_transformer(aligner.reverse.model)
        return aligner

    @property
    def back(self) -> str:
        """The other direction."""
        return "-".join(reversed(parse_direction(self.direction)))

    def score_maps(self, pairs: Sequence[Pair]) -> Sequence[SentenceMaps]:
        """Return the maps of the direction's model for each pair."""
        return score_maps(self.translator, [encode_words(self.translator, self.direction, *pair) for pair in pairs])

    def score_back(self, pairs: Sequence[Pair]) -> Sequence[SentenceMaps] | None:
        """Return the maps of the other direction's model for each pair, None without such a model."""
        if not self.reverse:
            return None
        return score_maps(self.reverse, [encode_words(self.reverse, self.back, *pair[::-1]) for pair in pairs])

    def choose_heads(self, pairs: Sequence[Pair]) -> AligningHeads:
        """Return the heads that agree best on these sentences."""
        return choose_heads(
            self.score_maps(pairs),
            self.score_back(pairs),
            among=all_voters(self.translator.model),
            backward_among=all_voters(self.reverse.model) if self.reverse else (),
        )

    def align(self, pairs: Sequence[Pair], heads: AligningHeads, mode: str) -> list[Links]:
        """Return the links of each pair by link_words(), none for a pair with an empty side."""
        rows = [i for i, pair in enumerate(pairs) if all(pair)]
        filled = [pairs[i] for i in rows]
        back_maps = None if mode == FORWARD else self.score_back(filled)
        links = dict(zip(rows, link_words(self.score_maps(filled), back_maps, heads, mode)))
        return [links.get(i, frozenset()) for i in range(len(pairs))]


def link_words(
    maps: Sequence[SentenceMaps], back_maps: Sequence[SentenceMaps] | None, heads: AligningHeads, mode: str
) -> list[Links]:
    """Return the links of sentences from the maps of one direction and, if there is such a model, of the other.

    mode: one of MODES. "forward" and "backward" use the heads of one side. All other modes add both models' scores, so
    that the more certain model decides.
    """
    rows = [average_heads(sentence, heads.forward) for sentence in maps]
    if mode == FORWARD:
        return [*map(link_by_rows, rows)]
    if back_maps is None:
        columns = [average_heads(sentence, heads.backward) for sentence in maps]
    else:
        columns = [average_heads(sentence, heads.backward).T for sentence in back_maps]
        if mode != BACKWARD:
            rows = columns = [forward + backward for forward, backward in zip(rows, columns)]
    if mode == BACKWARD:
        return [*map(link_by_columns, columns)]
    if mode in ORDERED:
        return ORDERED[mode](rows)
    return [SYMMETRISATIONS[mode](link_by_rows(a), link_by_columns(b)) for a, b in zip(rows, columns)]


def describe_heads(heads: AligningHeads) -> str:
    """Return the agreement of the chosen heads, and the heads of each side on a line."""

    def side(voters: Sequence) -> str:
        return ", ".join(
            f"layer {v.layer + 1} head {v.head + 1} (row {v.row.value}{', by length' if v.by_length else ''})"
            for v in voters
        )

    return f"agreement {heads.agreement:.3f}\nforward:  {side(heads.forward)}\nbackward: {side(heads.backward)}"


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """Yield the words of both files, line by line. Raises ValueError if the files differ in length."""
    for left, right in read_parallel(source, target):
        yield left.split(), right.split()


def score_files(
    gold: Path, links: Path, *, gold_first: int = 1, links_first: int = 0, reversed_links: bool = False
) -> AlignmentScore:
    """Score a file of links against a file of links by hand, pooled over the lines.

    gold_first, links_first: the number of a sentence's first word in each file, 0 or 1. Raises ValueError, naming the
    line, for anything that is no link.
    """
    scores = []
    for number, (gold_line, line) in enumerate(read_parallel(gold, links), 1):
        with value_errors(f"line {number}"):
            reference = parse_links(gold_line, first=gold_first)
            candidate = parse_links(line, first=links_first).possible
        scores.append(score_links(transpose_links(candidate) if reversed_links else candidate, reference))
    return pool_scores(scores)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("attention-atlas align", __doc__)
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="source and target, line by line, words between spaces")
    parser.add_checkpoint()
    add("--direction", help="from the first file's language to the second's; default: the checkpoint's first")
    add("--reverse", type=Path, metavar="FOLDER", help="a checkpoint that translates back")
    add(
        "--symmetrise",
        choices=MODES,
        default="grow-diag-final-and",
        help="how both directions are combined; default grow-diag-final-and. jumps is closest to links by hand: it "
        "learns from the lines how far one goes from word to word; path never goes back",
    )
    add("--out", type=Path, metavar="FILE", help="write the links there; a stopped run continues")
    add("--replace", action="store_true", help="overwrite an existing file")
    add("--choose-on", type=integer(), default=100, metavar="N", help="lines to choose heads on; default 100")
    add("--score", nargs=2, type=Path, metavar=("GOLD", "LINKS"), help="score a file of links and do nothing else")
    add("--gold-first", type=int, choices=(0, 1), default=1, help="number of the first word in GOLD; default 1")
    add("--links-first", type=int, choices=(0, 1), default=0, help="the same in LINKS; default 0")
    add("--reversed", action="store_true", help="LINKS have the target first")
    args = parser.parse_args(argv)
    if not args.score and len(args.files) != 2:
        parser.error(f"expected two files, found {len(args.files)}")
    return args


if __name__ == "__main__":
    run_program(main)
