"""Sequence packing: several sentence pairs share a row of a batch (Krell et al. 2021).

Little of a batch is padding, and all batches of a run have one shape, so that kernels and graphs are reused.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.config import PositionCode
from attention_atlas.model.nets.layer import SourceMemory
from attention_atlas.model.nets.networks import AnyNetwork
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.text.interface import TextTokenizer
from attention_atlas.model.training.batches import Batch, Examples, Packing

OPEN_ROWS = 64  # that a pair may still be put into; more of them take longer to search and fill rows no better
WIDTH_STEP = 8  # widths are multiples of it, as matrix units want them


def can_pack(model: AnyNetwork) -> bool:
    """Whether a network can read packed rows: a Transformer whose position code does not depend on the length."""
    return isinstance(model, Transformer) and model.config.position_code is not PositionCode.NORMALISED


def packed_widths(examples: Examples, length: int) -> tuple[int, int]:
    """Return the widths of source and target rows, for pairs of at most `length` tokens on either side.

    The language with more tokens gets the wider rows, at most twice as wide, so that both are filled alike.
    """
    source, target = int(examples.source.lengths.sum()), int((examples.target.lengths + 1).sum())
    ratio = min(max(source / max(1, target), 0.5), 2.0)
    source_width, target_width = (
        math.ceil(length * max(1.0, wider) / WIDTH_STEP) * WIDTH_STEP for wider in (ratio, 1 / ratio)
    )
    return source_width, target_width


def plan_packed(
    examples: Examples, tokens_per_batch: int, length: int, *, seed: int, epoch: int
) -> list[list[np.ndarray]]:
    """Return the batches of an epoch, determined by seed and epoch: for each row the numbers of its pairs.

    A pair goes into the first open row that has room on both sides. A batch has as many rows as tokens_per_batch
    target tokens fill, padding included; the last one may have fewer.
    """
    random = np.random.default_rng((seed, epoch))
    widths = packed_widths(examples, length)
    sources, targets = examples.source.lengths.tolist(), (examples.target.lengths + 1).tolist()
    assert max([*sources, *targets], default=0) <= length, "a pair is longer than a row"
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
            open_rows.append((widths[0] - source, widths[1] - target, [pair]))
    rows += [pairs for _, _, pairs in open_rows]
    size = rows_of_batch(tokens_per_batch, widths)
    arrays = [np.array(pairs) for pairs in rows]
    return [arrays[start : start + size] for start in range(0, len(arrays), size)]


def rows_of_batch(tokens_per_batch: int, widths: tuple[int, int]) -> int:
    """Return the number of rows that hold tokens_per_batch target tokens, padding included; at least one."""
    return max(1, tokens_per_batch // widths[1])


def pack(
    examples: Examples,
    plan: list[np.ndarray],
    tokenizer: TextTokenizer,
    *,
    rows: int,
    widths: tuple[int, int],
    rank: int = 0,
    world_size: int = 1,
) -> Batch:
    """Return a batch of `rows` packed rows of these widths, or process `rank`'s share of them.

    plan: the numbers of each row's pairs, for at most `rows` rows; the others stay empty.
    """
    mine = plan[rank::world_size]
    pairs = np.concatenate([*mine, np.zeros(0, dtype=np.int64)])
    counts = np.array([len(each) for each in mine], dtype=np.int64)
    source, target = examples.source.take(pairs), examples.target.take(pairs)
    size = math.ceil(rows / world_size)
    source_grid = _Grid(source.lengths, counts, (size, widths[0]))
    target_grid = _Grid(target.lengths + 1, counts, (size, widths[1]))
    inputs = np.full(len(target_grid.positions), tokenizer.begin_id)
    inputs[target_grid.positions > 0] = target.ids
    outputs = np.full(len(target_grid.positions), tokenizer.end_id)
    outputs[target_grid.positions < np.repeat(target.lengths, target.lengths + 1)] = target.ids
    return Batch(
        source=source_grid.fill(source.ids, tokenizer.pad_id),
        inputs=target_grid.fill(inputs, tokenizer.pad_id),
        outputs=target_grid.fill(outputs, tokenizer.pad_id),
        tokens=sum(int((examples.target.lengths[each] + 1).sum()) for each in plan),
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
        in_row = np.arange(len(lengths)) - np.repeat(np.cumsum(counts) - counts, counts)  # sentences before it there
        before = np.cumsum(lengths) - lengths  # tokens before each sentence
        self.positions = np.arange(lengths.sum()) - np.repeat(before, lengths)
        self.pairs = np.repeat(in_row + 1, lengths)
        first_cell = row * shape[1] + before - before[np.arange(len(lengths)) - in_row]
        self._cells = np.repeat(first_cell, lengths) + self.positions

    def fill(self, values: np.ndarray, empty: int = 0) -> Tensor:
        """Return the grid, int64 [rows, width], with one value a token and `empty` where there is none."""
        grid = np.full(self.shape[0] * self.shape[1], empty, dtype=np.int64)
        grid[self._cells] = values
        return torch.from_numpy(grid.reshape(self.shape))


def decode_packed(model: Transformer, source: Tensor, inputs: Tensor, packing: Packing) -> Tensor:
    """Return the decoder's output [batch, target, d_model] for packed rows: each pair is read as if it stood alone.

    source [batch, source], inputs [batch, target]: token ids. The rows of padding mean nothing.
    """
    source_pairs, source_positions, target_pairs, target_positions = packing
    own_source = source_pairs[:, None, :, None] == source_pairs[:, None, None, :]
    own_target = target_pairs[:, None, :, None] == target_pairs[:, None, None, :]
    if model.config.look_ahead_mask:
        own_target = own_target.tril()
    # Padding of the target may read everything, so that no row of a map is empty.
    read = (target_pairs[:, None, :, None] == source_pairs[:, None, None, :]) | (target_pairs == 0)[:, None, :, None]
    memory, _ = model.encoder(_embed(model, source, source_positions), own_source)
    hidden, _ = model.decoder(
        _embed(model, inputs, target_positions, decoder=True), own_target, SourceMemory(memory, read)
    )
    return hidden


def _embed(model: Transformer, ids: Tensor, positions: Tensor, *, decoder: bool = False) -> Tensor:
    """Return the first layer's input for ids [batch, length] at these positions within their sentences."""
    code, stack = (model.target_positions, model.decoder) if decoder else (model.source_positions, model.encoder)
    table = getattr(code, "table", None)  # networks without a code of absolute positions have none
    return model.dropout(
        stack.enter(model.token_rows(ids, decoder=decoder), None if table is None else table[positions])
    )
