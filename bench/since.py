"""What a translation costs next to an earlier commit: python -m bench.since --help

Both trees translate the same sentence in processes of their own, in turns, on one thread: processor time, as a ratio of
neighbours in time. Processes differ by where their memory lies, so there are several pairs, and the earlier commit is
compared with itself, too: what that shows is noise. By default the commit is the one before edits came, since a pass
without edits is to cost what it did.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from attention_atlas.model.program import CHECKPOINT, add_json, command_line, integer, parse_args, program
from bench.speed import Measurement, table

BEFORE_EDITS = "a1c2cac"
HERE = Path(__file__).resolve().parents[1]
TEXT = "Der kleine Hund schläft unter dem großen Tisch."
# Run in either tree, so with what both have: takes lines "what times" and answers with the processor time of each.
WORKER = """
import sys, time, torch
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.translator import Translator

torch.set_num_threads(1)
translator = Translator.load(sys.argv[1], "cpu")
ids = translator.translate(sys.argv[2]).target_ids
with torch.inference_mode():
    memory = translator.model.encode(torch.tensor([translator.encode(sys.argv[2])]))
decoder = StepDecoder(translator.model, memory, torch.tensor([[translator.tokenizer.begin_id]]))
token = torch.tensor([ids[0]])

def translate():
    translator.translate(sys.argv[2])

def steps():
    for _ in range(len(ids)):
        decoder.append(token)
    decoder.prefix = decoder.prefix[:, :1]
    decoder.cache.truncate(1)

for line in sys.stdin:
    what, times = line.split()
    one = {"translate": translate, "steps": steps}[what]
    started = time.process_time()
    for _ in range(int(times)):
        one()
    print((time.process_time() - started) / int(times), flush=True)
"""


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    with tempfile.TemporaryDirectory() as folder, worktree(args.commit, Path(folder) / "tree") as before:
        found = [row for what in args.what for row in measured(what, before, args)]
    print(table(found))
    if args.json:
        args.json.write_text(json.dumps([asdict(m) for m in found], indent=2) + "\n", encoding="utf-8")


def measured(what: str, before: Path, args: argparse.Namespace) -> Iterator[Measurement]:
    """Milliseconds of both trees, and how many percent more this one takes, with an interval of 95 %; then the same of
    the earlier tree and itself."""
    for name, other in ((what, HERE), (f"{what}_noise", before)):
        pairs = np.array([in_turns(what, (before, other), args) for _ in range(args.pairs)])  # [pair, round, tree]
        more = 100 * (pairs[..., 1] / pairs[..., 0] - 1)
        if other == HERE:
            yield Measurement(f"{what}_before", 1e3 * float(np.median(pairs[..., 0])), "ms")
            yield Measurement(f"{what}_now", 1e3 * float(np.median(pairs[..., 1])), "ms")
        low, high = interval(more)
        yield Measurement(f"{name}_more", float(np.median(more)), "%")
        yield Measurement(f"{name}_more_from", low, "%")
        yield Measurement(f"{name}_more_to", high, "%")


def interval(more: np.ndarray) -> tuple[float, float]:
    """Of the median of more [pair, round], with 95 %: pairs are drawn anew, and rounds within each."""
    random = np.random.default_rng(0)
    pairs, rounds = more.shape
    found = [
        np.median(more[random.integers(pairs, size=pairs)[:, None], random.integers(rounds, size=(pairs, rounds))])
        for _ in range(2000)
    ]
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)


def in_turns(what: str, trees: tuple[Path, Path], args: argparse.Namespace) -> list[tuple[float, ...]]:
    """Seconds [round, tree] of two new processes; who begins changes from round to round."""
    with ExitStack() as stack:
        both = [stack.enter_context(worker(tree, args.checkpoint)) for tree in trees]
        rounds = []
        for number in range(-2, args.rounds):  # the first two warm up
            order = (0, 1) if number % 2 else (1, 0)
            seconds = {index: timed(both[index], what, args.times) for index in order}
            rounds.append((seconds[0], seconds[1]))
        return rounds[2:]


def timed(process: subprocess.Popen[str], what: str, times: int) -> float:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{what} {times}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise ValueError(f"the process that translates ended with {process.wait()}: see above")
    return float(answer)


@contextmanager
def worker(tree: Path, checkpoint: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WORKER, str(checkpoint.resolve()), TEXT]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()  # it ends when nothing more is asked


@contextmanager
def worktree(commit: str, folder: Path) -> Iterator[Path]:
    """The files of a commit, without touching this tree. ValueError for one that this repository has not."""
    git = ["git", "-C", str(HERE)]
    made = subprocess.run([*git, "archive", commit, "model"], capture_output=True)
    if made.returncode:
        raise ValueError(f"{commit} is no commit of this repository: {made.stderr.decode().strip()}")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=made.stdout, check=True)
    yield folder


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = command_line("python -m bench.since", __doc__)
    add = parser.add_argument
    add("--commit", default=BEFORE_EDITS, help=f"that is compared with, default {BEFORE_EDITS}, before edits came")
    add("--what", nargs="+", choices=("translate", "steps"), default=["translate", "steps"], help="default: both")
    add("--checkpoint", type=Path, default=CHECKPOINT, help=f"default {CHECKPOINT}")
    add("--pairs", type=integer(), default=5, help="of processes, default 5")
    add("--rounds", type=integer(), default=40, help="that a pair takes turns, default 40")
    add("--times", type=integer(), default=5, help="that either translates in its turn, default 5")
    add_json(parser)
    return parse_args(parser, argv)


if __name__ == "__main__":
    program(main)
