"""How often signals were right on labelled data, and which of them are therefore shown. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from attention_atlas.model.trace.trust.signals import SIGNALS, Reading

PROVOKED = "provoked"  # the set of the model's own translations
MARGIN = 0.03  # of AUROC, over the best baseline without a model: less is not shown


def auroc(values: np.ndarray, labels: np.ndarray) -> float:
    """The probability that a positive has the larger value, ties counted half (the Mann–Whitney statistic); NaN without
    both kinds. values float [n], labels bool [n]."""
    positives = int(labels.sum())
    if not 0 < positives < len(labels):
        return float("nan")
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return float(
        (ranks[inverse][labels].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives))
    )


@dataclass(frozen=True)
class Found:
    """How well a signal finds what it is to find on one set. baseline: the best of those without a model; gain, low,
    high: its AUROC less the baseline's, with a 95 % bootstrap interval over the rows; alarms, right: at the threshold
    that is used, how many rows it spoke up on, and how many of them it was right about."""

    signal: str
    on: str
    of: str
    rows: int
    positives: int
    auroc: float
    baseline: str
    baseline_auroc: float
    gain: float
    low: float
    high: float
    alarms: int = 0
    right: int = 0

    @property
    def passed(self) -> bool:
        return self.gain >= MARGIN and self.low > 0


@dataclass(frozen=True)
class Trust:
    """Of a model's direction. thresholds: signal -> the value above which it speaks; found: signals on sets;
    false_alarms: the share of `sentences` good everyday translations on which any shown signal spoke; bins: of the
    reliability diagram, by domain, each [tokens, mean probability, share right]; errors: domain -> expected calibration
    error; phenomena: of contrastive pairs, each {pairs, sum, mean, heads}."""

    thresholds: Mapping[str, float] = field(default_factory=dict)
    found: tuple[Found, ...] = ()
    false_alarms: float = 0.0
    sentences: int = 0
    bins: Mapping[str, list] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    phenomena: Mapping[str, dict] = field(default_factory=dict)

    def best(self, signal: str) -> Found | None:
        """Where a signal passed by most, on the model's own translations if it did there: it is those that it is shown
        of. None where it did nowhere, and is not shown."""
        passed = [one for one in self.found if one.signal == signal and one.passed]
        return max(passed, key=lambda one: (one.on == PROVOKED, one.gain), default=None)

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(name for name in SIGNALS if name in self.thresholds and self.best(name))

    def alarms(self, reading: Reading) -> list[str]:
        """The shown signals that speak up about a translation, those that were right most often first."""
        loud = [name for name in self.shown if SIGNALS[name].measure(reading) > self.thresholds[name]]
        return sorted(loud, key=lambda name: -self.best(name).auroc)

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping) -> Trust:
        return cls(**{**values, "found": tuple(Found(**one) for one in values["found"])})
