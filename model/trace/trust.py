"""When to distrust a translation: signals computed from a pass, and how often each was right on labelled data.

A `Signal` is a number, larger where more speaks against the translation, computed from a `Reading`. `Trust` holds a
model's thresholds and how well each signal did (`SignalScore`), and decides which signals the page shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise

import numpy as np

from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.trace.why.faithfulness import average_ranks

HALLUCINATION, OMISSION, REPETITION = "hallucination", "omission", "repetition"
PROVOKED = "provoked"  # the test set of the model's own translations
MARGIN = 0.03  # of AUROC over the best baseline without a model: a signal that gains less is not shown


@dataclass(frozen=True, eq=False)
class Reading:
    """The values of a translation that signals are computed from.

    log_probability  float [target], natural, of each target token
    without_source   the same under an empty source
    share            float [target], how much of each row came from the source, 0 to 1 (ALTI+, Ferrando et al. 2022)
    columns          float [source], what each source token gave to all rows together (ALTI+)
    source, target   the tokens
    """

    log_probability: np.ndarray
    without_source: np.ndarray
    share: np.ndarray
    columns: np.ndarray
    source: Sequence[str]
    target: Sequence[str]


@dataclass(frozen=True)
class Signal:
    """A signal: the fault it detects, its value, and the token positions that it points at.

    place returns positions of the source if in_source, otherwise of the target.
    """

    of: str
    measure: Callable[[Reading], float]
    place: Callable[[Reading], tuple[int, ...]]
    in_source: bool = False


def _by_word(values: np.ndarray, tokens: Sequence[str], total: Callable) -> np.ndarray:
    return np.array([total(values[list(group)]) for group in content_words(tokens)])


def _lowest_word(values: np.ndarray, tokens: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the word with the smallest mean."""
    words = content_words(tokens)
    return tuple(words[int(_by_word(values, tokens, np.mean).argmin())]) if words else ()


def _unread_share(reading: Reading) -> float:
    """Return how much less source words gave than a word gives on average, a mean over the source's words."""
    contributed = _by_word(reading.columns, reading.source, np.sum)
    if not len(contributed):
        return 0.0
    coverage = contributed * len(contributed) / max(1, len(content_words(reading.target)))
    return float(np.maximum(0.0, 1.0 - coverage).mean())


def _repetitions(reading: Reading) -> tuple[int, ...]:
    """Return the target positions that repeat a pair of tokens, beyond as many as the source repeats."""
    return tuple(_repeated_positions(reading.target)[len(_repeated_positions(reading.source)) :])


def _repeated_positions(tokens: Sequence[str]) -> list[int]:
    seen, repeated = set(), set()
    for position, pair in enumerate(pairwise(tokens)):
        if pair in seen and not all(map(is_symbol, pair)):
            repeated |= {position, position + 1}
        seen.add(pair)
    return sorted(repeated)


SIGNALS: Mapping[str, Signal] = {
    "unsure": Signal(
        HALLUCINATION,
        lambda r: -float(r.log_probability.mean()),
        lambda r: _lowest_word(r.log_probability, r.target),
    ),
    "unmoved": Signal(
        HALLUCINATION,
        lambda r: -float((r.log_probability - r.without_source).mean()),
        lambda r: _lowest_word(r.log_probability - r.without_source, r.target),
    ),
    "detached": Signal(
        HALLUCINATION,
        lambda r: 1.0 - float(r.share.mean()),
        lambda r: _lowest_word(r.share, r.target),
    ),
    "unread": Signal(OMISSION, _unread_share, lambda r: _lowest_word(r.columns, r.source), in_source=True),
    "repeated": Signal(REPETITION, lambda r: len(_repetitions(r)) / max(1, len(r.target)), _repetitions),
}


def baselines(source: str, target: str) -> dict[str, float]:
    """Return signals of two texts that need no model.

    "short" is large for a short target and "length" for a target of unusual length; "bigrams" is how often the
    target's most frequent pair of words occurs, less the source's (Guerreiro et al. 2023, for oscillations).
    """
    lengths = [max(1, len(text)) for text in (source, target)]
    ratio = float(np.log(lengths[1] / lengths[0]))
    repeats = _most_frequent_pair(target) - _most_frequent_pair(source)
    return {"short": -ratio, "length": abs(ratio), "bigrams": float(repeats)}


def _most_frequent_pair(text: str) -> int:
    return max(Counter(pairwise(text.lower().split())).values(), default=0)


def auroc(values: np.ndarray, labels: np.ndarray) -> float:
    """Return the probability that a positive has the larger value, ties counted half (the Mann-Whitney statistic).

    values: float [n]; labels: bool [n]. NaN if there are no positives or no negatives.
    """
    positives = int(labels.sum())
    if not 0 < positives < len(labels):
        return float("nan")
    excess = average_ranks(values)[labels].sum() - positives * (positives + 1) / 2
    return float(excess / (positives * (len(labels) - positives)))


@dataclass(frozen=True)
class SignalScore:
    """How well a signal detects one fault on one labelled set. The fields are those of truth.json.

    on, of           the set, and the fault
    rows, positives  number of translations, and of those with the fault
    baseline         the best signal without a model, and its AUROC
    gain, low, high  AUROC less the baseline's, and its 95 % bootstrap interval over rows
    alarms, right    at the threshold in use: on how many rows the signal raised an alarm, how many of them were right
    """

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
        """Whether the signal beats its baseline by MARGIN, significantly."""
        return self.gain >= MARGIN and self.low > 0


@dataclass(frozen=True)
class Trust:
    """The measured quality of a model's signals and probabilities in one direction.

    thresholds    signal -> the value above which it raises an alarm
    scores        of signals on labelled sets
    false_alarms  the share of `sentences` good everyday translations on which any shown signal raised an alarm
    bins          domain -> reliability diagram, each bin [tokens, mean probability, share right]
    errors        domain -> expected calibration error
    phenomena     phenomenon of contrastive pairs -> {pairs, sum, mean, heads}
    """

    thresholds: Mapping[str, float] = field(default_factory=dict)
    scores: tuple[SignalScore, ...] = ()
    false_alarms: float = 0.0
    sentences: int = 0
    bins: Mapping[str, list] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    phenomena: Mapping[str, dict] = field(default_factory=dict)

    def best_score(self, signal: str) -> SignalScore | None:
        """Return the signal's best passing score, one on the model's own translations first; None if it never passed.

        The model's own translations come first because they are what the page shows.
        """
        passed = [score for score in self.scores if score.signal == signal and score.passed]
        return max(passed, key=lambda score: (score.on == PROVOKED, score.gain), default=None)

    @property
    def shown_signals(self) -> tuple[str, ...]:
        """The signals that passed on some set."""
        return tuple(name for name in SIGNALS if name in self.thresholds and self.best_score(name))

    def alarms(self, reading: Reading) -> list[str]:
        """Return the shown signals that raise an alarm about a translation, the largest AUROC first."""
        raised = [name for name in self.shown_signals if SIGNALS[name].measure(reading) > self.thresholds[name]]
        return sorted(raised, key=lambda name: -self.best_score(name).auroc)

    def to_json(self) -> dict:
        """Return the fields as truth.json has them, where scores are called "found"."""
        values = asdict(self)
        values["found"] = values.pop("scores")
        return values

    @classmethod
    def from_json(cls, values: Mapping) -> Trust:
        """Return what to_json() wrote."""
        values = dict(values)
        return cls(scores=tuple(SignalScore(**score) for score in values.pop("found")), **values)
