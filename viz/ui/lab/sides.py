"""The two sides of the model, and what several panels ask of one."""

from __future__ import annotations

from model.config import ModelConfig
from model.nets.records import LayerRecord
from model.trace.kinds import Side
from viz.maps import labels
from viz.ui.lab.controls import Choice, Slider
from viz.ui.scene import Scene
from viz.words import say

ENCODER, DECODER = Side.ENCODER.value, Side.DECODER.value
SIDES = {ENCODER: say("encoder (reads the source)"), DECODER: say("decoder (writes the target)")}


def deepest(config: ModelConfig) -> int:
    """The layers of the deeper side."""
    return max(config.num_encoder_layers, config.num_decoder_layers)


def most_heads(config: ModelConfig) -> int:
    """The heads of a layer of the side that has more."""
    return max(config.of(side).num_heads for side in Side)


SIDE = Choice(say("Side"), SIDES, ENCODER, name="side")
LAYER = Slider(say("Layer"), 1, deepest, 2, name="layer")


def tokens_of(scene: Scene, side: str) -> list[str]:
    tokens = scene.trace.source_tokens if side == ENCODER else scene.trace.decoder_inputs
    return [labels.display(token) for token in tokens]


def records(scene: Scene, side: str) -> tuple[LayerRecord, ...]:
    return scene.output.layers(Side(side))


def record_of(scene: Scene, side: str, layer: int) -> tuple[LayerRecord, int]:
    """The layer's record; the last layer where the side has fewer. Also its index from 0."""
    found = records(scene, side)
    index = min(layer, len(found)) - 1
    return found[index], index
