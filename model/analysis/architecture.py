"""The whole model as figure 1 of Vaswani et al. 2017 draws it: two stacks, and what a sentence leaves at each station.

All is read from the records of one teacher-forced pass (Translator.inspect), without the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from attention_atlas.model.analysis.stations import STATION_NAMES, EmbeddingRows
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.records import ForwardOutput, LayerRecord, SubLayerRecord
from attention_atlas.model.trace.kinds import AttentionKind, Side, SubLayerName
from attention_atlas.model.trace.language import Words, say

KINDS = {
    (Side.ENCODER, SubLayerName.SELF_ATTENTION): AttentionKind.ENCODER_SELF,
    (Side.DECODER, SubLayerName.SELF_ATTENTION): AttentionKind.DECODER_SELF,
    (Side.DECODER, SubLayerName.CROSS_ATTENTION): AttentionKind.CROSS,
}
SHOWN = 48  # rows and columns of a picture in a box, at most
NAMES = {
    (Side.ENCODER, SubLayerName.SELF_ATTENTION): say("self-attention"),
    (Side.DECODER, SubLayerName.SELF_ATTENTION): say("masked self-attention"),
    (Side.DECODER, SubLayerName.CROSS_ATTENTION): say("cross-attention"),
}


@dataclass(frozen=True, eq=False)
class Station:
    """One box. shape, axes: of what comes out of it. panel, controls: the view that opens it up, and what its controls
    are set to there. pictures: what comes out, small, float32 [row, column] each; signed: 0 is in their middle."""

    name: Words
    shape: tuple[int, ...]
    axes: tuple[Words | str, ...]
    panel: str
    controls: Mapping[str, str | int] = field(default_factory=dict)
    pictures: tuple[np.ndarray, ...] = ()
    signed: bool = False


@dataclass(frozen=True, eq=False)
class SubLayer:
    """One function of a layer with what is around it. stations: from left to right. norm_first: the norm stands
    before the function (pre-norm), not after the sum. residual: what comes in is added to what comes out. reads_memory:
    an arrow leads here from the encoder's end."""

    name: SubLayerName
    stations: tuple[Station, ...]
    norm: Station
    norm_first: bool
    residual: bool
    reads_memory: bool


@dataclass(frozen=True, eq=False)
class Stack:
    """The encoder or the decoder, in the order that a sentence passes it: entry, then `layers` times the sub-layers, of
    which layer `shown` (from 0) is pictured, then exit."""

    side: Side
    entry: tuple[Station, ...]
    layers: int
    shown: int
    sublayers: tuple[SubLayer, ...]
    exit: tuple[Station, ...]


def stack(
    side: Side, config: ModelConfig, output: ForwardOutput, rows: EmbeddingRows, *, layer: int, best: np.ndarray
) -> Stack:
    """The stack of one side. rows: its embedding's, of stations.embedding_rows(); layer: which is pictured, the last
    one where there are fewer; best: probabilities of the likeliest tokens at each step [step, rank]. Six parameters:
    a pass, and what is pictured of it."""
    records = output.layers(side)
    shown = min(layer, len(records) - 1)
    encoder = side is Side.ENCODER
    length = say("source") if encoder else say("target")
    axes, width = (length, "d_model"), (len(rows.added), config.d_model)
    on = {"side": side.value}
    entry = [
        Station(
            say("embedding × √d_model") if config.scale_embedding else say("embedding"),
            *(width, axes, "embedding", on, (_stream(rows.scaled),), True),
        ),
    ]
    if config.adds_positions:
        entry.append(Station(say("+ position"), width, axes, "embedding", on, (_stream(rows.positions),), True))
    closing = [Station(say("norm"), width, axes, "residual", on)] if config.norm_first else []
    if encoder:
        memory = output.memory[0].float().cpu().numpy()
        ends = [*closing, Station(say("memory"), width, axes, "residual", on, (_stream(memory),), True)]
    else:
        logits, names = (len(rows.added), config.num_target_tokens), (length, say("vocabulary"))
        ends = [
            *closing,
            Station(say("projection"), logits, names, "logits"),
            Station(say("softmax"), logits, names, "logits", {}, (_small(best.T),)),
        ]
    if config.norm_embedding:
        early = config.norm_before_positions and not encoder
        entry.insert(1 if early else len(entry), Station(say("norm"), width, axes, "embedding", on))
    parts = records[shown].sublayers
    found = (_sublayer(side, records[shown], part, shown, number) for number, part in enumerate(parts, 1))
    return Stack(side, tuple(entry), len(records), shown, tuple(found), tuple(ends))


def _sublayer(side: Side, record: LayerRecord, passed: SubLayerRecord, layer: int, number: int) -> SubLayer:
    query = say("source") if side is Side.ENCODER else say("target")
    stream = _shape(passed.after), (query, "d_model")
    kind = KINDS.get((side, passed.name))
    if kind is None:
        activations = record.activations[0].float().cpu().numpy()
        stations = (
            Station(
                STATION_NAMES[passed.name],
                *(activations.shape, (query, "d_feedforward"), "feed-forward", {"side": side.value}),
                (_small(np.abs(activations)),),
            ),
        )
    else:
        found = record.attention(kind)
        key = query if kind is not AttentionKind.CROSS else say("source")
        weights = found.weights[0].float().cpu().numpy()
        of = {"kind": kind.value}
        stations = (
            Station("Q K V", _shape(found.queries), (say("heads"), query, "d_k"), "projections", of),
            Station(
                NAMES[side, passed.name],
                *(weights.shape, (say("heads"), query, key), "attention", of, tuple(map(_small, weights[:8]))),
            ),
            Station("W_O", *stream, "heads", of),
        )
    controls = {"side": side.value, "layer": layer + 1, "sublayer": number}
    return SubLayer(
        passed.name,
        stations,
        Station(say("norm"), *stream, "add-norm", controls),
        passed.norm.first,
        passed.residual,
        kind is AttentionKind.CROSS,
    )


def _small(values: np.ndarray) -> np.ndarray:
    """At most SHOWN rows and columns, each the largest of those that it stands for."""
    for axis in (0, 1):
        starts = np.unique(np.linspace(0, values.shape[axis], SHOWN, endpoint=False).astype(int))
        values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def _stream(values: np.ndarray) -> np.ndarray:
    """The first dimensions of at most SHOWN of its tokens."""
    return values[:: -(-len(values) // SHOWN), :SHOWN]


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape[1:])  # without the batch of one
