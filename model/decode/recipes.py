"""Directions that are told by two sentences: their vectors, of this model at that place (Turner et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from model.decode.runs import Run
from model.nets.blocks import exact
from model.nets.sweep import Changes, Sweep
from model.trace.edits import Add, Edit, Numbers, Recipe
from model.trace.kinds import Side
from model.trace.language import Refusal


def difference(run: Run, place: str) -> np.ndarray:
    """What a place holds of the first sentence less what it holds of the second, each averaged over its tokens: float32
    [width]. ValueError for a place that has heads or keys of its own; a Refusal for two texts that are one."""
    if run.source_ids[0] == run.source_ids[1]:
        raise Refusal("The two sentences are the same: there is no direction between them.")
    masks = run.source_mask if place.startswith(Side.ENCODER.value) else run.mask
    if run[place].ndim != 3:
        raise ValueError(f"{place} has heads or keys of its own: a direction is of [batch, position, width]")
    one, other = (exact(rows[mask]).mean(0) for rows, mask in zip(run[place], masks))
    return (one - other).to(torch.float32).cpu().numpy()


def with_vectors(changes: Changes, vector: Callable[[Recipe, str], np.ndarray]) -> Changes:
    """The same with what each recipe makes at its place, where nobody has found it yet."""
    if isinstance(changes, Sweep):
        return replace(changes, interventions=with_vectors(changes.interventions, vector))
    if not any(_unmade(edit) for _, edit in changes.edits):
        return changes

    def made(place: str, edit: Edit) -> Edit:
        if not _unmade(edit):
            return edit
        return replace(edit, value=replace(edit.value, vector=Numbers.of(vector(edit.value, place))))

    return replace(changes, edits=tuple((place, made(place, edit)) for place, edit in changes.edits))


def _unmade(edit: Edit) -> bool:
    return isinstance(edit, Add) and isinstance(edit.value, Recipe) and edit.value.vector is None
