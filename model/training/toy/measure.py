"""Measure the effect of each switch of a toy: python -m attention_atlas.model.training.toy.measure --help

Writes measured.json beside this module, for the page: the loss over the whole corpus after 20, 50 and 100 updates, for
five seeds of each setting on the default corpus. The name of a setting that is measured elsewhere begins with a place:
"order" for the corpus of word order, "post" for that corpus with post-norm, "wide" for one head with d_k 128. With
--heads it writes heads.json instead: the loss by the number of heads, for ten seeds on the corpus that needs several.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from attention_atlas.model.files import read_json, write_json
from attention_atlas.model.program import CommandLine, refuse_existing, run_program
from attention_atlas.model.training.toy import corpora, settings
from attention_atlas.model.training.toy.run import ToyRun
from attention_atlas.model.training.toy.settings import ToySettings

FILE, HEADS_FILE = (Path(__file__).with_name(f"{name}.json") for name in ("measured", "heads"))
SEEDS, UPDATES = range(1, 6), (20, 50, 100)
CODES = ("none", "learned", "relative", "count", "normalised", "binary", "sine", "tutorial")
PLACES: Mapping[str, dict] = {"order": {}, "post": {"norm_first": False}, "wide": {"d_model": 128, "heads": 1}}
ON_ORDER = ("order", "post")  # on the corpus whose sentences differ only in word order
SIZES = {
    "heads": (1, 2, 8),
    "decoder_layers": (1,),
    "d_ff": (1, 4),
    "rate": (0.1, 0.3, 3, 10),
    "norm": ("new", "batch", "outside"),
}
CHANGED = {  # the settings that a switch changes to one other value
    "look_ahead_mask": False,
    "scale_scores": False,
    "scale_embedding": False,
    "residual": False,
    "norm_first": False,
    "biases": False,
    "separate": True,
    "own_output": True,
    "start": "torch",
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "feedforward_dropout": 0.1,
    "label_smoothing": 0.1,
    "warmup": False,
    "optimizer": "sgd",
    "count_padding": True,
    "softmax_twice": True,
    "hides_itself": True,
}
SWITCHES: Mapping[str, dict] = {  # a switch of the page -> the settings that differ from the default
    "default": {},
    **{f"positions_{code}": {"positions": code} for code in CODES},
    **{name: {name: value} for name, value in CHANGED.items()},
    "start_own_output": {"start": "torch", "own_output": True},
    **{f"{name}_{value}": {name: value} for name, values in SIZES.items() for value in values},
    "layers_1": {"layers": 1, "decoder_layers": 2},
    "momentum_0": {"optimizer": "sgd", "momentum": 0},
    "order default": {},
    **{f"order positions_{code}": {"positions": code} for code in CODES},
    "post default": {},
    "post positions_none": {"positions": "none"},
    "post positions_count": {"positions": "count"},
    "wide default": {},
    "wide scale_scores": {"scale_scores": False},
}

LOOKS, HEADS = "looks", settings.CHOICES["heads"]  # the corpus whose targets need several heads; their numbers
HEADS_SEEDS, HEADS_UPDATES = range(1, 11), (50, 100, 200)

Interval = tuple[float, float]


def default_of(switch: str) -> str:
    """Return the switch that this switch is compared with."""
    return f"{place} default" if (place := place_of(switch)) else "default"


def place_of(switch: str) -> str:
    """Return the place that a switch's name begins with; "" for the default corpus and sizes."""
    return switch.rpartition(" ")[0]


def losses(switch: str, seed: int, updates: tuple[int, ...] = UPDATES) -> list[float]:
    """Return the loss over a switch's whole corpus after each of these numbers of updates."""
    place = place_of(switch)
    corpus = "order" if place in ON_ORDER else corpora.DEFAULT
    return _train(corpus, {**PLACES.get(place, {}), **SWITCHES[switch]}, seed, updates)


def losses_by_heads(heads: int, seed: int, updates: tuple[int, ...] = HEADS_UPDATES) -> list[float]:
    """Return the loss over the corpus LOOKS after each of these numbers of updates, with its settings and this many
    heads of d_model / heads each."""
    return _train(LOOKS, {**corpora.CORPORA[LOOKS].settings, "heads": heads}, seed, updates)


def _train(corpus: str, changes: Mapping, seed: int, updates: tuple[int, ...]) -> list[float]:
    run = ToyRun(corpora.read(corpora.CORPORA[corpus].text), ToySettings(**{**changes, "seed": seed}))
    run.turn()
    run.turn(updates=max(updates))
    # A run ends early when its loss reaches the floor or is not finite.
    return [[frame.loss for frame in run.frames if frame.update <= update][-1] for update in updates]


def interval(switch: str, update: int, seeds: range = SEEDS) -> Interval:
    """Return the smallest and the largest loss of the seeds after an update."""
    values = [losses(switch, seed, (update,))[0] for seed in seeds]
    return min(values), max(values)


def read(path: Path = FILE) -> dict[str, dict[int, Interval]]:
    """Read the measurements: switch -> updates -> the smallest and the largest loss of the seeds."""
    return {
        switch: {int(update): tuple(pair) for update, pair in rows.items()} for switch, rows in read_json(path).items()
    }


def read_heads(path: Path = HEADS_FILE) -> dict[int, dict[int, list[float]]]:
    """Read the losses by heads: number of heads -> updates -> the loss of each seed."""
    return {
        int(heads): {int(update): losses for update, losses in rows.items()} for heads, rows in read_json(path).items()
    }


def is_reliable(first: Interval, second: Interval) -> bool:
    """Return whether the difference of two intervals is reliable: they do not overlap."""
    return first[1] < second[0] or second[1] < first[0]


def main(argv: list[str] | None = None) -> None:
    parser = CommandLine("python -m attention_atlas.model.training.toy.measure", __doc__)
    parser.add_argument("--out", type=Path, help="where to write, default what the page shows")
    parser.add_argument("--heads", action="store_true", help="measure by the number of heads")
    parser.add_argument("--switch", choices=SWITCHES, nargs="+", help="measure only these, update the file")
    parser.add_argument("--replace", action="store_true", help="write over what is there already")
    args = parser.parse_args(argv)
    args.out = args.out or (HEADS_FILE if args.heads else FILE)
    refuse_existing(args.out, args.replace or args.switch is not None)
    torch.set_num_threads(1)
    if args.heads:
        return write_json(args.out, {str(heads): _measure_heads(heads) for heads in HEADS})
    results: dict[str, dict[str, list[float]]] = read_json(args.out) if args.switch else {}
    for switch in args.switch or SWITCHES:
        rows = [losses(switch, seed) for seed in SEEDS]
        results[switch] = {
            str(update): [round(min(column), 5), round(max(column), 5)] for update, column in zip(UPDATES, zip(*rows))
        }
        print(switch, json.dumps(results[switch]), file=sys.stderr)
    write_json(args.out, {switch: results[switch] for switch in SWITCHES if switch in results})


def _measure_heads(heads: int) -> dict[str, list[float]]:
    rows = [losses_by_heads(heads, seed) for seed in HEADS_SEEDS]
    columns = {str(update): [round(loss, 5) for loss in column] for update, column in zip(HEADS_UPDATES, zip(*rows))}
    print(heads, json.dumps(columns), file=sys.stderr)
    return columns


if __name__ == "__main__":
    run_program(main)
