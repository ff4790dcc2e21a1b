"""Activation patching: two sentences, the same forced prefix, and one place of the one run put into the other (Vig et
al. 2020; Meng et al. 2022; Zhang and Nanda 2024).

The two sources may differ in length: every place of the decoder is common to both, and of the encoder the positions of
tokens that both sentences share, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np
import torch
from torch import Tensor

from model.analysis.why.case import Case
from model.nets.records import ForwardOutput
from model.nets.sweep import PatchValue, Sweep
from model.trace.interventions import HeadOutput, Patch, Stream, SubLayerOutput
from model.trace.kinds import AttentionKind, Side, SubLayerName
from model.trace.language import Refusal
from model.trace.why.patches import Direction, Grid, HeadGrid, PatchEffects, StreamGrid


def corrupted(case: Case, source_ids: Sequence[int]) -> Case:
    """The same question about the same prefix after another source. source_ids: of Translator.encode. A Refusal for
    the same source."""
    if list(source_ids) == case.source_ids[0].tolist():
        raise Refusal("The second sentence is the same: change a word.")
    ids = torch.tensor([list(source_ids)], device=case.source_ids.device)
    return replace(case, source_ids=ids)


@torch.inference_mode()
def patched(clean: Case, corrupt: Case, grid: Grid, direction: Direction) -> PatchEffects:
    """Every place of the grid patched alone. Columns of the encoder are the receiving run's positions."""
    into, giver = (corrupt, clean) if direction is Direction.DENOISE else (clean, corrupt)
    pairs = _pairs(into, giver, grid)
    places = _places(into, grid)
    values = [_value(giver.output, place, pairs) for place in places]
    columns = len(pairs) if pairs else into.model.config.num_heads
    allowed = np.array([pair >= 0 for pair in pairs], bool) if pairs else np.ones(columns, bool)
    wanted = [(index, column) for index in range(_rows(places, grid, columns)) for column in np.flatnonzero(allowed)]
    metrics = np.full((_rows(places, grid, columns), columns), np.nan)
    for part in into.chunks(len(wanted)):
        found = into.measure(_run(into, places, values, grid, wanted[part])).cpu().numpy()
        for (layer, column), metric in zip(wanted[part], found):
            metrics[layer, column] = metric
    return PatchEffects(grid, direction, metrics, into.metric(), giver.metric(), pairs)


def _rows(places: Sequence, grid: Grid, columns: int) -> int:
    return len(places) // columns if isinstance(grid, HeadGrid) else len(places)


def _places(case: Case, grid: Grid) -> list[HeadOutput | SubLayerOutput | Stream]:
    """In the order of layers; of a head grid every head of each layer."""
    if isinstance(grid, HeadGrid):
        return [
            HeadOutput(grid.kind, layer, head)
            for layer in range(case.model.num_layers[grid.kind])
            for head in range(case.model.config.num_heads)
        ]
    kind = AttentionKind.ENCODER_SELF if grid.side is Side.ENCODER else AttentionKind.DECODER_SELF
    layers = range(case.model.num_layers[kind])
    if isinstance(grid, StreamGrid):
        return [Stream(grid.side, layer, SubLayerName.FEED_FORWARD) for layer in layers]
    return [SubLayerOutput(grid.side, layer, grid.sublayer) for layer in layers]


def _at_source(grid: Grid) -> bool:
    return (grid.kind.side if isinstance(grid, HeadGrid) else grid.side) is Side.ENCODER


def _pairs(into: Case, giver: Case, grid: Grid) -> tuple[int, ...]:
    if not _at_source(grid):
        return () if isinstance(grid, HeadGrid) else tuple(range(into.decoder_ids.shape[1]))
    mine, theirs = into.source_ids[0].tolist(), giver.source_ids[0].tolist()
    if isinstance(grid, HeadGrid):
        if len(mine) != len(theirs):
            raise Refusal(
                "heads of the encoder say something at each position: the sentences have {n} and {m} tokens, "
                "which cannot be exchanged as a whole",
                n=len(mine),
                m=len(theirs),
            )
        return ()
    if len(mine) == len(theirs):
        return tuple(range(len(mine)))
    pairs = [-1] * len(mine)
    for block in SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            pairs[block.a + offset] = block.b + offset
    return tuple(pairs)


def _value(output: ForwardOutput, place: HeadOutput | SubLayerOutput | Stream, pairs: tuple[int, ...]) -> Tensor:
    """[1, positions of the receiving run, width]"""
    if isinstance(place, HeadOutput):
        return output.attention(place.kind, place.layer).head_outputs[:, place.head]
    layer = output.layers(place.side)[place.layer]
    value = layer.after if isinstance(place, Stream) else layer.sublayer(place.sublayer).added
    at = torch.tensor([max(0, pair) for pair in pairs], device=value.device)
    return value.index_select(1, at)


def _run(into: Case, places: list, values: list[Tensor], grid: Grid, wanted: list[tuple[int, int]]) -> Tensor:
    """The decoder's output [batch, d_model] at the question's row, a batch row for each (layer, column)."""
    columns = into.model.config.num_heads
    given = {}
    for index, (place, value) in enumerate(zip(places, values)):
        weight = value.new_zeros(len(wanted), value.shape[1])
        for row, (layer, column) in enumerate(wanted):
            if isinstance(grid, HeadGrid) and layer * columns + column == index:
                weight[row] = 1.0
            elif not isinstance(grid, HeadGrid) and layer == index:
                weight[row, column] = 1.0
        if weight.any():
            given[Patch(place)] = PatchValue(value, weight)
    sweep = Sweep(replace(into.interventions, patches=frozenset(given)), values=given)
    memory = (
        into.encode(into.source_rows.expand(len(wanted), -1, -1), changes=sweep)
        if _at_source(grid)
        else into.shared_memory(len(wanted))
    )
    return into.decode(into.target_rows.expand(len(wanted), -1, -1), memory, changes=sweep)
