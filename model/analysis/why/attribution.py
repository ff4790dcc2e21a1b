"""Attribute a written token to the words that were read, by several methods.

`attribute` asks about one translation, `attribute_batch` about many; both return `Why`, a row of values per method.

    answer = attribute(translator, trace, step=3, contrast="coffee")
    answer.row("occlusion_by_mask").values, answer.columns.labels
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import length_hint
from typing import TypeVar

import numpy as np

from attention_atlas.model.analysis.why.case import Baseline, Case, open_case
from attention_atlas.model.analysis.why.means import Means, load_stored_means
from attention_atlas.model.analysis.why.method import Method
from attention_atlas.model.analysis.why.methods import METHODS, methods_of, reference_occlusion
from attention_atlas.model.analysis.why.questions import make_question
from attention_atlas.model.decode.runs import batched
from attention_atlas.model.serve.cores import map_on_spare_core
from attention_atlas.model.trace import check_sequence
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.why.attribution import Against, Row, Why, slug_of
from attention_atlas.model.trace.why.faithfulness import spearman
from attention_atlas.model.translator import Translator

Outcome = TypeVar("Outcome")


def attribute(
    translator: Translator,
    trace: TranslationTrace,
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
    methods: Sequence[str] | None = None,
    words: bool = True,
    means: Means | None = None,
    cross_layer: int | None = None,
    baseline: Baseline | None = None,
) -> Why:
    """Ask several methods why one token was written and not another.

    `attribute(translator, trace, step=3, contrast="tea").to_frame()` has a line per word and a column per method.

    step         the row of the decoder; None: that of the least certain content word
    contrast     text, a token's id, Against.RUNNER_UP or Against.NOTHING (see questions.make_question)
    methods      slugs, keys of model.analysis.why.methods.METHODS; None: all that can be computed for this network
    words        whether columns are whole words; otherwise pieces
    means        means that replace words; None: those stored with the checkpoint, without them the vocabulary's mean
                 embedding
    cross_layer  the layer for methods about cross-attention; None: the mean over layers
    baseline     where integrated gradients start: scaled token embeddings, without positions, of the source and of the
                 prefix, each one row [d_model] or a row per position; None: the mean embedding

    Raises ValueError for a question that cannot be asked.
    """
    methods = None if methods is None else check_methods(methods)
    question = make_question(translator, trace, step, contrast)
    means = load_stored_means(translator) if means is None else means
    case = open_case(translator, trace, question, words=words, means=means, cross_layer=cross_layer, baseline=baseline)
    return attribute_case(case, methods)


def attribute_batch(
    translator: Translator,
    texts: Iterable[str | TranslationTrace],
    *,
    step: int | None = None,
    contrast: str | int | Against = Against.RUNNER_UP,
    methods: Sequence[str] | None = None,
    words: bool = True,
    direction: str | None = None,
    batch_size: int = 16,
    progress: bool = False,
) -> Iterator[Why]:
    """Ask about any number of texts or traces; yield an answer for each, in order.

    Texts are translated `batch_size` at a time, and no more are in memory at once. step, contrast, methods, words: as
    in attribute(). progress: show a bar on standard error (tqdm). Raises ValueError, with the text's number, for one
    that cannot be translated or asked about.
    """
    means = load_stored_means(translator)
    ask = partial(attribute, translator, step=step, contrast=contrast, methods=methods, words=words, means=means)
    traces = enumerate(_translate_texts(translator, texts, direction, batch_size))
    answers = (_name_errors(number, ask, trace) for number, trace in traces)
    if not progress:
        return answers
    from tqdm import tqdm  # of the extra "train"

    return iter(tqdm(answers, total=length_hint(texts) or None, unit=" texts"))


def _translate_texts(
    translator: Translator, texts: Iterable[str | TranslationTrace], direction: str | None, batch_size: int
) -> Iterator[TranslationTrace]:
    for part in batched(enumerate(texts), batch_size):
        untranslated = [(number, text) for number, text in part if isinstance(text, str)]
        for number, text in untranslated:
            _name_errors(number, translator.encode, text, direction)
        traces = iter(translator.trace_batch([text for _, text in untranslated], direction))
        yield from (next(traces) if isinstance(text, str) else text for _, text in part)


def _name_errors(number: int, function: Callable[..., Outcome], *arguments: object) -> Outcome:
    """Call a function, and put the number of the text into its ValueErrors."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise ValueError(f"text {number}: {error}") from error


def check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """Return the slugs of methods, also for names of older files. Raises ValueError for an unknown method, or none."""
    if not (methods := tuple(check_sequence("methods", methods))):
        raise ValueError(f"no methods were given: name one or more of {', '.join(METHODS)}")
    for name in methods:
        if slug_of(name) not in METHODS:
            raise ValueError(f"There is no method {name!r}: there are {', '.join(METHODS)}.")
    return tuple(map(slug_of, methods))


def attribute_case(case: Case, methods: Sequence[str] | None = None) -> Why:
    """Return the rows of these methods for a case, and how well each agrees with its reference occlusion."""
    known = methods_of(case.model)
    if unknown := [METHODS[name].title for name in methods or () if name not in known]:
        raise Refusal("This network cannot be asked by this method: {method}.", method=unknown[0])
    rows = compute_rows(case, [known[name] for name in dict.fromkeys(known if methods is None else methods)])
    agreement = {}
    for name, row in rows.items():
        occlusion = rows.get(reference_occlusion(name).slug)
        agreement[name] = None if occlusion is None else measure_agreement(case, row.values, occlusion.values)
    return Why(case.question, case.columns, case.metric(), tuple(rows.values()), agreement)


def compute_rows(case: Case, methods: Sequence[Method]) -> dict[str, Row]:
    """Return the rows of these methods by slug; quick methods run side by side."""
    case.metric()  # the recorded pass, before several threads ask for it
    quick = [method for method in methods if not method.slow]
    rows = dict(zip(quick, map_on_spare_core(lambda method: method(case), quick)))
    return {method.slug: method(case) if method.slow else rows[method] for method in methods}


def measure_agreement(case: Case, values: np.ndarray, occlusion: np.ndarray) -> float | None:
    """Return Spearman's correlation of two rows over the columns that are no symbols."""
    ordinary = ~case.columns.special
    return spearman(values[ordinary], occlusion[ordinary])
