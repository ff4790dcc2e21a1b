"""Parallel corpora -> sentence pairs -> length-bucketed, padded batches."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.text.interface import TextTokenizer

Encoded = tuple[array, array]  # a pair's source ids with their symbols, and its target ids without <s> and </s>
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


class Rows(Sequence):
    """Sequences of ids one behind the other: two arrays in place of a million lists, which take nine times as much
    memory and as many steps to batch or to hand to another process. ids int32; lengths and starts int64 [rows]."""

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        joined = b"".join(ids if isinstance(ids, array) else array("i", ids) for ids in sequences)
        self._hold(np.frombuffer(joined, dtype=np.int32), np.fromiter(map(len, sequences), np.int64, len(sequences)))

    def _hold(self, ids: np.ndarray, lengths: np.ndarray) -> Rows:
        self.ids, self.lengths = ids, lengths
        self.starts = np.cumsum(lengths) - lengths
        return self

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> list[int]:
        start = self.starts[row]
        return self.ids[start : start + self.lengths[row]].tolist()

    def __add__(self, other: Rows) -> Rows:
        ids, lengths = ([getattr(one, name) for one in (self, other)] for name in ("ids", "lengths"))
        return Rows.__new__(Rows)._hold(np.concatenate(ids), np.concatenate(lengths))

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows, int64 [taken], in that order."""
        lengths = self.lengths[rows]
        before = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(self.starts[rows] - before, lengths)
        return Rows.__new__(Rows)._hold(self.ids[places], lengths)

    def padded(self, rows: np.ndarray, pad_id: int, *, before: int = 0, after: int = 0) -> np.ndarray:
        """Some of the rows, int64 [rows, before + longest + after], padded on both sides: with so many columns on the
        left, and at least so many on the right."""
        lengths = self.lengths[rows, None]
        column = np.arange(lengths.max(initial=0) + before + after) - before
        real = (column >= 0) & (column < lengths)
        found = np.full(real.shape, pad_id, dtype=np.int64)
        found[real] = self.ids[(self.starts[rows, None] + column)[real]]
        return found


@dataclass(frozen=True, eq=False)
class Examples:
    """Encoded pairs: source ids with their symbols, target ids without <s> and </s>."""

    source: Rows
    target: Rows

    @classmethod
    def of(cls, pairs: Sequence[Encoded | tuple[list[int], list[int]]]) -> Examples:
        """Of pairs that are encoded already."""
        return cls(Rows([source for source, _ in pairs]), Rows([target for _, target in pairs]))

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
        """Of those pairs that are short enough."""
        languages = (source_language, target_language)
        found = (encode(pair, tokenizer, languages, max_length=max_length) for pair in pairs)
        return cls.of([pair for pair in found if pair])

    def __len__(self) -> int:
        return len(self.source)

    def __add__(self, other: Examples) -> Examples:
        return Examples(self.source + other.source, self.target + other.target)

    def take(self, rows: np.ndarray) -> Examples:
        """Some of the pairs, int64 [taken], in that order."""
        return Examples(self.source.take(rows), self.target.take(rows))

    def epoch(self, number: int) -> Examples:
        """What an epoch sees: the same each time. A Mixture draws anew."""
        return self


def encode(
    pair: tuple[str, str], tokenizer: TextTokenizer, languages: tuple[str | None, str], *, max_length: int
) -> Encoded | None:
    """None for a pair longer than max_length tokens on either side.
    Targets begin with what the family's decoder is made to begin with; a source's language is for a tokenizer that
    names it before or after the text, and may be None for others."""
    source = tokenizer.encode_source(pair[0], languages[1], languages[0])
    target = [*tokenizer.forced_prefix(languages[1]), *tokenizer.encode(pair[1])]
    return (array("i", source), array("i", target)) if len(source) <= max_length and len(target) < max_length else None


def plan_batches(examples: Examples, tokens_per_batch: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """The epoch's batches as arrays of row numbers, in their order: a function of seed and epoch alone.

    Pairs of like length share a batch; padded target tokens stay within tokens_per_batch, padded source tokens within
    twice that (one pair at the least).
    """
    random = np.random.default_rng((seed, epoch))
    target, source = examples.target.lengths + 1, examples.source.lengths
    # A little noise in the sort keys makes other neighbours each epoch.
    order = np.lexsort((source + random.uniform(0, 3, len(source)), target + random.uniform(0, 1, len(target)).round()))
    # Without SOURCES a thousand targets of four tokens share a batch with one source of 37: ten times an update's time
    # and four times its memory.
    target, source = target.tolist(), source.tolist()
    batches, start, longest, widest = [], 0, 0, 0
    for end, row in enumerate(order.tolist()):
        longest, widest = max(longest, target[row]), max(widest, source[row])
        many = end + 1 - start
        if end > start and (longest * many > tokens_per_batch or widest * many > SOURCES * tokens_per_batch):
            batches.append(order[start:end])
            start, longest, widest = end, target[row], source[row]
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
    inputs = examples.target.padded(shown, tokenizer.pad_id, before=1)
    inputs[:, 0] = tokenizer.begin_id
    outputs = examples.target.padded(shown, tokenizer.pad_id, after=1)
    outputs[np.arange(len(shown)), examples.target.lengths[shown]] = tokenizer.end_id
    if not len(mine):
        outputs[:] = tokenizer.pad_id
    return Batch(
        source=torch.from_numpy(examples.source.padded(shown, tokenizer.pad_id)),
        inputs=torch.from_numpy(inputs),
        outputs=torch.from_numpy(outputs),
        tokens=int((examples.target.lengths[rows] + 1).sum()),
    )
