"""Activation patching: two sentences, the same forced prefix, and one place of the one run put into the other (Vig et
al. 2020; Meng et al. 2022; Zhang and Nanda 2024).

The two sources may differ in length: every place of the decoder is common to both, and of the encoder the positions of
tokens that both sentences share, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.case import Case, ask_case
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import PatchValue, Sweep
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace.interventions import HeadOutput, Patch, Stream, SubLayerOutput
from attention_atlas.model.trace.kinds import AttentionKind, NamedEnum, Side, SubLayerName, coerce_enums
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against, rows_by_layer
from attention_atlas.model.trace.why.evidence import Evidence, Unit
from attention_atlas.model.translator import Translator

LEAST_GAP = 1.0  # nats between the two runs: below it a recovered share is a quotient of nothings


class Direction(NamedEnum):
    """DENOISE: the corrupt run receives what the clean one had there: is it enough? NOISE: the clean run receives the
    corrupt one's: is it needed? (Heimersheim and Nanda 2024)"""

    DENOISE = "denoise"
    NOISE = "noise"


@dataclass(frozen=True)
class StreamGrid:
    """The residual stream after each layer of a side, at each position."""

    side: Side

    def __post_init__(self) -> None:
        coerce_enums(self, side=Side)


@dataclass(frozen=True)
class SubLayerGrid:
    """What one kind of sub-layer adds in each layer of a side, at each position."""

    side: Side
    sublayer: SubLayerName

    def __post_init__(self) -> None:
        coerce_enums(self, side=Side, sublayer=SubLayerName)


@dataclass(frozen=True)
class HeadGrid:
    """What each head of a kind says, at all positions together."""

    kind: AttentionKind

    def __post_init__(self) -> None:
        coerce_enums(self, kind=AttentionKind)


Grid = StreamGrid | SubLayerGrid | HeadGrid
GRIDS: dict[str, Grid] = {
    "decoder stream": StreamGrid(Side.DECODER),
    "encoder stream": StreamGrid(Side.ENCODER),
    "decoder self": SubLayerGrid(Side.DECODER, SubLayerName.SELF_ATTENTION),
    "decoder cross": SubLayerGrid(Side.DECODER, SubLayerName.CROSS_ATTENTION),
    "decoder feed": SubLayerGrid(Side.DECODER, SubLayerName.FEED_FORWARD),
    "encoder self": SubLayerGrid(Side.ENCODER, SubLayerName.SELF_ATTENTION),
    "encoder feed": SubLayerGrid(Side.ENCODER, SubLayerName.FEED_FORWARD),
    "cross heads": HeadGrid(AttentionKind.CROSS),
    "decoder heads": HeadGrid(AttentionKind.DECODER_SELF),
    "encoder heads": HeadGrid(AttentionKind.ENCODER_SELF),
}


@dataclass(frozen=True, eq=False)
class PatchEffects(Result):
    """metrics float64 [layers, positions or heads], in nats, of the receiving run with one place patched; NaN where the
    two sentences have no common place. base: the receiving run as it was; other: the run that gave.

    pairs    position of the giving run for each position of the receiving one, -1 for none; empty for heads
    columns  what stands at each: the receiving run's tokens, or heads by number
    """

    grid: Grid
    direction: Direction
    metrics: np.ndarray
    base: float
    other: float
    pairs: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    evidence: Evidence = Evidence.MEASURED
    unit: Unit = Unit.NATS

    def as_plain(self) -> dict[str, Any]:
        """For model.trace.why.evidence: a row a layer."""
        names = ("direction", "base", "other", "pairs", "columns", "recovered")
        rows = rows_by_layer(self.metrics, self.evidence, self.unit)
        return {**{name: getattr(self, name) for name in names}, "rows": rows}

    def columns_of_table(self) -> dict[str, Any]:
        """A line for each place: `layer`, `position` (or head) from 0 and what stands there, `metric` in nats, and
        `recovered` where the two runs are far enough apart."""
        layers, positions = np.indices(self.metrics.shape).reshape(2, -1)
        found = {"layer": layers, "position": positions, "at": [*self.columns] * len(self.metrics)}
        recovered = {} if self.recovered is None else {"recovered": self.recovered.ravel()}
        return {**found, "metric": self.metrics.ravel(), **recovered}

    def about(self) -> str:
        return f"{self.direction.value}: {self.base:.3f} nats, up to {self.other:.3f} in the other run"

    @property
    def recovered(self) -> np.ndarray | None:
        """How much of the way from the receiving run to the giving one each place goes: 0 none, 1 all; it may be below
        or beyond. None where the two runs are less than 1 nat apart."""
        gap = self.other - self.base
        return None if abs(gap) < LEAST_GAP else (self.metrics - self.base) / gap


def patch(
    translator: Translator,
    trace: TranslationTrace,
    other: str,
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
    grid: Grid | str = "decoder stream",
    direction: Direction | str = Direction.DENOISE,
) -> PatchEffects:
    """What each place of one run recovers in the other: the translated sentence and `other`, after the same prefix.
    step, contrast: as in attribute(). grid: or its name in GRIDS. ValueError, in words, for what cannot be asked or
    patched.

    Seven parameters: besides the question a patch is coerce_enums by the other sentence, the places and the way."""
    grid = grid_of(grid) if isinstance(grid, str) else grid
    case = ask_case(translator, trace, step, contrast)
    return between(case, translator, trace, other, grid, Direction(direction))


def grid_of(name: str) -> Grid:
    """The grid of this name. ValueError, with the names that there are, for another."""
    if name not in GRIDS:
        raise ValueError(f"Unknown place {name!r}: there are {', '.join(GRIDS)}.")
    return GRIDS[name]


def between(
    clean: Case, translator: Translator, trace: TranslationTrace, other: str, grid: Grid, direction: Direction
) -> PatchEffects:
    """The same of a case, with its columns named. Six parameters: those of patch()."""
    ids = translator.encode(other, trace.direction)
    found = patched(clean, corrupted(clean, ids), grid, direction)
    if isinstance(grid, HeadGrid):
        columns = [str(head + 1) for head in range(translator.model.num_heads[grid.kind])]
    elif grid.side is Side.DECODER:
        columns = trace.decoder_inputs[: clean.question.step + 1]
    elif direction is Direction.NOISE:
        columns = trace.source_tokens
    else:
        columns = translator.tokenizer.source_tokens(ids, other)
    return replace(found, columns=tuple(columns))


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
    columns = into.model.num_heads[grid.kind] if isinstance(grid, HeadGrid) else len(pairs)
    allowed = np.array([pair >= 0 for pair in pairs], bool) if pairs else np.ones(columns, bool)
    common = np.flatnonzero(allowed).tolist()
    wanted = [(index, column) for index in range(_rows(places, grid, columns)) for column in common]
    metrics = np.full((_rows(places, grid, columns), columns), np.nan)

    def with_some(part: slice) -> np.ndarray:
        return into.measure(_run(into, places, values, grid, wanted[part])).cpu().numpy()

    parts = into.chunks(len(wanted))
    for part, found in zip(parts, map_on_spare_core(with_some, parts)):
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
            for head in range(case.model.num_heads[grid.kind])
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
    columns = into.model.num_heads[grid.kind] if isinstance(grid, HeadGrid) else 0
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
