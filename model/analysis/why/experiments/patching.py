"""Activation patching: put one place of one sentence's run into another's, after the same forced prefix.

After Vig et al. (2020), Meng et al. (2022), and Zhang and Nanda (2024). The two sources may differ in length: every
place of the decoder exists in both runs, and of the encoder the positions of tokens that both sentences share, in
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_atlas.model.analysis.why.case import Case, open_case_at
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import PatchValue
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace.interventions import HeadOutput, Patch, Stream, SubLayerOutput
from attention_atlas.model.trace.kinds import AttentionKind, NamedEnum, Side, SubLayerName, coerce_enums
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.result import Result
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against, rows_by_layer
from attention_atlas.model.trace.why.evidence import Evidence, Unit
from attention_atlas.model.translator import Translator

MIN_GAP = 1.0  # nats between the two runs: below it a recovered share is noise divided by noise


class PatchMode(NamedEnum):
    """Which run receives the other's activation (Heimersheim and Nanda 2024).

    DENOISE  the corrupt run receives the clean one's: is the place sufficient?
    NOISE    the clean run receives the corrupt one's: is the place necessary?
    """

    DENOISE = "denoise"
    NOISE = "noise"


@dataclass(frozen=True)
class StreamGrid:
    """The residual stream after each layer of a side, at each position."""

    side: Side

    def __post_init__(self) -> None:
        coerce_enums(self, side=Side)

    def place(self, layer: int) -> Stream:
        return Stream(self.side, layer, SubLayerName.FEED_FORWARD)


@dataclass(frozen=True)
class SubLayerGrid:
    """The output of one kind of sub-layer in each layer of a side, at each position."""

    side: Side
    sublayer: SubLayerName

    def __post_init__(self) -> None:
        coerce_enums(self, side=Side, sublayer=SubLayerName)

    def place(self, layer: int) -> SubLayerOutput:
        return SubLayerOutput(self.side, layer, self.sublayer)


@dataclass(frozen=True)
class HeadGrid:
    """The output of each head of a kind, at all positions together."""

    kind: AttentionKind

    def __post_init__(self) -> None:
        coerce_enums(self, kind=AttentionKind)

    @property
    def side(self) -> Side:
        return self.kind.side


Grid = StreamGrid | SubLayerGrid | HeadGrid
Place = HeadOutput | SubLayerOutput | Stream
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
    """The metric of the receiving run with each place of a grid patched alone.

    metrics  float64 [layers, positions or heads], nats; NaN for places that the two sentences do not share
    base     the metric of the receiving run without a patch
    other    the metric of the run that activations are taken from
    pairs    for each position of the receiving run, the other run's, -1 for none; empty for heads
    columns  the receiving run's tokens, or the heads' numbers
    """

    grid: Grid
    direction: PatchMode
    metrics: np.ndarray
    base: float
    other: float
    pairs: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    evidence: Evidence = Evidence.MEASURED
    unit: Unit = Unit.NATS

    def as_plain(self) -> dict[str, Any]:
        """Return the fields that to_jsonable() writes, with a row for each layer."""
        names = ("direction", "base", "other", "pairs", "columns", "recovered")
        rows = rows_by_layer(self.metrics, self.evidence, self.unit)
        return {**{name: getattr(self, name) for name in names}, "rows": rows}

    def columns_of_table(self) -> dict[str, Any]:
        """Return a table with a line for each place: `layer`, `position` (or head) from 0, `at` (the token or head),
        `metric` in nats, and `recovered` if the runs are far enough apart."""
        layers, positions = np.indices(self.metrics.shape).reshape(2, -1)
        places = {"layer": layers, "position": positions, "at": [*self.columns] * len(self.metrics)}
        recovered = {} if self.recovered is None else {"recovered": self.recovered.ravel()}
        return {**places, "metric": self.metrics.ravel(), **recovered}

    def about(self) -> str:
        return f"{self.direction.value}: {self.base:.3f} nats, up to {self.other:.3f} in the other run"

    @property
    def recovered(self) -> np.ndarray | None:
        """The share of the difference between the runs that each place recovers; it may be below 0 or above 1.

        None if the runs are less than 1 nat apart.
        """
        gap = self.other - self.base
        return None if abs(gap) < MIN_GAP else (self.metrics - self.base) / gap


def patch(
    translator: Translator,
    trace: TranslationTrace,
    other: str,
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
    grid: Grid | str = "decoder stream",
    direction: PatchMode | str = PatchMode.DENOISE,
) -> PatchEffects:
    """Measure what each place of one run recovers in the other: the translated sentence and `other`, after one prefix.

    step, contrast: as in attribute(). grid: a grid or its name in GRIDS. direction: "denoise" or "noise". Raises
    ValueError for a question that cannot be asked, or places that cannot be patched.
    """
    grid = find_grid(grid) if isinstance(grid, str) else grid
    case = open_case_at(translator, trace, step, contrast)
    return patch_case(case, translator, trace, other, grid, PatchMode(direction))


def find_grid(name: str) -> Grid:
    """Return the grid of this name. Raises ValueError for an unknown one."""
    if name not in GRIDS:
        raise ValueError(f"Unknown place {name!r}: there are {', '.join(GRIDS)}.")
    return GRIDS[name]


def patch_case(
    clean: Case, translator: Translator, trace: TranslationTrace, other: str, grid: Grid, mode: PatchMode
) -> PatchEffects:
    """Patch every place of the grid alone between a case and the same case after the sentence `other`."""
    ids = translator.encode(other, trace.direction)
    effects = patch_grid(clean, replace_source(clean, ids), grid, mode)
    if isinstance(grid, HeadGrid):
        columns = [str(head + 1) for head in range(translator.model.num_heads[grid.kind])]
    elif grid.side is Side.DECODER:
        columns = trace.decoder_inputs[: clean.question.step + 1]
    elif mode is PatchMode.NOISE:
        columns = trace.source_tokens
    else:
        columns = translator.tokenizer.source_tokens(ids, other)
    return replace(effects, columns=tuple(columns))


def replace_source(case: Case, source_ids: Sequence[int]) -> Case:
    """Return the same question and prefix after another source. Raises a Refusal for the same source."""
    if list(source_ids) == case.source_ids[0].tolist():
        raise Refusal("The second sentence is the same: change a word.")
    ids = torch.tensor([list(source_ids)], device=case.source_ids.device)
    return replace(case, source_ids=ids)


@torch.inference_mode()
def patch_grid(clean: Case, corrupt: Case, grid: Grid, mode: PatchMode) -> PatchEffects:
    """Patch every place of the grid alone. Columns of encoder grids are the receiving run's positions."""
    receiver, giver = (corrupt, clean) if mode is PatchMode.DENOISE else (clean, corrupt)
    pairs = _pair_positions(receiver, giver, grid)
    layers = range(len(receiver.output.layers(grid.side)))
    # (row, column), place, and the positions to patch
    if isinstance(grid, HeadGrid):
        columns = range(receiver.model.num_heads[grid.kind])
        cells = [
            ((layer, head), HeadOutput(grid.kind, layer, head), slice(None)) for layer in layers for head in columns
        ]
    else:
        columns = range(len(pairs))
        cells = [((layer, at), grid.place(layer), at) for layer in layers for at in columns if pairs[at] >= 0]
    values = {place: _read_value(giver.output, place, pairs) for place in {place for _, place, _ in cells}}
    metrics = np.full((len(layers), len(columns)), np.nan)

    def measure_batch(batch: slice) -> np.ndarray:
        rows = cells[batch]
        weights = {place: values[place].new_zeros(len(rows), values[place].shape[1]) for _, place, _ in rows}
        for row, (_, place, positions) in enumerate(rows):
            weights[place][row, positions] = 1.0
        patches = {Patch(place): PatchValue(values[place], weight) for place, weight in weights.items()}
        return receiver.measure(receiver.run_patched(patches, in_encoder=grid.side is Side.ENCODER)).cpu().numpy()

    batches = receiver.batches(len(cells))
    for batch, of_batch in zip(batches, map_on_spare_core(measure_batch, batches)):
        for (cell, *_), metric in zip(cells[batch], of_batch):
            metrics[cell] = metric
    return PatchEffects(grid, mode, metrics, receiver.metric(), giver.metric(), pairs)


def _pair_positions(receiver: Case, giver: Case, grid: Grid) -> tuple[int, ...]:
    """Return the giver's position for each of the receiver's, -1 for none; empty for heads."""
    if grid.side is Side.DECODER:
        return () if isinstance(grid, HeadGrid) else tuple(range(receiver.decoder_ids.shape[1]))
    receiving, giving = receiver.source_ids[0].tolist(), giver.source_ids[0].tolist()
    if isinstance(grid, HeadGrid):
        if len(receiving) != len(giving):
            raise Refusal(
                "encoder heads have one output per position: the sentences have {n} and {m} tokens, so their "
                "outputs cannot be exchanged as a whole",
                n=len(receiving),
                m=len(giving),
            )
        return ()
    if len(receiving) == len(giving):
        return tuple(range(len(receiving)))
    pairs = [-1] * len(receiving)
    for block in SequenceMatcher(None, receiving, giving, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            pairs[block.a + offset] = block.b + offset
    return tuple(pairs)


def _read_value(output: ForwardOutput, place: Place, pairs: tuple[int, ...]) -> Tensor:
    """Return a place's value at the receiving run's positions, [1, position, width]."""
    if isinstance(place, HeadOutput):
        return output.attention(place.kind, place.layer).head_outputs[:, place.head]
    layer = output.layers(place.side)[place.layer]
    value = layer.after if isinstance(place, Stream) else layer.sublayer(place.sublayer).added
    at = torch.tensor([max(0, pair) for pair in pairs], device=value.device)
    return value.index_select(1, at)
