"""Compute the steering vectors that a request's interventions describe as the difference of two sentences."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from attention_atlas.model.decode.steering import (
    check_differ,
    check_place,
    difference,
    token_means,
    uncomputed_vectors,
    with_vectors,
)
from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.nets.sweep import Changes
from attention_atlas.model.trace.edits import SteeringVector
from attention_atlas.model.trace.interventions import NO_INTERVENTIONS
from attention_atlas.model.trace.language import Refusal

if TYPE_CHECKING:
    from attention_atlas.model.translator.translator import Translator


def fill_vectors(translator: Translator, changes: Changes, direction: str | None = None) -> Changes:
    """Return the changes with a vector for each recipe that lacks one, computed by the model without its edits.

    Raises Refusal where the recipes' sentences are more than a batch of two of the greatest length: interventions that
    strangers send may hold many recipes.
    """
    if not (recipes := uncomputed_vectors(changes)):
        return changes
    check_transformer(translator.model)
    places: dict[str, set[str]] = {}  # direction -> the places to read
    ids: dict[str, dict[str, list[int]]] = {}  # direction -> sentence -> its source ids
    for place, recipe in recipes:
        check_place(place, translator.config)
        languages = translator.check_direction(recipe.languages or direction)
        places.setdefault(languages, set()).add(place)
        sentences = ids.setdefault(languages, {})
        for text in (recipe.towards, recipe.away):
            if text not in sentences:
                sentences[text] = translator.encode(text, languages)
                lengths = [len(row) for rows in ids.values() for row in rows.values()]
                if len(lengths) * max(lengths) > 2 * translator.max_tokens:
                    raise Refusal(
                        "The directions are made of {n} sentences of up to {longest} tokens; together the limit is "
                        "{limit} tokens.",
                        n=len(lengths),
                        longest=max(lengths),
                        limit=2 * translator.max_tokens,
                    )
        check_differ(sentences[recipe.towards], sentences[recipe.away])
    unedited = copy.copy(translator)
    unedited.changes = NO_INTERVENTIONS
    means = {}  # direction -> place -> sentence -> its mean vector
    for languages, sentences in ids.items():
        run = unedited.run(tuple(sentences), names=sorted(places[languages]), direction=languages)
        means[languages] = {place: dict(zip(sentences, token_means(run, place))) for place in run.names}

    def vector(place: str, recipe: SteeringVector) -> np.ndarray:
        by_sentence = means[translator.check_direction(recipe.languages or direction)][place]
        return difference(by_sentence[recipe.towards], by_sentence[recipe.away])

    return with_vectors(changes, vector)
