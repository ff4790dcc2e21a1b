"""Word alignments of two line-aligned files, by a checkpoint's heads: attention-atlas align --help

    attention-atlas align source.de target.en --checkpoint checkpoints/de-en > links

writes a line of links for each line (Pharaoh: 0-0 1-2, source first). The files are read in batches, whatever their
size; under torchrun, processes share them, and with --out a run that was stopped goes on. Words are what stands between
spaces. The heads are chosen without links by hand, on the first lines, by agreement with the model of the other
direction (--reverse), or of the maps' rows and columns.

    attention-atlas align --score gold.talp links

prints precision, recall and alignment error rate of links beside links by hand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice, zip_longest
from pathlib import Path

import numpy as np
from tqdm import tqdm

from attention_atlas.model.analysis.alignment.choose import (
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
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.program import add_checkpoint, check_free, command_line, integer, program
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
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator

FORWARD, BACKWARD = "forward", "backward"
LINES = 64  # at once
# In the order of the words, as far as it goes: the sentences of a batch together.
ORDERED: Mapping[str, Callable[[Sequence[np.ndarray]], list[Links]]] = {
    "path": lambda scores: [*map(link_by_path, scores)],
    "jumps": link_by_jumps,
}
WAYS = (FORWARD, BACKWARD, *SYMMETRISATIONS, *ORDERED)

Pair = tuple[list[str], list[str]]


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    if args.score:
        print(
            report(
                scored(
                    *args.score, gold_first=args.gold_first, links_first=args.links_first, reversed_links=args.reversed
                )
            )
        )
        return
    if args.out:
        check_free(args.out, args.replace)
    with processes.process_group():
        aligner = Aligner.load(args.checkpoint, args.direction, args.reverse, args.device)
        pairs = read_pairs(*args.files)
        first = list(islice(pairs, args.choose_on))
        chosen = aligner.choose([pair for pair in first if all(pair)])
        if processes.rank() == 0:
            print(described(chosen), file=sys.stderr)
        partial = args.out and args.out.with_name(f"{args.out.name}.{key(args, aligner, chosen)}.partial")
        share(aligner, chosen, args.symmetrise, chain(first, pairs), partial)
        if args.out and processes.rank() == 0:
            partial.replace(args.out)


def share(aligner: Aligner, chosen: AligningHeads, how: str, lines: Iterator[Pair], partial: Path | None) -> None:
    """Write the links of all lines, each process those of a batch in turn, in order; after those that stand in
    `partial` already. None writes to standard output."""
    rank, world = processes.rank(), processes.world_size()
    (written, *_) = processes.gather(whole_batches(partial) if partial and rank == 0 else 0)
    for _ in islice(lines, written):
        pass
    with (
        open(partial, "a", encoding="utf-8") if partial and rank == 0 else nullcontext(sys.stdout) as out,
        tqdm(unit=" lines", initial=written, disable=not sys.stderr.isatty() or rank > 0) as bar,
    ):
        while parts := [part for _ in range(world) if (part := list(islice(lines, LINES)))]:
            mine = aligner.align(parts[rank], chosen, how) if rank < len(parts) else []
            for found in processes.gather([to_pharaoh(links) for links in mine]):
                if rank == 0:
                    out.writelines(f"{line}\n" for line in found)
                bar.update(len(found))
            if rank == 0:
                out.flush()


def whole_batches(partial: Path) -> int:
    """How many lines of whole batches a run that was stopped left there. What follows them is cut off."""
    if not partial.exists():
        return 0
    with open(partial, "r+b") as file:
        lines, end, at = 0, 0, 0
        for number, line in enumerate(file, 1):
            at += len(line)
            if number % LINES == 0 and line.endswith(b"\n"):
                lines, end = number, at
        file.truncate(end)
    return lines


def key(args: argparse.Namespace, aligner: Aligner, chosen: AligningHeads) -> str:
    """By what a stopped run is known: other files, or files that were changed, weights, heads or options have another
    one."""
    weights = [one.digest for one in (aligner.translator, aligner.reverse) if one]
    files = [(found.st_size, found.st_mtime_ns) for found in map(Path.stat, args.files)]
    told = (weights, files, aligner.direction, args.symmetrise, described(chosen))
    return sha256(repr(told).encode()).hexdigest()[:8]


@dataclass(frozen=True, eq=False)
class Aligner:
    """A direction's model, and that of the other direction, or None."""

    translator: Translator
    direction: str
    reverse: Translator | None

    @classmethod
    def load(cls, folder: Path, direction: str | None, reverse: Path | None, device: str | None) -> Aligner:
        """ValueError where a model does not translate the direction, or the other one back, or is no Transformer."""
        translator = Translator.load(folder, device)
        direction = translator.check_direction(direction)
        other = Translator.load(reverse, device) if reverse else None
        if other:
            other.check_direction("-".join(reversed(parse_direction(direction))))
        for used in (translator, *([other] if other else [])):
            check_transformer(used.model)
        return cls(translator, direction, other)

    @property
    def back(self) -> str:
        """The other direction."""
        return "-".join(reversed(parse_direction(self.direction)))

    def choose(self, pairs: Sequence[Pair]) -> AligningHeads:
        """The heads, on these sentences."""
        forward = score_maps(self.translator, [encode_words(self.translator, self.direction, *pair) for pair in pairs])
        backward = (
            score_maps(
                self.reverse, [encode_words(self.reverse, self.back, target, source) for source, target in pairs]
            )
            if self.reverse
            else None
        )
        return choose_heads(
            forward,
            backward,
            among=_voters(self.translator),
            backward_among=_voters(self.reverse) if self.reverse else (),
        )

    def align(self, pairs: Sequence[Pair], chosen: AligningHeads, how: str) -> list[Links]:
        """Links of each pair, as link() finds them; none for a pair with an empty side."""
        real = [at for at, pair in enumerate(pairs) if all(pair)]
        found: list[Links] = [frozenset()] * len(pairs)
        kept = [pairs[at] for at in real]
        maps = score_maps(self.translator, [encode_words(self.translator, self.direction, *pair) for pair in kept])
        others = None
        if self.reverse and how != FORWARD:
            others = score_maps(self.reverse, [encode_words(self.reverse, self.back, *pair[::-1]) for pair in kept])
        for at, links in zip(real, link(maps, others, chosen, how)):
            found[at] = links
        return found


def link(
    maps: Sequence[SentenceMaps], others: Sequence[SentenceMaps] | None, chosen: AligningHeads, how: str
) -> list[Links]:
    """Links from score_maps() of one direction, and of the other one where a model translates back. how: one of WAYS.
    "forward" and "backward" go by the heads of one side, all others by both models' scores together: where one
    hesitates, the other's certainty decides."""
    rows = [average_heads(one, chosen.forward) for one in maps]
    if how == FORWARD:
        return [*map(link_by_rows, rows)]
    if others is None:
        columns = [average_heads(one, chosen.backward) for one in maps]
    else:
        columns = [average_heads(one, chosen.backward).T for one in others]
        if how != BACKWARD:
            rows = columns = [mine + theirs for mine, theirs in zip(rows, columns)]
    if how == BACKWARD:
        return [*map(link_by_columns, columns)]
    if how in ORDERED:
        return ORDERED[how](rows)
    return [SYMMETRISATIONS[how](link_by_rows(a), link_by_columns(b)) for a, b in zip(rows, columns)]


def _voters(translator: Translator) -> list:
    return all_voters(translator.model.num_layers[AttentionKind.CROSS], translator.model.num_heads[AttentionKind.CROSS])


def described(chosen: AligningHeads) -> str:
    """The chosen heads in a line a side."""

    def side(found: Sequence) -> str:
        return ", ".join(
            f"layer {v.layer + 1} head {v.head + 1} (row {v.row.value}{', by length' if v.by_length else ''})"
            for v in found
        )

    return f"agreement {chosen.agreement:.3f}\nforward:  {side(chosen.forward)}\nbackward: {side(chosen.backward)}"


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """Words of both files, line by line. ValueError if they are not equally long."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, encoding="utf-8")) for path in (source, target)]
        for number, lines in enumerate(zip_longest(*files), 1):
            if None in lines:
                raise ValueError(f"{source} and {target} differ in length: line {number}")
            yield lines[0].split(), lines[1].split()


def scored(gold: Path, links: Path, *, gold_first: int, links_first: int, reversed_links: bool) -> AlignmentScore:
    """Counts of a file of links beside a file of links by hand, pooled. gold_first, links_first: by which number each
    file calls a sentence's first word. ValueError, naming the line, for what is no link."""
    found = []
    with open(gold, encoding="utf-8") as ours, open(links, encoding="utf-8") as theirs:
        for number, lines in enumerate(zip_longest(ours, theirs), 1):
            if None in lines:
                raise ValueError(f"{gold} and {links} differ in length: line {number}")
            try:
                right, given = (
                    parse_links(lines[0], first=gold_first),
                    parse_links(lines[1], first=links_first).possible,
                )
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
            found.append(score_links(transpose_links(given) if reversed_links else given, right))
    return pool_scores(found)


def report(found: AlignmentScore) -> str:
    """In percent, as such scores are given."""
    return (
        f"precision {100 * found.precision:.2f}  recall {100 * found.recall:.2f}  "
        f"AER {100 * found.error_rate:.2f}  links {found.links}"
    )


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("attention-atlas align", __doc__)
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="source and target, line by line, words between spaces")
    add_checkpoint(parser)
    add("--direction", help="from the first file's language to the second's; default: the checkpoint's first")
    add("--reverse", type=Path, metavar="FOLDER", help="a checkpoint that translates back")
    add(
        "--symmetrise",
        choices=WAYS,
        default="grow-diag-final-and",
        help="how both directions are put together; default grow-diag-final-and. jumps is nearest to links by hand: it "
        "learns from the lines, some at a time, how far one goes from word to word; path never goes back",
    )
    add("--out", type=Path, metavar="FILE", help="write the links there; a run that was stopped goes on")
    add("--replace", action="store_true", help="write over what is there already")
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
    program(main)
