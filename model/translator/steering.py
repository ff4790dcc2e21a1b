"""Compute steering vectors: the difference between two sentences' activations at a place (Turner et al. 2023)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.places import registry
from attention_atlas.model.nets.sweep import Changes, Sweep
from attention_atlas.model.trace.edits import Add, Edit, Numbers, SteeringVector
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal

if TYPE_CHECKING:
    from attention_atlas.model.translator.translator import Translator


def compute_vector(
    translator: Translator, recipe: SteeringVector, place: str, direction: str | None = None
) -> np.ndarray:
    """Return the mean over tokens of one sentence's activations at a place, less that of the other: float32 [width].

    direction: of the sentences where the recipe names none. Raises ValueError for a text or a place that cannot be
    used, and a Refusal if both texts are the same.
    """
    check_transformer(translator.model)
    for found in registry.matching([place], translator.config):
        if found.name != place or found.axes[0] != "batch" or len(found.axes) != 3:
            raise ValueError(f"{place} has heads or keys of its own: a direction is of [batch, position, width]")
    run = translator.run([recipe.towards, recipe.away], names=[place], direction=recipe.languages or direction)
    if run.source_ids[0] == run.source_ids[1]:
        raise Refusal("The two sentences are the same: there is no direction between them.")
    masks = run.source_mask if place.startswith(Side.ENCODER.value) else run.mask
    towards, away = (exact(rows[mask]).mean(0).cpu().numpy() for rows, mask in zip(run[place], masks))
    return (towards - away).astype(np.float32)


def fill_vectors(translator: Translator, changes: Changes, direction: str | None = None) -> Changes:
    """Return the changes with a vector for each recipe that lacks one, computed by the model without its edits.

    Raises Refusal where the recipes' sentences are more than a batch of two of the greatest length: interventions that
    strangers send may hold many recipes.
    """
    plain = changes.interventions if isinstance(changes, Sweep) else changes
    recipes = [recipe for _, edit in plain.edits if (recipe := _recipe_without_vector(edit)) is not None]
    if not recipes:
        return changes
    sentences = {(text, recipe.languages or direction) for recipe in recipes for text in (recipe.towards, recipe.away)}
    lengths = [len(translator.encode(*sentence)) for sentence in sentences]
    if len(lengths) * max(lengths) > 2 * translator.max_tokens:
        raise Refusal(
            "The directions are made of {n} sentences of up to {longest} tokens; together the limit is {limit} tokens.",
            n=len(lengths),
            longest=max(lengths),
            limit=2 * translator.max_tokens,
        )
    unedited = copy.copy(translator)
    unedited.changes = NO_INTERVENTIONS

    def fill(place: str, edit: Edit) -> Edit:
        recipe = _recipe_without_vector(edit)
        if recipe is None:
            return edit
        vector = Numbers.of(compute_vector(unedited, recipe, place, direction))
        return replace(cast(Add, edit), value=replace(recipe, vector=vector))

    plain = replace(plain, edits=tuple((place, fill(place, edit)) for place, edit in plain.edits))
    return replace(changes, interventions=plain) if isinstance(changes, Sweep) else plain


def _recipe_without_vector(edit: Edit) -> SteeringVector | None:
    value = edit.value if isinstance(edit, Add) else None
    return value if isinstance(value, SteeringVector) and value.vector is None else None
