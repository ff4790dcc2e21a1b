"""The menus that several panels share, and what they mean: a side and its layer, or one head of one attention."""

from __future__ import annotations

from attention_atlas.model.analysis.dissection import Dissection, dissect
from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.records import LayerRecord
from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.viz.maps import labels
from attention_atlas.viz.panels.controls import Choice, Slider, tokens
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.words import Words, say

ENCODER, DECODER = Side.ENCODER.value, Side.DECODER.value
SIDES = {ENCODER: say("encoder (reads the source)"), DECODER: say("decoder (writes the target)")}


def deepest(config: ModelConfig) -> int:
    """The layers of the deeper side."""
    return max(config.num_encoder_layers, config.num_decoder_layers)


def most_heads(config: ModelConfig) -> int:
    """The heads of a layer of the side that has more."""
    return max(config.of(side).num_heads for side in Side)


SIDE = Choice(say("Side"), SIDES, ENCODER, name="side")
LAYER_OF_SIDE = Slider(say("Layer"), 1, deepest, 2, name="layer")


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


# One head; 0 or "": as selected elsewhere.
KIND = Choice(
    say("Attention"),
    {
        "": say("as selected elsewhere"),
        "encoder_self": say("Encoder self-attention"),
        "decoder_self": say("Decoder self-attention"),
        "cross": say("Cross-attention"),
    },
    "",
    folded=True,
    name="kind",
)
LAYER = Slider(say("Layer"), 0, deepest, 0, info=say("0: as selected"))
HEAD = Slider(say("Head"), 0, most_heads, 0, info=say("0: as selected"))
QUERY = Slider(say("Query token"), 0, 64, 0, info=say("0: as selected"), of=tokens)


def resolve(scene: Scene, kind: str, layer: int, head: int, query: int = 0) -> tuple[AttentionKind, int, int, int]:
    """What the menus mean: kind, layer, head and query position, all from 0 and inside this trace's limits."""
    selected = scene.selection
    chosen = AttentionKind(kind) if kind else selected.kind
    maps = scene.trace.maps(chosen)
    queries = len(maps.query_tokens)
    at = query - 1 if query else selected.query if selected.query is not None else min(1, queries - 1)
    return (
        chosen,
        min(layer - 1 if layer else selected.layer, maps.num_layers - 1),
        min(head - 1 if head else selected.head, maps.num_heads - 1),
        min(at, queries - 1),
    )


def dissected(scene: Scene, kind: str, layer: int, head: int, query: int) -> tuple[Dissection, Words, list[str]]:
    """The stages, what they are of, and the keys as they are shown. layer, head and query from 1; 0: as selected."""
    chosen, at_layer, at_head, at = resolve(scene, kind, layer, head, query)
    maps = scene.trace.maps(chosen)
    found = dissect(scene.output, chosen, at_layer, at_head, query=at)
    title = say(
        "{kind}, layer {layer}, head {head}, query {n}: {row}",
        **labels.place(chosen, at_layer, at_head),
        n=at + 1,
        row=labels.row_name(scene.trace, chosen, at),
    )
    return found, title, [labels.display(token) for token in maps.key_tokens]
