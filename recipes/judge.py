"""Find the training pairs of more/ that a model considers least probable.

    python -m recipes.judge --help

A pair is judged by the mean log-probability per token of its target (one half of the criterion of Junczys-Dowmunt
2018), compared with pairs of the same corpus with targets of similar length. Prints one mark for each pair to leave
out, for attention-atlas train --without.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

from attention_atlas.model import checkpoint
from attention_atlas.model.checkpoint import Checkpoint
from attention_atlas.model.program import CommandLine, run_program
from attention_atlas.model.trace.directions import parse_direction
from attention_atlas.model.training.batches import Examples, make_batch, plan_batches
from attention_atlas.model.training.sources.folder import read_folder
from recipes.marks import mark

LENGTHS = (6, 12, 24, 48)  # target tokens where another group begins: short sentences vary more
TOKENS = 4096  # target tokens that are read at once


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    judge, languages = checkpoint.load(args.checkpoint), parse_direction(args.direction)
    for splits in read_folder(args.data, [languages]):
        if splits.train.name in args.corpora:
            pairs = splits.train.oriented(args.direction)
            dropped = worst(pairs, *judged(judge, pairs, languages[1]), share=args.drop)
            print(f"{splits.train.name}: {len(dropped)} of {len(pairs)} are left out", file=sys.stderr)
            for pair in dropped:
                print(mark(pair))


@torch.inference_mode()
@torch.autocast("cpu", torch.bfloat16)
def judged(judge: Checkpoint, pairs: list[tuple[str, str]], target: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean log-probability per target token and the number of target tokens, both [pairs]."""
    model, tokenizer = judge.model.eval(), judge.tokenizer
    limit = model.config.max_length
    encoded = [(tokenizer.encode_source(s, target)[:limit], tokenizer.encode(t)[: limit - 1]) for s, t in pairs]
    examples = Examples.of(encoded)
    means = np.zeros(len(pairs))
    for rows in plan_batches(examples, TOKENS, seed=0, epoch=0):
        batch = make_batch(examples, rows, tokenizer)
        hidden, _ = model.decode(batch.inputs, model.encode(batch.source))
        real = batch.outputs != tokenizer.pad_id
        losses = torch.zeros(batch.outputs.shape)
        losses[real] = torch.nn.functional.cross_entropy(
            model.project(hidden[real]).float(), batch.outputs[real], reduction="none"
        )
        means[rows] = -(losses.sum(1) / real.sum(1)).numpy()
    return means, examples.target.lengths + 1


def worst(
    pairs: list[tuple[str, str]], means: np.ndarray, lengths: np.ndarray, *, share: float
) -> list[tuple[str, str]]:
    """Return the share of the pairs with the lowest means in each group of lengths."""
    groups, dropped = np.digitize(lengths, LENGTHS), []
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        dropped += rows[np.argsort(means[rows])][: round(share * len(rows))].tolist()
    return [pairs[row] for row in sorted(dropped)]


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = CommandLine("python -m recipes.judge", __doc__)
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), help="folder with more/")
    add("--corpora", nargs="+", required=True, help="the corpora to judge, such as subtitles dialogues")
    add("--checkpoint", type=Path, required=True, help="of the model that judges")
    add("--direction", required=True, help="such as de-en, one of the checkpoint's")
    add("--drop", type=float, default=0.08, help="share of each corpus to leave out, default %(default)s")
    args = parser.parse_args(argv)
    if not 0 <= args.drop < 1:
        parser.error(f"--drop is a share from 0 to 1, found {args.drop}")
    return args


if __name__ == "__main__":
    run_program(main)
