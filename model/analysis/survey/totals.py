"""Sums over sentences, and over bootstrap resamples of them, that come out the same in any order.

A Poisson bootstrap draws how often each sentence counts in each resample from (seed, sentence number) alone, so that no
process needs to know of another (Chamandy et al. 2012). Values are rounded to multiples of 2^-24 and counts are whole:
sums of doubles below 2^29 are then exact, and so do not depend on who added what first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

RESAMPLES = 400
GRID = 2.0**24


def resamples(seed: int, numbers: np.ndarray, count: int = RESAMPLES) -> np.ndarray:
    """How often each sentence counts: float64 [1 + count, sentence]; row 0 is every sentence once."""
    drawn = [np.random.default_rng((seed, int(number))).poisson(1.0, count) for number in numbers]
    return np.vstack([np.ones(len(numbers)), np.array(drawn).reshape(len(numbers), count).T]).astype(np.float64)


class Totals:
    """Sums by name: of values [1 + resamples, heads], of chance [1 + resamples], of sentences [1 + resamples]."""

    def __init__(self, seed: int, count: int = RESAMPLES) -> None:
        self.seed, self.count = seed, count
        self.values: dict[str, np.ndarray] = {}
        self.facts: dict[str, np.ndarray] = {}  # [2, 1 + resamples]: chance, sentences

    def add(self, numbers: np.ndarray, found: Mapping[str, list[tuple[int, np.ndarray, float]]]) -> None:
        """numbers [sentence], of one window; found: name -> (index into numbers, values [heads], chance)."""
        weights = resamples(self.seed, numbers, self.count)
        for name, rows in found.items():
            drawn = weights[:, [index for index, _, _ in rows]]
            values = np.rint(np.stack([values for _, values, _ in rows]) * GRID) / GRID
            chance = np.rint(np.array([chance for _, _, chance in rows]) * GRID) / GRID
            self._add(name, drawn @ values, np.stack([drawn @ chance, drawn.sum(1)]))

    def _add(self, name: str, values: np.ndarray, facts: np.ndarray) -> None:
        self.values[name] = self.values.get(name, 0.0) + values
        self.facts[name] = self.facts.get(name, 0.0) + facts

    def merge(self, other: Totals) -> None:
        """Add what another process found."""
        for name, values in other.values.items():
            self._add(name, values, other.facts[name])

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        return {
            f"{part}/{name}": array
            for part, arrays in (("values", self.values), ("facts", self.facts))
            for name, array in arrays.items()
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """From a file."""
        for key, array in arrays.items():
            part, _, name = key.partition("/")
            if part in ("values", "facts"):
                getattr(self, part)[name] = array
