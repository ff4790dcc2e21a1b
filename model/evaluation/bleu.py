"""BLEU of one sentence, laid out: sacreBLEU's own numbers, and a textbook's variant from the same counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sacrebleu.metrics import BLEU

from model.trace.language import Refusal


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
class SentenceBleu:
    """score and textbook are from 0 to 100; brevity_penalty from 0 to 1."""

    score: float
    precisions: tuple[NgramPrecision, ...]
    brevity_penalty: float
    translation_length: int
    reference_length: int
    signature: str
    textbook: float


def lay_out(translation: str, reference: str) -> SentenceBleu:
    """sacreBLEU's sentence score (Post 2018; 13a tokens, cased, exponential smoothing, effective order).

    The textbook variant (Zhang et al., Dive into Deep Learning, section 10.7) is
    exp(min(0, 1 - reference length / translation length)) * product of p_n^(1/2^n), unsmoothed, over the orders the
    translation is long enough for. ValueError if the reference is empty.
    """
    if not reference.strip():
        raise Refusal("The reference is empty: type a translation to compare with.")
    metric = BLEU(effective_order=True)
    result = metric.sentence_score(translation, [reference])
    precisions = tuple(
        NgramPrecision(n, int(matched), int(total), float(percent), 0.5**n)
        for n, matched, total, percent in zip(range(1, 5), result.counts, result.totals, result.precisions))
    return SentenceBleu(
        score=float(result.score), precisions=precisions, brevity_penalty=float(result.bp),
        translation_length=int(result.sys_len), reference_length=int(result.ref_len),
        signature=str(metric.get_signature()), textbook=_textbook(precisions, result.sys_len, result.ref_len))


def _textbook(precisions: tuple[NgramPrecision, ...], length: int, reference_length: int) -> float:
    if length == 0:
        return 0.0
    score = math.exp(min(0.0, 1.0 - reference_length / length))
    for p in precisions:
        if p.total:
            score *= (p.matched / p.total) ** p.weight
    return 100.0 * score
