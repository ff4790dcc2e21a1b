"""The parts of a sentence's BLEU score: sacreBLEU's numbers, a textbook variant, and the n-grams that match."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from attention_atlas.model.trace.language import Refusal

LARGEST = 4  # n of n-grams (Papineni et al. 2002)


@dataclass(frozen=True)
class NgramPrecision:
    """The n-grams of one order: `matched` of the translation's `total` occur in the reference.

    An n-gram matches at most as often as it occurs in the reference.

    percent  sacreBLEU's precision, smoothed if nothing matched
    weight   1 / 2^n, the textbook's exponent
    """

    order: int
    matched: int
    total: int
    percent: float
    weight: float


@dataclass(frozen=True)
class SentenceBleu:
    """score and textbook are from 0 to 100, brevity_penalty from 0 to 1; both sentences are as from mark_tokens()."""

    score: float
    precisions: tuple[NgramPrecision, ...]
    brevity_penalty: float
    translation_length: int
    reference_length: int
    signature: str
    textbook: float
    translation: list[tuple[str, int]]
    reference: list[tuple[str, int]]


def lay_out(translation: str, reference: str, *, largest: int = LARGEST) -> SentenceBleu:
    """Return sacreBLEU's sentence score over n-grams up to `largest`, 1 to 4, with its parts.

    The score is that of Post 2018: 13a tokens, cased, exponential smoothing, effective order. The textbook variant
    (Zhang et al., Dive into Deep Learning, section 10.7) is exp(min(0, 1 - reference length / translation length)) *
    product of p_n^(1/2^n), unsmoothed, over the orders of which the translation has n-grams. Raises Refusal if the
    reference is empty.
    """
    if not reference.strip():
        raise Refusal("The reference is empty: type a translation to compare with.")
    from sacrebleu.metrics import BLEU  # a large import for one panel

    metric = BLEU(effective_order=True, max_ngram_order=largest)
    score = metric.sentence_score(translation, [reference])
    precisions = tuple(
        NgramPrecision(n, int(matched), int(total), float(percent), 0.5**n)
        for n, matched, total, percent in zip(range(1, largest + 1), score.counts, score.totals, score.precisions)
    )
    tokens, reference_tokens = (tuple(metric.tokenizer(text.rstrip()).split()) for text in (translation, reference))
    return SentenceBleu(
        score=float(score.score),
        precisions=precisions,
        brevity_penalty=float(score.bp),
        translation_length=int(score.sys_len),
        reference_length=int(score.ref_len),
        signature=str(metric.get_signature()),
        textbook=100.0
        * math.prod(
            ((p.matched / p.total) ** p.weight for p in precisions if p.total),
            start=brevity_penalty(score.sys_len, score.ref_len),
        ),
        translation=mark_tokens(tokens, reference_tokens, largest=largest),
        reference=mark_tokens(reference_tokens, tokens, largest=largest),
    )


def mark_tokens(tokens: tuple[str, ...], others: tuple[str, ...], *, largest: int) -> list[tuple[str, int]]:
    """Return each token with the largest n of an n-gram around it that another sentence has, too, or 0.

    An n-gram that is more frequent here than there matches only at its first occurrences, as many as there are there.
    """
    orders = [0] * len(tokens)
    for n in range(1, largest + 1):
        left = Counter(_ngrams(others, n))
        for start, ngram in enumerate(_ngrams(tokens, n)):
            if left[ngram] > 0:
                left[ngram] -= 1
                orders[start : start + n] = [n] * n
    return list(zip(tokens, orders))


def brevity_penalty(length: int, reference_length: int) -> float:
    """Return exp(1 - r / c) for a length c below the reference's r, else 1, and 0 for c = 0 (Papineni et al. 2002,
    section 2.2.2)."""
    if length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / length) if length else 0.0


def _ngrams(tokens: tuple[str, ...], n: int) -> list[tuple[str, ...]]:
    return [tokens[i : i + n] for i in range(len(tokens) - n + 1)]
