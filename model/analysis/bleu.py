"""BLEU of one sentence, laid out: sacreBLEU's own numbers, a textbook's variant from the same counts, and which n-grams
were found where."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from attention_atlas.model.trace.language import Refusal

LARGEST = 4  # of n, as everywhere (Papineni et al. 2002)


@dataclass(frozen=True)
class NgramPrecision:
    """Of `total` n-grams of the translation, `matched` stand in the reference (each at most as often as there).

    percent: what sacreBLEU used, smoothed where nothing matched. weight: 1 / 2^n, the textbook's exponent.
    """

    order: int
    matched: int
    total: int
    percent: float
    weight: float


@dataclass(frozen=True)
class Marked:
    """A sentence's tokens, as sacreBLEU sees them, and for each the largest n of a matched n-gram that it stands in;
    0: none."""

    tokens: tuple[str, ...]
    largest: tuple[int, ...]


@dataclass(frozen=True)
class SentenceBleu:
    """score and textbook are from 0 to 100; brevity_penalty from 0 to 1."""

    score: float
    precisions: tuple[NgramPrecision, ...]
    brevity_penalty: float
    translation_length: int
    reference_length: int
    signature: str
    textbook: float
    translation: Marked
    reference: Marked


def lay_out(translation: str, reference: str, *, largest: int = LARGEST) -> SentenceBleu:
    """sacreBLEU's sentence score (Post 2018; 13a tokens, cased, exponential smoothing, effective order) over n-grams up
    to `largest`, 1 to 4.

    The textbook variant (Zhang et al., Dive into Deep Learning, section 10.7) is
    exp(min(0, 1 - reference length / translation length)) * product of p_n^(1/2^n), unsmoothed, over the orders the
    translation is long enough for. ValueError if the reference is empty.
    """
    if not reference.strip():
        raise Refusal("The reference is empty: type a translation to compare with.")
    from sacrebleu.metrics import BLEU  # as large as all the rest, for one panel

    metric = BLEU(effective_order=True, max_ngram_order=largest)
    result = metric.sentence_score(translation, [reference])
    precisions = tuple(
        NgramPrecision(n, int(matched), int(total), float(percent), 0.5**n)
        for n, matched, total, percent in zip(range(1, largest + 1), result.counts, result.totals, result.precisions)
    )
    mine, theirs = (tuple(metric.tokenizer(text.rstrip()).split()) for text in (translation, reference))
    return SentenceBleu(
        score=float(result.score),
        precisions=precisions,
        brevity_penalty=float(result.bp),
        translation_length=int(result.sys_len),
        reference_length=int(result.ref_len),
        signature=str(metric.get_signature()),
        textbook=_textbook(precisions, result.sys_len, result.ref_len),
        translation=marked(mine, theirs, largest=largest),
        reference=marked(theirs, mine, largest=largest),
    )


def marked(tokens: tuple[str, ...], others: tuple[str, ...], *, largest: int) -> Marked:
    """Which of the tokens stand in n-grams that the others have, too. Of an n-gram that stands here more often than
    there, only the first as many count as there are there: matched, for both sentences, is the smaller number."""
    found = [0] * len(tokens)
    for n in range(1, largest + 1):
        left = Counter(_ngrams(others, n))
        for start, ngram in enumerate(_ngrams(tokens, n)):
            if left[ngram] > 0:
                left[ngram] -= 1
                found[start : start + n] = [n] * n
    return Marked(tokens, tuple(found))


def brevity_penalty(length: int, reference_length: int) -> float:
    """exp(1 - r / c) below the reference's length r, else 1 (Papineni et al. 2002, section 2.2.2); 0 for nothing."""
    if length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / length) if length else 0.0


def _ngrams(tokens: tuple[str, ...], n: int) -> list[tuple[str, ...]]:
    return [tokens[i : i + n] for i in range(len(tokens) - n + 1)]


def _textbook(precisions: tuple[NgramPrecision, ...], length: int, reference_length: int) -> float:
    if length == 0:
        return 0.0
    score = math.exp(min(0.0, 1.0 - reference_length / length))
    for p in precisions:
        if p.total:
            score *= (p.matched / p.total) ** p.weight
    return 100.0 * score
