"""One query of one head taken apart, for the panels that show it."""

from __future__ import annotations

from model.analysis.dissection import Dissection, dissect
from viz.maps import labels
from viz.ui.lab.selected import resolve
from viz.ui.scene import Scene
from viz.words import Words, say


def dissected(scene: Scene, kind: str, layer: int, head: int, query: int) -> tuple[Dissection, Words, list[str]]:
    """The stages, what they are of, and the keys as they are shown. layer, head and query from 1; 0: as selected."""
    chosen, at_layer, at_head, at = resolve(scene, kind, layer, head, query)
    maps = scene.trace.maps(chosen)
    found = dissect(scene.output, chosen, at_layer, at_head, query=at)
    title = say(
        "{kind}, layer {layer}, head {head}, query {n}: {row}",
        kind=labels.KIND_TITLES[chosen],
        layer=at_layer + 1,
        head=at_head + 1,
        n=at + 1,
        row=labels.row_name(scene.trace, chosen, at),
    )
    return found, title, [labels.display(token) for token in maps.key_tokens]
