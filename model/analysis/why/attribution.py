"""Why this token: the tokens' matrix for one question.

why = attribute(translator, trace, step=3, contrast="coffee")
why.row("occlusion_by_mask").values, why.columns.labels
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model.analysis.why.case import Case, open_case
from model.analysis.why.means_cache import stored_means
from model.analysis.why.pinned import ask
from model.analysis.why.registry import METHODS, other_occlusion
from model.trace.translation import TranslationTrace
from model.trace.why.means import Means
from model.trace.why.question import Against
from model.trace.why.ranks import spearman
from model.trace.why.rows import Why, slug_of
from model.translator import Translator


def attribute(
    translator: Translator,
    trace: TranslationTrace,
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
    methods: Sequence[str] = tuple(METHODS),
    words: bool = True,
    means: Means | None = None,
    cross_layer: int | None = None,
) -> Why:
    """Ask several methods about one written token. The options, each independent of the others:

    step         the row of the decoder; None: that of the least certain content word
    contrast     text, a token's id, Against.RUNNER_UP or Against.NOTHING (see model.analysis.why.pinned.ask)
    methods      names of model.analysis.why.registry.METHODS
    words        columns are whole words, else pieces
    means        what an average embedding is; None: those stored with the checkpoint, as on the page, and without them
                 the mean of the vocabulary
    cross_layer  of the rows about cross-attention; None: the mean over layers

    ValueError, in words, for what cannot be asked.
    Eight parameters: a question is asked in that many independent ways, and a caller names one or two.
    """
    check_methods(methods)
    question = ask(translator, trace, step, contrast)
    means = stored_means(translator) if means is None else means
    case = open_case(translator, trace, question, words=words, means=means, cross_layer=cross_layer)
    return answer(case, methods)


def check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """Their slugs, also of those that are called as they were before they had any. ValueError, in words, for one that
    there is not."""
    for name in methods:
        if slug_of(name) not in METHODS:
            raise ValueError(f"There is no method {name!r}: there are {', '.join(METHODS)}.")
    return tuple(map(slug_of, methods))


def answer(case: Case, methods: Sequence[str] = tuple(METHODS)) -> Why:
    """The rows of these methods for a case, and how well each agrees with occlusion under the other replacement where
    that is among them."""
    rows = {name: METHODS[name](case) for name in dict.fromkeys(methods)}
    ordinary = ~case.columns.special

    def agreement(name: str) -> float | None:
        occlusion = rows.get(other_occlusion(name).slug)
        return None if occlusion is None else agree(rows[name].values, occlusion.values, ordinary)

    return Why(
        case.question, case.columns, case.metric(), tuple(rows.values()), {name: agreement(name) for name in rows}
    )


def agree(values: np.ndarray, occlusion: np.ndarray, ordinary: np.ndarray) -> float | None:
    """Spearman's correlation over the columns that are no symbols, bool [column]."""
    return spearman(values[ordinary], occlusion[ordinary])
