"""Controls that several panels share: a side and its layer, or one head of one kind of attention."""

from __future__ import annotations

from attention_atlas.model.analysis.formulas.stages import Dissection, dissect
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.records import LayerRecord
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.panel import Choice, Slider, count_tokens
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.words import Words, say

ENCODER, DECODER = Side.ENCODER.value, Side.DECODER.value
SIDES = {ENCODER: say("encoder (reads the source)"), DECODER: say("decoder (writes the target)")}


def deepest(config: ModelConfig) -> int:
    """Return the number of layers of the deeper side."""
    return max(config.num_encoder_layers, config.num_decoder_layers)


def most_heads(config: ModelConfig) -> int:
    """Return the number of heads of a layer, of the side that has more."""
    return max(config.of(side).num_heads for side in Side)


SIDE = Choice(say("Side"), SIDES, ENCODER, name="side")
LAYER_OF_SIDE = Slider(say("Layer"), 1, deepest, 2, name="layer")


def tokens_of(scene: Scene, side: str) -> list[str]:
    """Return the tokens that a side reads, for display."""
    tokens = scene.trace.source_tokens if side == ENCODER else scene.trace.decoder_inputs
    return [labels.display(token) for token in tokens]


def records(scene: Scene, side: str) -> tuple[LayerRecord, ...]:
    """Return the recorded layers of a side."""
    return scene.output.layers(Side(side))


def record_of(scene: Scene, side: str, layer: int) -> tuple[LayerRecord, int]:
    """Return the record of a layer (from 1; the last one if the side has fewer) and its index from 0."""
    layers = records(scene, side)
    index = min(layer, len(layers)) - 1
    return layers[index], index


# One head. 0 or "" stands for the selection in the explorer.
KIND = Choice(
    say("Attention"),
    {"": say("current selection"), **{kind.value: labels.KIND_TITLES[kind] for kind in TRANSFORMER_KINDS}},
    "",
    folded=True,
    name="kind",
)
LAYER = Slider(say("Layer"), 0, deepest, 0, info=say("0: current selection"))
HEAD = Slider(say("Head"), 0, most_heads, 0, info=say("0: current selection"))
QUERY = Slider(say("Query token"), 0, 64, 0, info=say("0: current selection"), of=count_tokens)


def resolve(scene: Scene, kind: str, layer: int, head: int, query: int = 0) -> tuple[AttentionKind, int, int, int]:
    """Return kind, layer, head and query position, counted from 0 and within this trace's limits."""
    selected = scene.selection
    attention = AttentionKind(kind) if kind else selected.kind
    maps = scene.trace.maps(attention)
    queries = len(maps.query_tokens)
    row = query - 1 if query else selected.query if selected.query is not None else min(1, queries - 1)
    return (
        attention,
        min(layer - 1 if layer else selected.layer, maps.num_layers - 1),
        min(head - 1 if head else selected.head, maps.num_heads - 1),
        min(row, queries - 1),
    )


def dissect_query(scene: Scene, kind: str, layer: int, head: int, query: int) -> tuple[Dissection, Words, list[str]]:
    """Return the stages of one query's attention, a title, and the keys for display. Arguments as for resolve()."""
    attention, at_layer, at_head, row = resolve(scene, kind, layer, head, query)
    maps = scene.trace.maps(attention)
    stages = dissect(scene.output, attention, at_layer, at_head, query=row)
    title = say(
        "{kind}, layer {layer}, head {head}, query {n}: {row}",
        **labels.place(attention, at_layer, at_head),
        n=row + 1,
        row=labels.row_name(scene.trace, attention, row),
    )
    return stages, title, [labels.display(token) for token in maps.key_tokens]
