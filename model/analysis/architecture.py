"""The model as figure 1 of Vaswani et al. (2017) draws it: two stacks of stations, with a sentence's values at each.

Values are read from the records of one teacher-forced pass (Translator.inspect). `stack` returns one side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from attention_atlas.model.analysis.stations import STATION_NAMES, EmbeddingRows
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.records import ForwardOutput, LayerRecord, SubLayerRecord
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Words, say

MAX_PIXELS = 48  # rows and columns of a station's picture
NAMES = {
    AttentionKind.ENCODER_SELF: say("self-attention"),
    AttentionKind.DECODER_SELF: say("masked self-attention"),
    AttentionKind.CROSS: say("cross-attention"),
}


@dataclass(frozen=True, eq=False)
class Station:
    """One box of the figure.

    shape, axes      of its output
    panel, controls  the panel that shows it in detail, and the values of that panel's controls
    pictures         its output, reduced, each float32 [row, column]
    signed           whether the pictures' colour scale is centred on 0
    """

    name: Words
    shape: tuple[int, ...]
    axes: tuple[Words | str, ...]
    panel: str
    controls: Mapping[str, str | int] = field(default_factory=dict)
    pictures: tuple[np.ndarray, ...] = ()
    signed: bool = False


@dataclass(frozen=True, eq=False)
class SubLayer:
    """One sub-layer with its norm and residual connection.

    stations      its boxes, from left to right
    norm_first    whether the norm precedes the function (pre-norm) or follows the sum
    residual      whether the input is added to the output
    reads_memory  whether it reads the encoder's output
    """

    stations: tuple[Station, ...]
    norm: Station
    norm_first: bool
    residual: bool
    reads_memory: bool


@dataclass(frozen=True, eq=False)
class Stack:
    """The encoder or the decoder: entry, `layers` times the sub-layers, then exit.

    The sub-layers are those of layer `shown`, counted from 0.
    """

    entry: tuple[Station, ...]
    layers: int
    shown: int
    sublayers: tuple[SubLayer, ...]
    exit: tuple[Station, ...]


def stack(
    side: Side, config: ModelConfig, output: ForwardOutput, rows: EmbeddingRows, *, layer: int, best: np.ndarray
) -> Stack:
    """Return the stack of one side.

    rows: of stations.embedding_rows(). layer: the layer to show; the last one if there are fewer. best: probabilities
    of the most probable tokens at each step, [step, rank].
    """
    records = output.layers(side)
    layer = min(layer, len(records) - 1)
    encoder = side is Side.ENCODER
    length, tokens = say("source") if encoder else say("target"), len(rows.added)

    def station(name: Words, panel: str, *streams: np.ndarray) -> Station:
        shape, pictures = (tokens, config.d_model), tuple(map(_stream, streams))
        return Station(name, shape, (length, "d_model"), panel, {"side": side.value}, pictures, bool(pictures))

    name = say("embedding × √d_model") if config.scale_embedding else say("embedding")
    entry = [station(name, "embedding", rows.scaled)]
    if config.adds_positions:
        entry.append(station(say("+ position"), "embedding", rows.positions))
    if config.norm_embedding:
        early = config.norm_before_positions and not encoder
        entry.insert(1 if early else len(entry), station(say("norm"), "embedding"))
    ends = [station(say("norm"), "residual")] if config.norm_first else []
    if encoder:
        ends.append(station(say("memory"), "residual", output.memory[0].float().cpu().numpy()))
    else:
        logits, axes = (tokens, config.num_target_tokens), (length, say("vocabulary"))
        ends.append(Station(say("projection"), logits, axes, "logits"))
        ends.append(Station(say("softmax"), logits, axes, "logits", {}, (_small(best.T),)))
    sublayers = (
        _sublayer(side, records[layer], record, layer, number)
        for number, record in enumerate(records[layer].sublayers, 1)
    )
    return Stack(tuple(entry), len(records), layer, tuple(sublayers), tuple(ends))


def _sublayer(side: Side, record: LayerRecord, passed: SubLayerRecord, layer: int, number: int) -> SubLayer:
    query = say("source") if side is Side.ENCODER else say("target")
    stream = _shape(passed.after), (query, "d_model")
    kind = next((kind for kind in NAMES if (kind.side, kind.sublayer) == (side, passed.name)), None)
    if kind is None:
        activations = record.activations[0].float().cpu().numpy()
        name, axes, pictures = STATION_NAMES[passed.name], (query, "d_feedforward"), (_small(np.abs(activations)),)
        stations = (Station(name, activations.shape, axes, "feed-forward", {"side": side.value}, pictures),)
    else:
        attention = record.attention(kind)
        key = query if kind is not AttentionKind.CROSS else say("source")
        weights = attention.weights[0].float().cpu().numpy()
        axes, pictures, of = (say("heads"), query, key), tuple(map(_small, weights[:8])), {"kind": kind.value}
        stations = (
            Station("Q K V", _shape(attention.queries), (say("heads"), query, "d_k"), "projections", of),
            Station(NAMES[kind], weights.shape, axes, "attention", of, pictures),
            Station("W_O", *stream, "heads", of),
        )
    controls = {"side": side.value, "layer": layer + 1, "sublayer": number}
    return SubLayer(
        stations,
        Station(say("norm"), *stream, "add-norm", controls),
        passed.norm.first,
        passed.residual,
        kind is AttentionKind.CROSS,
    )


def _small(values: np.ndarray) -> np.ndarray:
    """Reduce an array to at most MAX_PIXELS rows and columns by maxima."""
    for axis in (0, 1):
        starts = np.unique(np.linspace(0, values.shape[axis], MAX_PIXELS, endpoint=False).astype(int))
        values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def _stream(values: np.ndarray) -> np.ndarray:
    """Return the first MAX_PIXELS dimensions of at most MAX_PIXELS evenly spaced tokens."""
    return values[:: -(-len(values) // MAX_PIXELS), :MAX_PIXELS]


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape[1:])  # without the batch of one
