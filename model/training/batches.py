"""Encode sentence pairs and group them into padded batches of similar length."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.text.interface import TextTokenizer

Encoded = tuple[array, array]  # source ids with symbols, target ids without <s> and </s>
SOURCES = 2  # the maximum of padded source tokens in a batch, as a multiple of the target tokens


class Packing(NamedTuple):
    """Which pair of its row each token of a packed batch belongs to, and its position in that pair.

    Pairs are counted from 1, and padding has 0. All int64: source [batch, source], target [batch, target].
    """

    source_pairs: Tensor
    source_positions: Tensor
    target_pairs: Tensor
    target_positions: Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch, padded on the right.

    source   [batch, source]
    inputs   [batch, target]: `<s> y1 .. yT`
    outputs  [batch, target]: `y1 .. yT </s>`
    tokens   the number of output tokens in the whole batch, even if this is one process's share of it
    packing  where a row has several pairs, one after the other; None: a row has one pair
    """

    source: Tensor
    inputs: Tensor
    outputs: Tensor
    tokens: int
    packing: Packing | None = None

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device. A copy to CUDA is queued: the host goes on to prepare the next update."""
        is_queued = device.type == "cuda" and torch.cuda.is_initialized()

        def place(tensor: Tensor) -> Tensor:
            if is_queued and tensor.device.type == "cpu":
                return tensor.pin_memory().to(device, non_blocking=True)
            return tensor.to(device)

        packing = None if self.packing is None else Packing(*map(place, self.packing))
        return Batch(place(self.source), place(self.inputs), place(self.outputs), self.tokens, packing)


class Rows(Sequence):
    """Token sequences in one flat array, which takes a ninth of the memory of lists and is fast to batch and to send.

    ids      int32, all sequences in a row
    lengths  int64 [rows]
    starts   int64 [rows]
    """

    def __init__(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        self.ids, self.lengths = ids, lengths
        self.starts = np.cumsum(lengths) - lengths

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Rows:
        """Make rows of sequences."""
        joined = b"".join(ids if isinstance(ids, array) else array("i", ids) for ids in sequences)
        return cls(np.frombuffer(joined, dtype=np.int32), np.fromiter(map(len, sequences), np.int64, len(sequences)))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> list[int]:
        start = self.starts[row]
        return self.ids[start : start + self.lengths[row]].tolist()

    def __add__(self, other: Rows) -> Rows:
        ids, lengths = ([getattr(rows, name) for rows in (self, other)] for name in ("ids", "lengths"))
        return Rows(np.concatenate(ids), np.concatenate(lengths))

    def take(self, rows: np.ndarray) -> Rows:
        """Return the rows with these numbers, int64 [n], in this order."""
        lengths = self.lengths[rows]
        before = np.cumsum(lengths) - lengths
        positions = np.arange(lengths.sum()) + np.repeat(self.starts[rows] - before, lengths)
        return Rows(self.ids[positions], lengths)

    def pad(self, rows: np.ndarray, pad_id: int, *, before: int = 0, after: int = 0) -> np.ndarray:
        """Return rows padded with `before` columns on the left and at least `after` on the right: int64 [rows, before +
        longest + after]."""
        lengths = self.lengths[rows, None]
        column = np.arange(lengths.max(initial=0) + before + after) - before
        is_token = (column >= 0) & (column < lengths)
        padded = np.full(is_token.shape, pad_id, dtype=np.int64)
        padded[is_token] = self.ids[(self.starts[rows, None] + column)[is_token]]
        return padded


@dataclass(frozen=True, eq=False)
class Examples:
    """Encoded pairs: source ids with their symbols, target ids without <s> and </s>."""

    source: Rows
    target: Rows

    @classmethod
    def of(cls, pairs: Sequence[Encoded | tuple[list[int], list[int]]]) -> Examples:
        """Make examples from encoded pairs."""
        return cls(Rows.of([source for source, _ in pairs]), Rows.of([target for _, target in pairs]))

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
        """Encode the pairs that are not longer than max_length."""
        languages = (source_language, target_language)
        encoded = (encode(pair, tokenizer, languages, max_length=max_length) for pair in pairs)
        return cls.of([pair for pair in encoded if pair])

    def __len__(self) -> int:
        return len(self.source)

    def __add__(self, other: Examples) -> Examples:
        return Examples(self.source + other.source, self.target + other.target)

    def take(self, rows: np.ndarray) -> Examples:
        """Return the pairs with these numbers, int64 [n], in this order."""
        return Examples(self.source.take(rows), self.target.take(rows))

    def epoch(self, number: int) -> Examples:
        """Return the examples of an epoch: always the same. (A Mixture draws new ones.)"""
        return self


def encode(
    pair: tuple[str, str], tokenizer: TextTokenizer, languages: tuple[str | None, str], *, max_length: int
) -> Encoded | None:
    """Encode a pair; None if it has more than max_length tokens on either side.

    Targets begin with the family's forced prefix. The source language may be None for tokenizers without a language
    symbol for the source.
    """
    source = tokenizer.encode_source(pair[0], languages[1], languages[0])
    target = [*tokenizer.forced_prefix(languages[1]), *tokenizer.encode(pair[1])]
    return (array("i", source), array("i", target)) if len(source) <= max_length and len(target) < max_length else None


def plan_batches(examples: Examples, tokens_per_batch: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """Return the batches of an epoch as arrays of row numbers, determined by seed and epoch.

    Pairs of similar length share a batch. Each batch has at least one pair, at most tokens_per_batch padded target
    tokens and at most SOURCES times as many padded source tokens.
    """
    random = np.random.default_rng((seed, epoch))
    target, source = examples.target.lengths + 1, examples.source.lengths
    # Noise in the sort keys groups the pairs differently in each epoch.
    order = np.lexsort((source + random.uniform(0, 3, len(source)), target + random.uniform(0, 1, len(target)).round()))
    # Without the limit on source tokens, a thousand targets of four tokens could share a batch with one source of 37:
    # ten times the time of an update and four times its memory.
    target, source = target.tolist(), source.tolist()
    batches, start, longest, widest = [], 0, 0, 0
    for end, row in enumerate(order.tolist()):
        longest, widest = max(longest, target[row]), max(widest, source[row])
        size = end + 1 - start
        if end > start and (longest * size > tokens_per_batch or widest * size > SOURCES * tokens_per_batch):
            batches.append(order[start:end])
            start, longest, widest = end, target[row], source[row]
    if start < len(order):
        batches.append(order[start:])
    return [batches[i] for i in random.permutation(len(batches))]


def make_batch(
    examples: Examples, rows: np.ndarray, tokenizer: TextTokenizer, *, rank: int = 0, world_size: int = 1
) -> Batch:
    """Return the batch of these rows, or process `rank`'s share of it.

    A process without rows gets one pair whose outputs are all padding, so that every process runs the same computation;
    that pair contributes nothing to loss or gradient.
    """
    mine = rows[rank::world_size]
    used = mine if len(mine) else rows[:1]
    inputs = examples.target.pad(used, tokenizer.pad_id, before=1)
    inputs[:, 0] = tokenizer.begin_id
    outputs = examples.target.pad(used, tokenizer.pad_id, after=1)
    outputs[np.arange(len(used)), examples.target.lengths[used]] = tokenizer.end_id
    if not len(mine):
        outputs[:] = tokenizer.pad_id
    return Batch(
        source=torch.from_numpy(examples.source.pad(used, tokenizer.pad_id)),
        inputs=torch.from_numpy(inputs),
        outputs=torch.from_numpy(outputs),
        tokens=int((examples.target.lengths[rows] + 1).sum()),
    )
