"""Which head of one model is which of another, by the rows of both on the same sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.analysis.survey.batch import maps_and_lengths, run, similarity
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey import cells
from attention_atlas.model.translator import Translator


def comparable(one: Translator, other: Translator, direction: str) -> bool:
    """Whether both read and write the same pieces by the same numbers, and translate this direction."""
    return direction in other.directions and one.tokenizer.pieces == other.tokenizer.pieces


def same_rows(
    one: Translator, other: Translator, direction: str, texts: Sequence[str]
) -> dict[AttentionKind, np.ndarray]:
    """By kind, float64 [heads of all layers, the other's]: 1 less the mean Jensen-Shannon divergence in bits of their
    rows, over these texts with the first model's translations, which both are made to write. comparable() must
    hold. ValueError for a text that cannot be read."""
    traces = one.trace_batch(texts, direction)
    passes = [
        run(model, [t.source_ids for t in traces], [t.target_ids for t in traces], slopes=False)
        for model in (one, other)
    ]
    found = {}
    for kind in one.model.num_layers:
        maps = [maps_and_lengths(model.model, passed.output, kind)[0] for model, passed in zip((one, other), passes)]
        total = 0.0
        for index in range(len(traces)):
            queries, keys = passes[0].axes(kind, index)
            mine, theirs = (part[index, ..., :queries, :keys].reshape(-1, queries, keys) for part in maps)
            total = total + similarity(mine, cells.allowed_cells(kind, queries, keys), theirs)
        found[kind] = total / len(traces)
    return found
