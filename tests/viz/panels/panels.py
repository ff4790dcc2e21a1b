"""All panels, and the values of their controls that tests try."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from inspect import isgeneratorfunction

import pytest

from attention_atlas.model.serve.work import WorkNeeded
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.panel import Blocks, Choice, Control, Panel, Slider
from attention_atlas.viz.panels.scene import Scene

EVERY = [panel for panels in registry.PANELS.values() for panel in panels]


def named(name: str) -> Panel:
    return next(panel for panel in EVERY if panel.name == name)


def settings(panel: Panel, scene: Scene) -> Iterator[tuple]:
    """Yield values of all controls: each choice, both ends and the start of each slider, texts empty and typed."""
    values = [_values(control, scene) for control in panel.controls]
    for i in range(max(map(len, values), default=1)):
        yield tuple(options[i % len(options)] for options in values)


def _values(control: Control, scene: Scene) -> tuple:
    if isinstance(control, Slider):
        config = scene.translator.config
        return control.coerce(-999, config), control.coerce(9999, config), control.coerce(None, config)
    if isinstance(control, Choice):
        return tuple(control.options)
    # The panel "Break it" requires a permutation of the sentence's words.
    return "", " ".join(reversed(scene.trace.source_text.split()))


def contents(panel: Panel, scene: Scene, *values: object) -> list[Blocks]:
    """Return all versions of the blocks that the panel shows."""
    content = panel.content(scene, *values)
    return list(content) if isgeneratorfunction(panel.compute) else [content]


def begin(panel: Panel, scene: Scene, block: dict, *values: object) -> tuple[Scene, list[tuple[int, int]]]:
    """Start the work of a block as the page does. Return the scene that requests its result, and the progress."""
    begun = replace(scene, begun=frozenset([block["work"]]))
    with pytest.raises(WorkNeeded) as needed:
        panel.content(begun, *values)
    assert needed.value.work.key == block["work"]
    return begun, list(needed.value.work.run())
