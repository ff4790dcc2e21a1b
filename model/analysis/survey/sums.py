"""Sums of a survey over sentences and bootstrap resamples, example sentences, and the final estimates.

A Poisson bootstrap draws how often each sentence counts in each resample from (seed, sentence number) alone, so that
processes need no communication (Chamandy et al. 2012). Values are rounded to multiples of 2^-24, which makes sums of
doubles below 2^29 exact and independent of the order of addition.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.survey.statistics import STATISTICS, statistics_of
from attention_atlas.model.trace.survey.survey import EXAMPLES, Estimate, KindSurvey, adjust_p_values

RESAMPLES = 400
GRID = 2.0**24
LEVEL = 0.95  # of the intervals
MIN_SENTENCES = 5  # for a test; a bootstrap of fewer says nothing
NUM_EXAMPLES = 3  # of each kind
SAMPLE_SIZE = 48  # sentences from which typical examples are chosen
NONE = -1  # in place of a line


def resample_counts(seed: int, numbers: np.ndarray, count: int = RESAMPLES) -> np.ndarray:
    """Return how often each sentence counts in each resample: float64 [1 + count, sentence]. Row 0 counts every
    sentence once."""
    counts = [np.random.default_rng((seed, int(number))).poisson(1.0, count) for number in numbers]
    return np.vstack([np.ones(len(numbers)), np.array(counts).reshape(len(numbers), count).T]).astype(np.float64)


class Totals:
    """Sums by the name of a statistic.

    values  [1 + resamples, heads]
    facts   [2, 1 + resamples]: the values expected by chance, and the numbers of sentences
    """

    def __init__(self, seed: int, count: int = RESAMPLES) -> None:
        self.seed, self.count = seed, count
        self.values: dict[str, np.ndarray] = {}
        self.facts: dict[str, np.ndarray] = {}

    def add(self, numbers: np.ndarray, measurements: Mapping[str, list[tuple[int, np.ndarray, float]]]) -> None:
        """Add one window of sentences.

        numbers: [sentence]; measurements: by name, (index into numbers, values [heads], value expected by chance).
        """
        weights = resample_counts(self.seed, numbers, self.count)
        for name, rows in measurements.items():
            counts = weights[:, [index for index, _, _ in rows]]
            values = np.rint(np.stack([values for _, values, _ in rows]) * GRID) / GRID
            chance = np.rint(np.array([chance for _, _, chance in rows]) * GRID) / GRID
            self._add(name, counts @ values, np.stack([counts @ chance, counts.sum(1)]))

    def _add(self, name: str, values: np.ndarray, facts: np.ndarray) -> None:
        self.values[name] = self.values.get(name, 0.0) + values
        self.facts[name] = self.facts.get(name, 0.0) + facts

    def merge(self, other: Totals) -> None:
        """Add the sums of another process."""
        for name, values in other.values.items():
            self._add(name, values, other.facts[name])


class Reservoir:
    """Example sentences of each head: those with the largest and smallest values, and a sample for typical ones.

    Its size does not depend on the number of sentences, and its content not on their order: extremes are ordered by
    value, then by line; the sample consists of the lines with the smallest hashes.

    extremes  by statistic, values and lines [2, heads, NUM_EXAMPLES]; largest, smallest
    sample    by statistic, line -> values [heads]
    """

    def __init__(self) -> None:
        self.extremes: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.sample: dict[str, dict[int, np.ndarray]] = {}

    def add(self, name: str, line: int, values: np.ndarray) -> None:
        """Add values [heads] of one sentence."""
        signed = np.stack([values, -values])[..., None]
        self._merge(name, (signed, np.full(signed.shape, line)), {line: values})

    def merge(self, other: Reservoir) -> None:
        """Add the examples of another process."""
        for name, extremes in other.extremes.items():
            self._merge(name, extremes, other.sample[name])

    def _merge(self, name: str, extremes: tuple[np.ndarray, np.ndarray], sample: Mapping[int, np.ndarray]) -> None:
        size = (2, extremes[0].shape[1], NUM_EXAMPLES)
        own = self.extremes.get(name) or (np.full(size, -np.inf), np.full(size, NONE))
        self.extremes[name] = _keep_largest(*(np.concatenate(pair, -1) for pair in zip(own, extremes)))
        sample = {**self.sample.get(name, {}), **sample}
        # Ordered by Knuth's multiplicative hash of the line.
        lines = sorted(sample, key=lambda line: ((line * 2654435761 + 40503) % 2**32, line))[:SAMPLE_SIZE]
        self.sample[name] = {line: sample[line] for line in lines}

    def examples(self, name: str, means: np.ndarray) -> dict[str, np.ndarray]:
        """Return lines [heads, NUM_EXAMPLES] for each kind of example; typical ones are nearest to means [heads]. -1
        marks a missing example."""
        lines = np.array(sorted(self.sample[name]))
        distance = np.abs(np.stack([self.sample[name][line] for line in lines]) - means).T  # [heads, sample]
        typical = lines[np.argsort(distance, axis=-1, kind="stable")[:, :NUM_EXAMPLES]]
        missing = np.full((len(means), NUM_EXAMPLES - typical.shape[1]), NONE)
        most, least = self.extremes[name][1]
        return dict(zip(EXAMPLES, (most, least, np.hstack([typical, missing]))))


def _keep_largest(values: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((lines, -values), axis=-1)[..., :NUM_EXAMPLES]
    return np.take_along_axis(values, order, -1), np.take_along_axis(lines, order, -1)


class Sums:
    """All sums of a survey: of statistics, of the similarity of each two heads, and the examples."""

    def __init__(self, seed: int) -> None:
        self.totals, self.similarities, self.reservoir = Totals(seed), Totals(seed, 0), Reservoir()

    def merge(self, other: Sums) -> None:
        """Add the sums of another process."""
        self.totals.merge(other.totals)
        self.similarities.merge(other.similarities)
        self.reservoir.merge(other.reservoir)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the state as named arrays."""
        extremes, sample = self.reservoir.extremes, self.reservoir.sample
        tables = {
            "totals": self.totals.values,
            "facts of totals": self.totals.facts,
            "similarities": self.similarities.values,
            "facts of similarities": self.similarities.facts,
            "extreme values": {name: values for name, (values, _) in extremes.items()},
            "extreme lines": {name: lines for name, (_, lines) in extremes.items()},
            "sample values": {name: np.stack(list(by_line.values())) for name, by_line in sample.items()},
            "sample lines": {name: np.array(list(by_line)) for name, by_line in sample.items()},
        }
        return {f"{table}:{name}": array for table, arrays in tables.items() for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Sums:
        """Take over the state from arrays(); return self."""
        tables = defaultdict(dict)
        for key, array in arrays.items():
            table, _, name = key.partition(":")
            tables[table][name] = array
        self.totals.values, self.totals.facts = tables["totals"], tables["facts of totals"]
        self.similarities.values, self.similarities.facts = tables["similarities"], tables["facts of similarities"]
        for name, values in tables["extreme values"].items():
            self.reservoir.extremes[name] = values, tables["extreme lines"][name]
            lines = tables["sample lines"][name].tolist()
            self.reservoir.sample[name] = dict(zip(lines, tables["sample values"][name]))
        return self


def estimate_kinds(
    sums: Sums, num_layers: Mapping[AttentionKind, int], num_heads: Mapping[AttentionKind, int]
) -> dict[AttentionKind, KindSurvey]:
    """Turn sums into means with intervals, tests against chance, examples and similarities of heads, by kind."""
    results = {
        (kind, name): _estimate(sums, f"{kind.value}/{name}", (layers, num_heads[kind]))
        for kind, layers in num_layers.items()
        for name in statistics_of(kind)
        if f"{kind.value}/{name}" in sums.totals.values
    }
    tested = [key for key in results if STATISTICS[key[1]].threshold is not None]
    p_values = [results[key][1].reshape(-1) for key in tested]
    adjusted = adjust_p_values(np.concatenate(p_values)) if tested else np.zeros(0)
    splits = np.cumsum([len(p) for p in p_values])[:-1]
    by_key = dict(zip(tested, np.split(adjusted, splits) if tested else []))
    estimates = {
        key: Estimate(**values, adjusted=by_key.get(key, np.ones(p.size)).reshape(p.shape))
        for key, (values, p) in results.items()
    }
    surveys = {}
    for kind, layers in num_layers.items():
        of_kind = {name: estimates[kind, name] for name in statistics_of(kind) if (kind, name) in estimates}
        examples = {}
        for name, estimate in of_kind.items():
            key, value = f"{kind.value}/{name}", estimate.value
            if STATISTICS[name].threshold is not None and key in sums.reservoir.extremes:
                lines = sums.reservoir.examples(key, value.reshape(-1))
                examples[name] = {example: rows.reshape(*value.shape, -1) for example, rows in lines.items()}
        heads = layers * num_heads[kind]
        similarity = np.eye(heads)
        if kind.value in sums.similarities.values:
            count = sums.similarities.facts[kind.value][1, 0]
            similarity = (sums.similarities.values[kind.value][0] / count).reshape(heads, heads)
        surveys[kind] = KindSurvey(of_kind, examples, similarity)
    return surveys


def _estimate(sums: Sums, name: str, shape: tuple[int, int]) -> tuple[dict, np.ndarray]:
    """Return the fields of an Estimate except `adjusted`, and p-values [layers, heads] of a value above chance.

    One-sided: the mean's distance from chance in standard errors of the bootstrap, taken as normally distributed.
    """
    values, (chance, counts) = sums.totals.values[name], sums.totals.facts[name]
    with np.errstate(invalid="ignore"):
        means, expected = values / counts[:, None], chance / counts
    low, high = np.nanquantile(means[1:], ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    error = np.nanstd(means[1:] - expected[1:, None], axis=0)
    excess = means[0] - expected[0]
    if counts[0] < MIN_SENTENCES:
        p = np.ones_like(excess)
    else:
        z = np.divide(excess, error, out=np.where(excess > 0, np.inf, -np.inf), where=error > 1e-9)
        p = np.array([0.5 * math.erfc(value / math.sqrt(2)) for value in z])
    return {
        "value": means[0].reshape(shape),
        "low": low.reshape(shape),
        "high": high.reshape(shape),
        "chance": float(expected[0]),
        "sentences": int(counts[0]),
    }, p.reshape(shape)
