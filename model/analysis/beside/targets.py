"""Two targets for one source: which is the more probable, and where they part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attention_atlas.model.analysis.sentences import FOLDER
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator


@dataclass(frozen=True)
class Pair:
    """A right and a wrong target of a source, and what the mistake is of."""

    phenomenon: str
    source: str
    right: str
    wrong: str


def pairs(direction: str) -> tuple[Pair, ...]:
    """Ten of our own; none for a direction that has no list."""
    path = FOLDER / f"pairs.{direction}.tsv"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else ()
    return tuple(Pair(*line.split("\t")) for line in lines)


@dataclass(frozen=True, eq=False)
class Contrast:
    """The traces of both targets, and the step at which their tokens part; None for equal ones."""

    first: TranslationTrace
    second: TranslationTrace
    parts: int | None

    def margin(self, *, mean: bool) -> float:
        """By how many nats the first is the more probable, by the sum or by the mean of its tokens."""
        total = np.mean if mean else np.sum
        return float(total(self.first.log_probability) - total(self.second.log_probability))


def contrast(translator: Translator, direction: str, source: str, targets: tuple[str, str]) -> Contrast:
    """ValueError, in words, for a source or targets that cannot be read."""
    first, second = (translator.trace(source, direction, target=target) for target in targets)
    steps = zip(first.target_ids, second.target_ids)
    parts = next((step for step, (a, b) in enumerate(steps) if a != b), None)
    return Contrast(first, second, parts)
