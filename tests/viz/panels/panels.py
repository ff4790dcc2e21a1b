"""Every panel of the lab's registry, and the values at which tests try its controls."""

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
    """Values of all controls: each choice, each slider at both ends and where it starts, each text empty and typed."""
    values = [_values(control, scene) for control in panel.controls]
    for i in range(max(map(len, values), default=1)):
        yield tuple(options[i % len(options)] for options in values)


def _values(control: Control, scene: Scene) -> tuple:
    if isinstance(control, Slider):
        config = scene.translator.config
        return control.coerce(-999, config), control.coerce(9999, config), control.coerce(None, config)
    if isinstance(control, Choice):
        return tuple(control.options)
    return "", " ".join(reversed(scene.trace.source_text.split()))  # the same words, as breaking the model needs


def contents(panel: Panel, scene: Scene, *values: object) -> list[Blocks]:
    """All that the panel shows, one after another."""
    found = panel.content(scene, *values)
    return list(found) if isgeneratorfunction(panel.compute) else [found]


def begin(panel: Panel, scene: Scene, block: dict, *values: object) -> tuple[Scene, list[tuple[int, int]]]:
    """Begin the work of a block `take` as the page does. Returns the scene that asks for its result, and the parts."""
    begun = replace(scene, begun=frozenset([block["work"]]))
    with pytest.raises(WorkNeeded) as needed:
        panel.content(begun, *values)
    assert needed.value.work.key == block["work"]
    return begun, list(needed.value.work.run())
