"""Scoring functions on one head's queries and keys: the trained one, and what others have used in its place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.dissection import Dissection, softmax
from attention_atlas.model.trace.language import say


@dataclass(frozen=True, eq=False)
class Scoring:
    """A scoring function's scores and weights [key] for one query. trained: False for an illustration, whose numbers
    the model was never trained with."""

    name: str
    formula: str
    source: str
    trained: bool
    scores: np.ndarray
    weights: np.ndarray


def compare_scorings(dissection: Dissection, *, seed: int = 0) -> tuple[Scoring, ...]:
    """Six scoring functions on the same q and K: scaled dot product (the trained one), dot product, general (Luong et
    al. 2015, equation 8) and additive (Bahdanau et al. 2015, section 3.1), both with weights drawn at random, cosine
    (Graves et al. 2014, equation 6, at strength 1) and the Gaussian kernel with width^2 = sqrt(d_k).

    With that width the Gaussian's exponent is the scaled dot product minus |k|^2 / (2 sqrt(d_k)), up to a constant of
    the query: it differs only by favouring short keys.
    """
    query, keys, width = dissection.query, dissection.keys, len(dissection.query)
    random = np.random.default_rng(seed)
    # Xavier's scale, as an untrained attention would start with (Glorot and Bengio 2010).
    w_query, w_key, between = (random.normal(0, math.sqrt(1 / width), (width, width)) for _ in range(3))
    direction = random.normal(0, math.sqrt(2 / (width + 1)), width)
    lengths = np.linalg.norm(keys, axis=-1) * np.linalg.norm(query)
    rows = (
        (say("scaled dot product"), "q·k / √d_k", say("Vaswani et al. 2017, equation 1"), True, dissection.scaled),
        (say("dot product"), "q·k", say("Luong et al. 2015, section 3.1"), False, dissection.dots),
        (say("general"), "qᵀ W k", say("Luong et al. 2015, section 3.1"), False, keys @ between.T @ query),
        (
            say("cosine"),
            "q·k / (|q| |k|)",
            say("Graves et al. 2014, equation 6"),
            False,
            np.divide(dissection.dots, lengths, out=np.zeros_like(lengths), where=lengths > 0),
        ),
        (
            say("additive"),
            "vᵀ tanh(W q + U k)",
            say("Bahdanau et al. 2015, section 3.1"),
            False,
            np.tanh(query @ w_query.T + keys @ w_key.T) @ direction,
        ),
        (
            say("Gaussian kernel"),
            "−|q − k|² / (2 √d_k)",
            "Nadaraya 1964; Watson 1964",
            False,
            -((keys - query) ** 2).sum(-1) / (2 * math.sqrt(width)),
        ),
    )
    return tuple(
        Scoring(name, formula, source, trained, scores, softmax(np.where(dissection.allowed, scores, -np.inf)))
        for name, formula, source, trained, scores in rows
    )
