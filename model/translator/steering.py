"""Compute steering vectors: the difference between two sentences' activations at a place (Turner et al. 2023)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attention_atlas.model.nets.blocks import exact
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.places import registry
from attention_atlas.model.nets.sweep import Changes, Sweep, plain_part
from attention_atlas.model.trace.edits import Add, Numbers, SteeringVector
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal

if TYPE_CHECKING:
    from attention_atlas.model.translator.translator import Translator


def compute_vectors(
    translator: Translator, recipes: Sequence[tuple[str, SteeringVector]], direction: str | None = None
) -> list[np.ndarray]:
    """Return each recipe's vector at its place, float32 [width], from one batch for each direction.

    A vector is the mean over the tokens of one sentence's activations, less that of the other.

    recipes: (place, recipe) pairs. direction: of the sentences where a recipe names none. Raises ValueError for a text
    or a place that cannot be used, and a Refusal if both texts of a recipe are the same.
    """
    check_transformer(translator.model)
    for name, _ in recipes:
        for place in registry.matching([name], translator.config):
            if place.name != name or place.axes[0] != "batch" or len(place.axes) != 3:
                raise ValueError(f"{name} has heads or keys of its own: a direction is of [batch, position, width]")
    vectors: dict[int, np.ndarray] = {}
    languages = [recipe.languages or direction for _, recipe in recipes]
    for each in dict.fromkeys(languages):
        batch = [i for i, other in enumerate(languages) if other == each]
        texts = list(dict.fromkeys(text for i in batch for text in (recipes[i][1].towards, recipes[i][1].away)))
        run = translator.run(texts, names=sorted({recipes[i][0] for i in batch}), direction=each)
        for i in batch:
            place, recipe = recipes[i]
            rows = texts.index(recipe.towards), texts.index(recipe.away)
            if run.source_ids[rows[0]] == run.source_ids[rows[1]]:
                raise Refusal("The two sentences are the same, so there is no direction between them.")
            masks = run.source_mask if place.startswith(Side.ENCODER.value) else run.mask
            towards, away = (exact(run[place][row][masks[row]]).mean(0).cpu().numpy() for row in rows)
            vectors[i] = (towards - away).astype(np.float32)
    return [vectors[i] for i in range(len(recipes))]


def fill_vectors(translator: Translator, changes: Changes, direction: str | None = None) -> Changes:
    """Return the changes with a vector for each recipe that lacks one, computed by the model without its edits.

    Raises Refusal where the recipes' sentences are more than a batch of two of the greatest length: interventions that
    strangers send may hold many recipes.
    """
    plain = plain_part(changes)
    unfilled = {
        i: (place, edit, edit.value)
        for i, (place, edit) in enumerate(plain.edits)
        if isinstance(edit, Add) and isinstance(edit.value, SteeringVector) and edit.value.vector is None
    }
    if not unfilled:
        return changes
    recipes = [(place, recipe) for place, _, recipe in unfilled.values()]
    sentences = {
        (text, recipe.languages or direction) for _, recipe in recipes for text in (recipe.towards, recipe.away)
    }
    lengths = [len(translator.encode(*sentence)) for sentence in sentences]
    if len(lengths) * max(lengths) > 2 * translator.max_tokens:
        raise Refusal(
            "The directions use {n} sentences of up to {longest} tokens; together the limit is {limit} tokens.",
            n=len(lengths),
            longest=max(lengths),
            limit=2 * translator.max_tokens,
        )
    unedited = copy.copy(translator)
    unedited.changes = NO_INTERVENTIONS
    edits = list(plain.edits)
    vectors = compute_vectors(unedited, recipes, direction)
    for (i, (place, edit, recipe)), vector in zip(unfilled.items(), vectors):
        edits[i] = (place, replace(edit, value=replace(recipe, vector=Numbers.of(vector))))
    plain = replace(plain, edits=tuple(edits))
    return replace(changes, interventions=plain) if isinstance(changes, Sweep) else plain
