"""The map of the architecture (Vaswani et al. 2017, figure 1): what flows along every arrow for one sentence.

All shapes are read from the records of one teacher-forced pass (Translator.inspect), without the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from model.config import ModelConfig
from model.nets.records import ForwardOutput, LayerRecord
from model.trace.kinds import AttentionKind, Side
from model.trace.language import Words, say
from model.translator import Translator

SOURCE, TARGET, OUTPUT = "source", "target", "output"
WEIGHTS = {
    AttentionKind.ENCODER_SELF: say("encoder self-attention weights"),
    AttentionKind.DECODER_SELF: say("decoder self-attention weights"),
    AttentionKind.CROSS: say("cross-attention weights"),
}
AXES = {
    AttentionKind.ENCODER_SELF: (say("source query"), say("source key")),
    AttentionKind.DECODER_SELF: (say("target query"), say("target key")),
    AttentionKind.CROSS: (say("target query"), say("source key")),
}


@dataclass(frozen=True)
class Arrow:
    """What flows out of one station of the model: its name, the shape, and how often the station is repeated.

    panel: the name of the view that opens the station up. side: "source", "target" or "output".
    """

    station: Words
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    side: str
    panel: str
    repeated: int = 1


def arrows(translator: Translator, output: ForwardOutput, source_ids: tuple[int, ...]) -> tuple[Arrow, ...]:
    """Every arrow of the encoder and the decoder with this sentence's shapes."""
    config = translator.config
    first, last = output.layers(Side.ENCODER), output.layers(Side.DECODER)
    target, memory = _shape(output.hidden)[:1], _shape(output.memory)
    logits = (*target, config.num_target_tokens)
    return (
        Arrow(say("source ids"), (len(source_ids),), (say("source"),), SOURCE, "embedding"),
        *_entry(SOURCE, first[0], config),
        *_layer(SOURCE, first[0], len(first)),
        Arrow(say("memory"), memory, (say("source"), "d_model"), SOURCE, "residual"),
        Arrow(say("decoder inputs"), target, (say("target"),), TARGET, "embedding"),
        *_entry(TARGET, last[0], config),
        *_layer(TARGET, last[0], len(last)),
        Arrow(say("projection"), logits, (say("target"), say("vocabulary")), OUTPUT, "logits"),
        Arrow(say("softmax"), logits, (say("target"), say("vocabulary")), OUTPUT, "logits"),
    )


def _entry(side: str, record: LayerRecord, config: ModelConfig) -> list[Arrow]:
    """From ids to what the first layer reads."""
    shape, axes = _shape(record.before), (_length(side), "d_model")
    name = say("embedding × √d_model") if config.scale_embedding else say("embedding")
    found = [Arrow(name, shape, axes, side, "embedding"), Arrow(say("+ position"), shape, axes, side, "embedding")]
    return [*found, Arrow(say("norm"), shape, axes, side, "embedding")] if config.norm_embedding else found


def _layer(side: str, record: LayerRecord, repeated: int) -> list[Arrow]:
    kinds = (AttentionKind.ENCODER_SELF,) if side == SOURCE else (AttentionKind.DECODER_SELF, AttentionKind.CROSS)
    found = [
        arrow
        for kind in kinds
        if record.attention(kind) is not None
        for arrow in _attention(side, record, kind, repeated)
    ]
    axes = (_length(side), "d_model")
    return [
        *found,
        Arrow(
            say("feed-forward, inside"),
            _shape(record.activations),
            (_length(side), "d_feedforward"),
            side,
            "feed-forward",
            repeated,
        ),
        Arrow(say("add & norm"), _shape(record.sublayers[-1].after), axes, side, "add-norm", repeated),
        Arrow(
            say("encoder layer") if side == SOURCE else say("decoder layer"),
            _shape(record.after),
            axes,
            side,
            "residual",
            repeated,
        ),
    ]


def _attention(side: str, record: LayerRecord, kind: AttentionKind, repeated: int) -> list[Arrow]:
    """From the stream through one attention and back into the stream."""
    found, passed, (query, key) = record.attention(kind), record.sublayer(kind.sublayer), AXES[kind]
    axes = (_length(side), "d_model")
    of_keys = say("K and V, of the memory") if kind is AttentionKind.CROSS else say("K and V")
    return [
        Arrow(say("Q"), _shape(found.queries), (say("heads"), query, "d_k"), side, "projections", repeated),
        Arrow(of_keys, _shape(found.keys), (say("heads"), key, "d_k"), side, "projections", repeated),
        Arrow(WEIGHTS[kind], _shape(found.weights), (say("heads"), query, key), side, "attention", repeated),
        Arrow(
            say("contexts: weights × V"),
            _shape(found.head_outputs),
            (say("heads"), query, "d_k"),
            side,
            "heads",
            repeated,
        ),
        Arrow(say("concat · W_O"), _shape(passed.added), axes, side, "heads", repeated),
        Arrow(say("add & norm"), _shape(passed.after), axes, side, "add-norm", repeated),
    ]


def _length(side: str) -> Words:
    return say("source") if side == SOURCE else say("target")


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape[1:])  # without the batch of one
