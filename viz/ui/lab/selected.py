"""The menus for one head: which attention, layer, head and query, or as selected elsewhere."""

from __future__ import annotations

from model.trace.kinds import AttentionKind
from viz.ui.lab.controls import Choice, Slider, tokens
from viz.ui.lab.sides import deepest, most_heads
from viz.ui.scene import Scene
from viz.words import say

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
