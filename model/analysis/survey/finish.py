"""From sums to a survey: means, intervals, tests against random rows, examples."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from attention_atlas.model.analysis.survey.window import Sums
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.statistics import STATISTICS, statistics_of
from attention_atlas.model.trace.survey.survey import Estimate, KindSurvey, adjust_p_values

LEVEL = 0.95
LEAST = 5  # sentences: of fewer a bootstrap says nothing


def kinds(
    sums: Sums, num_layers: Mapping[AttentionKind, int], num_heads: Mapping[AttentionKind, int]
) -> dict[AttentionKind, KindSurvey]:
    """What was found of every kind."""
    found = {
        (kind, name): _estimate(sums, f"{kind.value}/{name}", (layers, num_heads[kind]))
        for kind, layers in num_layers.items()
        for name in statistics_of(kind)
        if f"{kind.value}/{name}" in sums.totals.values
    }
    tested = [key for key in found if STATISTICS[key[1]].threshold is not None]
    p = [found[key][1].reshape(-1) for key in tested]
    shares = adjust_p_values(np.concatenate(p)) if p else np.zeros(0)
    parts = dict(zip(tested, np.split(shares, np.cumsum([len(part) for part in p])[:-1]) if p else []))
    estimates = {
        key: Estimate(**values, adjusted=parts.get(key, np.ones(p.size)).reshape(p.shape))
        for key, (values, p) in found.items()
    }
    return {
        kind: KindSurvey(
            {name: estimates[kind, name] for name in statistics_of(kind) if (kind, name) in estimates},
            _examples(sums, kind, estimates),
            _similarity(sums, kind, layers * num_heads[kind]),
        )
        for kind, layers in num_layers.items()
    }


def _estimate(sums: Sums, name: str, shape: tuple[int, int]) -> tuple[dict, np.ndarray]:
    """The fields of an Estimate but one, and p-values [layers, heads] of a value no larger than chance's: one-sided,
    the mean's distance from chance in standard errors of the bootstrap taken as normal."""
    values, (chance, counts) = sums.totals.values[name], sums.totals.facts[name]
    with np.errstate(invalid="ignore"):
        means, expected = values / counts[:, None], chance / counts
    low, high = np.nanquantile(means[1:], ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    error = np.nanstd(means[1:] - expected[1:, None], axis=0)
    above = means[0] - expected[0]
    if counts[0] < LEAST:
        p = np.ones_like(above)
    else:
        z = np.divide(above, error, out=np.where(above > 0, np.inf, -np.inf), where=error > 1e-9)
        p = np.array([0.5 * math.erfc(value / math.sqrt(2)) for value in z])
    return {
        "value": means[0].reshape(shape),
        "low": low.reshape(shape),
        "high": high.reshape(shape),
        "chance": float(expected[0]),
        "sentences": int(counts[0]),
    }, p.reshape(shape)


def _examples(sums: Sums, kind: AttentionKind, estimates: Mapping) -> dict[str, dict[str, np.ndarray]]:
    found = {}
    for name in statistics_of(kind):
        key = f"{kind.value}/{name}"
        if (kind, name) in estimates and STATISTICS[name].threshold is not None and key in sums.reservoir.extremes:
            value = estimates[kind, name].value
            lines = sums.reservoir.examples(key, value.reshape(-1))
            found[name] = {which: rows.reshape(*value.shape, -1) for which, rows in lines.items()}
    return found


def _similarity(sums: Sums, kind: AttentionKind, heads: int) -> np.ndarray:
    if kind.value not in sums.similarities.values:
        return np.eye(heads)
    return (sums.similarities.values[kind.value][0] / sums.similarities.facts[kind.value][1, 0]).reshape(heads, heads)
