"""Steering vectors: the difference between two sentences' activations at a place (Turner et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.decode.runs import Run
from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.places import registry
from attention_atlas.model.nets.sweep import Changes, Sweep
from attention_atlas.model.trace.edits import Add, Edit, Numbers, SteeringVector
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal


def check_place(name: str, config: ModelConfig) -> None:
    """Raise ValueError unless a sentence has one row [width] for each of its tokens at this place."""
    for place in registry.matching([name], config):
        if place.name != name or place.axes[0] != "batch" or len(place.axes) != 3:
            raise ValueError(f"{name} has heads or keys of its own: a direction is of [batch, position, width]")


def token_means(run: Run, place: str) -> list[np.ndarray]:
    """Return the mean of a place over each sentence's tokens, float64 [width]."""
    masks = run.source_mask if place.startswith(Side.ENCODER.value) else run.mask
    return [exact(rows[mask]).mean(0).cpu().numpy() for rows, mask in zip(run[place], masks)]


def difference(towards: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Return the vector between two of token_means(), float32 [width]."""
    return (towards - away).astype(np.float32)


def check_differ(towards: Sequence[int], away: Sequence[int]) -> None:
    """Raise a Refusal if two sentences have the same ids."""
    if list(towards) == list(away):
        raise Refusal("The two sentences are the same: there is no direction between them.")


def uncomputed_vectors(changes: Changes) -> list[tuple[str, SteeringVector]]:
    """Return the steering vectors that are not computed yet, each with its place."""
    edits = (changes.interventions if isinstance(changes, Sweep) else changes).edits
    return [(place, edit.value) for place, edit in edits if _lacks_vector(edit)]


def with_vectors(changes: Changes, vector: Callable[[str, SteeringVector], np.ndarray]) -> Changes:
    """Return the changes with each of uncomputed_vectors() computed by `vector`."""
    if isinstance(changes, Sweep):
        return replace(changes, interventions=with_vectors(changes.interventions, vector))
    edits = tuple(
        (place, replace(edit, value=replace(edit.value, vector=Numbers.of(vector(place, edit.value)))))
        if _lacks_vector(edit)
        else (place, edit)
        for place, edit in changes.edits
    )
    return replace(changes, edits=edits)


def _lacks_vector(edit: Edit) -> bool:
    return isinstance(edit, Add) and isinstance(edit.value, SteeringVector) and edit.value.vector is None
