"""Patches as the page draws them: a map of how far each place of one run takes the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model.trace.language import Words, say
from model.trace.why.patches import HeadGrid, PatchEffects
from viz.wire.blocks import compact
from viz.wire.experiments.heads import signed


def patches_block(effects: PatchEffects, columns: Sequence[str], name: Words) -> dict:
    """A grid of layers by positions (columns: what stands there) or heads. Recovered shares; where the two runs are
    too near each other for shares, nats. name: what is shown, for those who do not see it."""
    shares = effects.recovered
    values = effects.metrics - effects.base if shares is None else shares
    limit = 1.0 if shares is not None else float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    heads = isinstance(effects.grid, HeadGrid)

    def cell(layer: int, column: int) -> dict:
        value, moved = float(values[layer, column]), float(effects.metrics[layer, column] - effects.base)
        where = {"layer": layer + 1, "place": column + 1 if heads else columns[column], "n": signed(moved)}
        if np.isnan(value):
            name = say(
                "Layer {layer}, {place}: the other sentence has no such place.", layer=layer + 1, place=columns[column]
            )
            return {"value": None, "text": "", "marks": ["absent"], "name": name}
        text = signed(value) if shares is None else compact(value, 2) if abs(value) >= 0.005 else "0"
        where["share"] = text
        if heads:
            said = (
                say("Layer {layer}, head {place}: {n} nats.", **where)
                if shares is None
                else say("Layer {layer}, head {place}: {share} of the way, {n} nats.", **where)
            )
        else:
            said = (
                say("Layer {layer}, {place}: {n} nats.", **where)
                if shares is None
                else say("Layer {layer}, {place}: {share} of the way, {n} nats.", **where)
            )
        return {"value": round(max(-1.0, min(1.0, value / limit)), 4), "text": text, "marks": [], "name": said}

    return {
        "type": "grid",
        "name": name,
        "corner": "",
        "columns": list(columns),
        "rows": [
            {
                "label": say("layer {n}", n=layer + 1),
                "cells": [cell(layer, column) for column in range(values.shape[1])],
            }
            for layer in range(values.shape[0])
        ],
    }
