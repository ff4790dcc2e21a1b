"""All panels, and the values of their controls that tests try."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import isgeneratorfunction

import numpy as np
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


def blocks_of(content: Sequence[dict], kind: str) -> list[dict]:
    """Return the blocks of a type, in order, also those within other blocks."""
    blocks = []
    for block in content:
        blocks += [block] if block["type"] == kind else blocks_of(block.get("blocks", ()), kind)
    return blocks


def block_of(content: Sequence[dict], kind: str) -> dict:
    """Return the first block of a type."""
    return blocks_of(content, kind)[0]


def numbers_of(heatmap: dict) -> np.ndarray:
    """Return the numbers of a block's map, decoded as by the page."""
    return np.frombuffer(base64.b64decode(heatmap["data"]), "<f4").reshape(heatmap["shape"])


def decode(values: object) -> np.ndarray:
    """Decode the numbers of a figure: Plotly writes arrays as {dtype, bdata}."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return np.array(values, float)


def begin(panel: Panel, scene: Scene, block: dict, *values: object) -> tuple[Scene, list[tuple[int, int]]]:
    """Start the work of a block as the page does. Return the scene that requests its result, and the progress."""
    begun = replace(scene, begun=frozenset([block["work"]]))
    with pytest.raises(WorkNeeded) as needed:
        panel.content(begun, *values)
    assert needed.value.work.key == block["work"]
    return begun, list(needed.value.work.run())
