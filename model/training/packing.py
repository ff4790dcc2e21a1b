"""Sequence packing: several sentence pairs share a row of a batch (Krell et al. 2021).

Little of a batch is padding, and all batches of an epoch have one shape, so that kernels and graphs are reused.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.config import ModelConfig, PositionCode
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.recurrent import RecurrentConfig
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.training.batches import Batch, Examples, Packing

OPEN_ROWS = 64  # rows that may still take a pair: more are slower to search and fill no better
WIDTH_STEP = 8  # tensor cores need multiples of 8


class PackedShape(NamedTuple):
    """The rows of a packed batch, and their tokens on either side."""

    rows: int
    source: int
    target: int


class PackedPairs(NamedTuple):
    """The pairs of a packed batch: their numbers, row after row, and how many each row has; int64."""

    numbers: np.ndarray
    counts: np.ndarray


def can_pack(config: ModelConfig | RecurrentConfig) -> bool:
    """Return whether a network can read packed rows: a Transformer whose positions do not depend on the length."""
    return isinstance(config, ModelConfig) and config.position_code is not PositionCode.NORMALISED


def packed_shape(examples: Examples, tokens_per_batch: int, length: int) -> PackedShape:
    """Return the shape of an epoch's batches: at most tokens_per_batch target tokens, padding included, or one row.

    Rows hold a pair of `length` tokens on either side. The language with more tokens gets the wider rows, at most twice
    as wide, so that both are filled alike. Raises ValueError for a pair with more than `length` tokens.
    """
    sources, targets = examples.source.lengths, examples.target.lengths + 1
    if max(sources.max(initial=0), targets.max(initial=0)) > length:
        raise ValueError(f"a pair has more than {length} tokens on a side")
    ratio = min(max(sources.sum() / max(1, targets.sum()), 0.5), 2.0)
    source, target = (math.ceil(length * max(1.0, wider) / WIDTH_STEP) * WIDTH_STEP for wider in (ratio, 1 / ratio))
    return PackedShape(max(1, tokens_per_batch // target), source, target)


def plan_packed(examples: Examples, shape: PackedShape, *, seed: int, epoch: int) -> list[PackedPairs]:
    """Return the batches of an epoch, determined by seed and epoch; the last one may have fewer rows.

    A pair goes into the first open row that has room on both sides.
    """
    random = np.random.default_rng((seed, epoch))
    sources, targets = examples.source.lengths.tolist(), (examples.target.lengths + 1).tolist()
    rows: list[list[int]] = []
    open_rows: list[tuple[int, int, list[int]]] = []  # the room on each side, and the pairs
    for pair in random.permutation(len(examples)).tolist():
        source, target = sources[pair], targets[pair]
        for place, (source_room, target_room, pairs) in enumerate(open_rows):
            if source <= source_room and target <= target_room:
                pairs.append(pair)
                open_rows[place] = source_room - source, target_room - target, pairs
                break
        else:
            if len(open_rows) == OPEN_ROWS:
                rows.append(open_rows.pop(0)[2])
            open_rows.append((shape.source - source, shape.target - target, [pair]))
    rows += [pairs for _, _, pairs in open_rows]
    return [_join(rows[start : start + shape.rows]) for start in range(0, len(rows), shape.rows)]


def _join(rows: list[list[int]]) -> PackedPairs:
    return PackedPairs(np.array([pair for row in rows for pair in row]), np.array([len(row) for row in rows]))


def pack(
    examples: Examples,
    pairs: PackedPairs,
    shape: PackedShape,
    tokenizer: TextTokenizer,
    *,
    rank: int = 0,
    world_size: int = 1,
) -> Batch:
    """Return a batch of packed rows, or process `rank`'s share of it. Rows without pairs are padding."""
    row = np.repeat(np.arange(len(pairs.counts)), pairs.counts)
    numbers, counts = pairs.numbers[row % world_size == rank], pairs.counts[rank::world_size]
    source, target = examples.source.take(numbers), examples.target.take(numbers)
    rows = math.ceil(shape.rows / world_size)
    source_grid = _Grid(source.lengths, counts, (rows, shape.source))
    target_grid = _Grid(target.lengths + 1, counts, (rows, shape.target))
    inputs = np.full(len(target_grid.positions), tokenizer.begin_id)
    inputs[target_grid.positions > 0] = target.ids
    outputs = np.full(len(target_grid.positions), tokenizer.end_id)
    outputs[target_grid.positions < np.repeat(target.lengths, target.lengths + 1)] = target.ids
    return Batch(
        source=source_grid.fill(source.ids, tokenizer.pad_id),
        inputs=target_grid.fill(inputs, tokenizer.pad_id),
        outputs=target_grid.fill(outputs, tokenizer.pad_id),
        tokens=int((examples.target.lengths[pairs.numbers] + 1).sum()),
        packing=Packing(
            source_grid.fill(source_grid.pairs),
            source_grid.fill(source_grid.positions),
            target_grid.fill(target_grid.pairs),
            target_grid.fill(target_grid.positions),
        ),
    )


class _Grid:
    """The cells of one side's tokens in a batch of packed rows.

    positions  int64 [tokens], of each token in its sentence
    pairs      int64 [tokens], the number of the token's pair in its row, from 1
    """

    def __init__(self, lengths: np.ndarray, counts: np.ndarray, shape: tuple[int, int]) -> None:
        """lengths: tokens of each sentence; counts: sentences of each row; shape: rows and width of the grid."""
        self.shape = shape
        row = np.repeat(np.arange(len(counts)), counts)  # of each sentence
        index_in_row = np.arange(len(lengths)) - np.repeat(np.cumsum(counts) - counts, counts)
        before = np.cumsum(lengths) - lengths  # tokens before each sentence
        self.positions = np.arange(lengths.sum()) - np.repeat(before, lengths)
        self.pairs = np.repeat(index_in_row + 1, lengths)
        first_cell = row * shape[1] + before - before[np.arange(len(lengths)) - index_in_row]
        self._cells = np.repeat(first_cell, lengths) + self.positions

    def fill(self, values: np.ndarray, empty: int = 0) -> Tensor:
        """Return the grid, int64 [rows, width], with one value a token and `empty` where there is none."""
        grid = np.full(self.shape[0] * self.shape[1], empty, dtype=np.int64)
        grid[self._cells] = values
        return torch.from_numpy(grid.reshape(self.shape))


def decode_packed(model: Transformer, source: Tensor, inputs: Tensor, packing: Packing) -> Tensor:
    """Return the decoder's output [batch, target, d_model] for packed rows: each pair is read as if it stood alone.

    source [batch, source], inputs [batch, target]: token ids. The output at padding is arbitrary.
    """
    source_pairs, source_positions, target_pairs, target_positions = packing
    source_mask = source_pairs[:, None, :, None] == source_pairs[:, None, None, :]
    target_mask = target_pairs[:, None, :, None] == target_pairs[:, None, None, :]
    if model.config.look_ahead_mask:
        target_mask = target_mask.tril()
    # Queries of padding attend to all keys, because a softmax over no keys is NaN.
    is_padding = (target_pairs == 0)[:, None, :, None]
    cross_mask = (target_pairs[:, None, :, None] == source_pairs[:, None, None, :]) | is_padding
    memory, _ = model.encoder(_embed(model, source, source_positions), source_mask)
    embedded = _embed(model, inputs, target_positions, decoder=True)
    return model.decoder(embedded, target_mask, SourceMemory(memory, cross_mask))[0]


def _embed(model: Transformer, ids: Tensor, positions: Tensor, *, decoder: bool = False) -> Tensor:
    """Return the first layer's input for ids [batch, length] at these positions within their sentences."""
    code, stack = (model.target_positions, model.decoder) if decoder else (model.source_positions, model.encoder)
    return model.dropout(stack.enter(model.token_rows(ids, decoder=decoder), code.at(positions)))
