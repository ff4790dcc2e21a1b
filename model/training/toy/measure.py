"""How much difference a switch makes: python -m model.training.toy.measure --help

Writes measured.json beside itself, for the page. Five seeds of each setting on the default
corpus; the loss over the whole corpus after a few numbers of updates.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from model.files import read_json, write_json
from model.program import check_free, command_line, program
from model.training.toy import corpora
from model.training.toy.run import ToyRun
from model.training.toy.settings import ToySettings

FILE = Path(__file__).with_name("measured.json")
SEEDS, UPDATES = range(1, 6), (20, 50, 100)
SWITCHES: Mapping[str, dict] = {  # what the page shows as one switch -> the settings that differ from the default
    "default": {},
    "positions_none": {"positions": "none"},
    "positions_learned": {"positions": "learned"},
    "scale_scores": {"scale_scores": False},
    "residual": {"residual": False},
    "norm_first": {"norm_first": False},
    "dropout": {"dropout": 0.1},
    "label_smoothing": {"label_smoothing": 0.1},
    "optimizer": {"optimizer": "sgd"},
    "count_padding": {"count_padding": True},
}

Interval = tuple[float, float]


def losses(changes: dict, seed: int, updates: tuple[int, ...] = UPDATES) -> list[float]:
    """The loss over the whole default corpus after each of these numbers of updates."""
    run = ToyRun(corpora.read(corpora.CORPORA[corpora.DEFAULT].text), ToySettings(**changes, seed=seed))
    run.turn()
    run.turn(updates=max(updates))
    by_update = {frame.update: frame.loss for frame in run.frames}
    return [by_update[update] for update in updates]


def interval(changes: dict, update: int, seeds: range = SEEDS) -> Interval:
    """The smallest and the largest loss after so many updates over the seeds."""
    found = [losses(changes, seed, (update,))[0] for seed in seeds]
    return min(found), max(found)


def read(path: Path = FILE) -> dict[str, dict[int, Interval]]:
    """What was measured: switch -> updates -> the smallest and the largest loss of the seeds."""
    return {
        switch: {int(update): tuple(pair) for update, pair in rows.items()} for switch, rows in read_json(path).items()
    }


def apart(one: Interval, other: Interval) -> bool:
    """Whether no seed of the one is within the other's: a reliable difference."""
    return one[1] < other[0] or other[1] < one[0]


def main(argv: list[str] | None = None) -> None:
    parser = command_line("model.training.toy.measure", __doc__)
    parser.add_argument("--out", type=Path, default=FILE, help="where to write, default what the page shows")
    parser.add_argument("--replace", action="store_true", help="write over what is there already")
    args = parser.parse_args(argv)
    check_free(args.out, args.replace)
    torch.set_num_threads(1)
    found: dict[str, dict[str, list[float]]] = {}
    for switch, changes in SWITCHES.items():
        rows = [losses(changes, seed) for seed in SEEDS]
        found[switch] = {
            str(update): [round(min(column), 5), round(max(column), 5)] for update, column in zip(UPDATES, zip(*rows))
        }
        print(switch, json.dumps(found[switch]), file=sys.stderr)
    write_json(args.out, found)


if __name__ == "__main__":
    program(main)
