"""Why this token: the tokens' matrix for one question.

why = attribute(translator, trace, step=3, contrast="coffee")
why.row("occlusion_by_mask").values, why.columns.labels
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import length_hint
from typing import TypeVar

import numpy as np

from attention_atlas.model.analysis.why.case import Baseline, Case, open_case
from attention_atlas.model.analysis.why.means_cache import stored_means
from attention_atlas.model.analysis.why.method import Method
from attention_atlas.model.analysis.why.pinned import ask
from attention_atlas.model.analysis.why.registry import METHODS, other_occlusion
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace import check_sequence
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against, Row, Why, slug_of
from attention_atlas.model.trace.why.faithfulness import spearman
from attention_atlas.model.trace.why.means import Means
from attention_atlas.model.translator import Translator

One = TypeVar("One")


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
    baseline: Baseline | None = None,
) -> Why:
    """Ask several methods why one token was written and not another.

    `why.attribute(translator, trace, step=3, contrast="tea").to_frame()` has a line a word, a column a method.

    step         the row of the decoder; None: that of the least certain content word
    contrast     text, a token's id, Against.RUNNER_UP or Against.NOTHING (see model.analysis.why.pinned.ask)
    methods      names of model.analysis.why.registry.METHODS
    words        columns are whole words, else pieces
    means        what an average embedding is; None: those stored with the checkpoint, as on the page, and without them
                 the mean of the vocabulary
    cross_layer  of the rows about cross-attention; None: the mean over layers
    baseline     where integrated gradients start: scaled token embeddings, without positions, of the source and of the
                 prefix, each one row [d_model] or a row for each position; None: what an average embedding is

    ValueError, in words, for what cannot be asked.
    """
    methods = check_methods(methods)
    question = ask(translator, trace, step, contrast)
    means = stored_means(translator) if means is None else means
    case = open_case(translator, trace, question, words=words, means=means, cross_layer=cross_layer, baseline=baseline)
    return answer(case, methods)


def attribute_batch(
    translator: Translator,
    texts: Iterable[str | TranslationTrace],
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
    methods: Sequence[str] = tuple(METHODS),
    words: bool = True,
    direction: str | None = None,
    batch_size: int = 16,
    progress: bool = False,
) -> Iterator[Why]:
    """Ask about any number of texts or traces, in their order. Texts are translated `batch_size` at a time, and no more
    are in memory at once. step, contrast, methods, words: as in attribute(). progress: a bar on standard error (tqdm).

    ValueError, saying which text, for one that cannot be translated or asked about.
    """
    means = stored_means(translator)
    asked = partial(attribute, translator, step=step, contrast=contrast, methods=methods, words=words, means=means)
    traces = enumerate(_traces(translator, texts, direction, batch_size))
    found = (_named(number, asked, trace) for number, trace in traces)
    if not progress:
        return found
    from tqdm import tqdm  # of the extra "train"

    return iter(tqdm(found, total=length_hint(texts) or None, unit=" texts"))


def _traces(
    translator: Translator, texts: Iterable[str | TranslationTrace], direction: str | None, batch_size: int
) -> Iterator[TranslationTrace]:
    for part in batched(enumerate(texts), batch_size):
        untraced = [(number, text) for number, text in part if isinstance(text, str)]
        for number, text in untraced:
            _named(number, translator.encode, text, direction)  # raises
        traces = iter(translator.trace_batch([text for _, text in untraced], direction))
        yield from (next(traces) if isinstance(text, str) else text for _, text in part)


def _named(number: int, ask: Callable[..., One], *given: object) -> One:
    try:
        return ask(*given)
    except ValueError as error:
        raise ValueError(f"text {number}: {error}") from error


def check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """Their slugs, also of those that are called as they were before they had any. ValueError, in words, for one that
    there is not, and for none at all."""
    if not (methods := tuple(check_sequence("methods", methods))):
        raise ValueError(f"there is no method to ask: name one or more of {', '.join(METHODS)}")
    for name in methods:
        if slug_of(name) not in METHODS:
            raise ValueError(f"There is no method {name!r}: there are {', '.join(METHODS)}.")
    return tuple(map(slug_of, methods))


def answer(case: Case, methods: Sequence[str] = tuple(METHODS)) -> Why:
    """The rows of these methods for a case, and how well each agrees with occlusion under the other replacement where
    that is among them."""
    names = tuple(dict.fromkeys(methods))
    rows = answers(case, [METHODS[name] for name in names])
    ordinary = ~case.columns.special

    def agreement(name: str) -> float | None:
        occlusion = rows.get(other_occlusion(name).slug)
        return None if occlusion is None else agree(rows[name].values, occlusion.values, ordinary)

    return Why(
        case.question, case.columns, case.metric(), tuple(rows.values()), {name: agreement(name) for name in rows}
    )


def answers(case: Case, methods: Sequence[Method]) -> dict[str, Row]:
    """The rows of these methods, by name. The quick ones run beside one another; of a slow one the many passes do."""
    case.metric()  # once, before several methods ask for the recorded pass
    quick = [method for method in methods if not method.slow]
    rows = dict(zip(quick, map_on_spare_core(lambda method: method(case), quick)))
    return {method.slug: method(case) if method.slow else rows[method] for method in methods}


def agree(values: np.ndarray, occlusion: np.ndarray, ordinary: np.ndarray) -> float | None:
    """Spearman's correlation over the columns that are no symbols, bool [column]."""
    return spearman(values[ordinary], occlusion[ordinary])
