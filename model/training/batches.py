"""Parallel corpora -> sentence pairs -> length-bucketed, padded batches."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.nets.masks import pad
from model.text.interface import TextTokenizer

SOURCES = 2  # padded source tokens a batch may have, for each target token


@dataclass(frozen=True, eq=False)
class Batch:
    """Padded on the right. source [batch, source]; inputs `<s> y1 .. yT` and outputs `y1 .. yT </s>` [batch, target].
    tokens: outputs that are not padding, in the WHOLE batch, also where this is one process's share of it."""

    source: Tensor
    inputs: Tensor
    outputs: Tensor
    tokens: int

    def to(self, device: torch.device) -> Batch:
        return Batch(self.source.to(device), self.inputs.to(device), self.outputs.to(device), self.tokens)


@dataclass(frozen=True, eq=False)
class Examples:
    """Encoded pairs: source ids with their symbols, target ids without <s> and </s>."""

    source: list[Sequence[int]]
    target: list[Sequence[int]]

    @classmethod
    def encode(
        cls,
        pairs: list[tuple[str, str]],
        tokenizer: TextTokenizer,
        target_language: str,
        *,
        max_length: int,
        source_language: str | None = None,
    ) -> Examples:
        """Pairs longer than max_length tokens on either side are left out. Targets begin with what the family's decoder
        is made to begin with; source_language: for a tokenizer that names it before or after the text."""
        prefix = tokenizer.forced_prefix(target_language)
        encoded = [
            (tokenizer.encode_source(s, target_language, source_language), [*prefix, *tokenizer.encode(t)])
            for s, t in pairs
        ]
        kept = [(s, t) for s, t in encoded if len(s) <= max_length and len(t) < max_length]
        # A list of Python's numbers takes nine times as much memory.
        return cls([array("i", s) for s, _ in kept], [array("i", t) for _, t in kept])

    def epoch(self, number: int) -> Examples:
        """What an epoch sees: the same each time. A Mixture draws anew."""
        return self

    def __add__(self, other: Examples) -> Examples:
        return Examples(self.source + other.source, self.target + other.target)


def plan_batches(examples: Examples, tokens_per_batch: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """The epoch's batches as arrays of row numbers, in their order: a function of seed and epoch alone.

    Pairs of like length share a batch; padded target tokens stay within tokens_per_batch, padded source tokens within
    twice that (one pair at the least).
    """
    random = np.random.default_rng((seed, epoch))
    target = np.array([len(t) + 1 for t in examples.target])
    source = np.array([len(s) for s in examples.source])
    # A little noise in the sort keys makes other neighbours each epoch.
    order = np.lexsort((source + random.uniform(0, 3, len(source)), target + random.uniform(0, 1, len(target)).round()))
    # Without SOURCES a thousand targets of four tokens share a batch with one source of 37: ten times an update's time
    # and four times its memory.
    lengths, most = np.stack([target, source], axis=1), np.array([1, SOURCES]) * tokens_per_batch
    batches, start, longest = [], 0, np.zeros(2, dtype=int)
    for end, row in enumerate(order):
        longest = np.maximum(longest, lengths[row])
        if end > start and (longest * (end + 1 - start) > most).any():
            batches.append(order[start:end])
            start, longest = end, lengths[row]
    if start < len(order):
        batches.append(order[start:])
    return [batches[i] for i in random.permutation(len(batches))]


def make_batch(
    examples: Examples, rows: np.ndarray, tokenizer: TextTokenizer, *, rank: int = 0, world_size: int = 1
) -> Batch:
    """The batch of these rows, or process `rank`'s share of it.

    A process for which no row is left gets one pair with nothing but padding to predict: every process then runs the
    same computation, and that one adds nothing to loss or gradient.
    """
    mine = rows[rank::world_size]
    shown = mine if len(mine) else rows[:1]
    target = [examples.target[i] for i in shown]
    outputs = pad([[*t, tokenizer.end_id] for t in target], tokenizer.pad_id)
    return Batch(
        source=pad([examples.source[i] for i in shown], tokenizer.pad_id),
        inputs=pad([[tokenizer.begin_id, *t] for t in target], tokenizer.pad_id),
        outputs=outputs if len(mine) else torch.full_like(outputs, tokenizer.pad_id),
        tokens=sum(len(examples.target[i]) + 1 for i in rows),
    )
