"""The residual stream before the first layer of a stack and after each, by place."""

from __future__ import annotations

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.places.registry import AFTER
from attention_atlas.model.trace.kinds import Side, SubLayerName


def streams(config: ModelConfig, side: Side) -> tuple[str, ...]:
    """Their places' names, layers + 1 of them."""
    layers = config.num_encoder_layers if side is Side.ENCODER else config.num_decoder_layers
    ends = [f"{side.value}.{layer}.{AFTER[SubLayerName.FEED_FORWARD]}" for layer in range(layers)]
    return (f"{side.value}.0.{AFTER[None]}", *ends)
