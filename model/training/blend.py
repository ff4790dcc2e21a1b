"""Weights between two checkpoints of one line of training: python -m model.training.blend --help

A run on new text forgets a little of the old; on the line between both weights there are often some that keep the most
of each (Wortsman et al. 2022, Robust fine-tuning of zero-shot models).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch

from model import checkpoint
from model.training import history
from model.training.history import History, Probe


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    blend(args.old, args.new, args.share, args.out)


def blend(old: Path, new: Path, share: float, out: Path) -> None:
    """Write old + share * (new - old), with the new one's log and history. ValueError if the two do not fit."""
    first, second = checkpoint.load(old), checkpoint.load(new)
    if first.model.config != second.model.config or first.tokenizer.model != second.tokenizer.model:
        raise ValueError(f"{old} and {new} differ in sizes or tokenizer: there is nothing between them")
    if not 0 <= share <= 1:
        raise ValueError(f"the new weights' share is from 0 to 1, found {share}")
    weights = second.model.state_dict()
    second.model.load_state_dict({name: torch.lerp(tensor.float(), weights[name].float(), share)
                                  for name, tensor in first.model.state_dict().items()})
    checkpoint.save(out, second.model, second.tokenizer, second.directions)
    log = new / "metrics.jsonl"
    if log.is_file():
        checkpoint.replace_file(out / log.name, lambda path: path.write_bytes(log.read_bytes()))
    if (new / history.NAME).is_file():
        written = checkpoint.load(out)
        with np.load(new / history.NAME, allow_pickle=False) as file:
            probes = tuple(Probe(**probe) for probe in json.loads(str(file["facts"]))["probes"])
        recorded = History(out / history.NAME, probes, second.tokenizer)
        recorded.load(new / history.NAME)
        recorded.digest = written.digest
        recorded.record(written.model, int(recorded.records[-1]["updates"]) - recorded.before)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m model.training.blend", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--old", type=Path, required=True, help="checkpoint folder that the run started from")
    add("--new", type=Path, required=True, help="checkpoint folder that the run made")
    add("--share", type=float, required=True, help="of the new weights, 0 to 1")
    add("--out", type=Path, required=True, help="checkpoint folder to write")
    return parser.parse_args(argv)


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"error: {error}")
