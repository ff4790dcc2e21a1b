"""Which sentences show best what a head does: a few of the most, of the least, and a sample to find typical ones in.

Bounded whatever the number of sentences, and the same in any order: the extremes are by value, then by line; the sample
is those lines whose hash is smallest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attention_atlas.model.trace.survey.survey import EXAMPLES

SHOWN = 3
SAMPLED = 48
NONE = -1


class Reservoir:
    """By statistic: the extremes' values and lines [2, heads, SHOWN] (most, least), and the sample's."""

    def __init__(self) -> None:
        self.extremes: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.sample: dict[str, dict[int, np.ndarray]] = {}

    def add(self, name: str, line: int, values: np.ndarray) -> None:
        """values [heads] of one sentence."""
        size = (2, len(values), SHOWN)
        kept, lines = self.extremes.get(name) or (np.full(size, -np.inf), np.full(size, NONE))
        signed = np.stack([values, -values])[..., None]
        self.extremes[name] = _largest(
            np.concatenate([kept, signed], -1), np.concatenate([lines, np.full_like(lines[..., :1], line)], -1)
        )
        self._sample(name, {line: values})

    def _sample(self, name: str, more: Mapping[int, np.ndarray]) -> None:
        together = {**self.sample.get(name, {}), **more}
        chosen = sorted(together, key=lambda line: (_hash(line), line))[:SAMPLED]
        self.sample[name] = {line: together[line] for line in chosen}

    def merge(self, other: Reservoir) -> None:
        """Add what another process found."""
        for name, (values, lines) in other.extremes.items():
            mine = self.extremes.get(name)
            self.extremes[name] = (
                (values, lines)
                if mine is None
                else _largest(*(np.concatenate(pair, -1) for pair in zip(mine, (values, lines))))
            )
            self._sample(name, other.sample[name])

    def examples(self, name: str, means: np.ndarray) -> dict[str, np.ndarray]:
        """Lines [heads, SHOWN] of each kind of example; typical: nearest to the means [heads]. −1: there is none."""
        lines = np.array(sorted(self.sample[name]))
        apart = np.abs(np.stack([self.sample[name][line] for line in lines]) - means).T  # [heads, sample]
        typical = lines[np.argsort(apart, axis=-1, kind="stable")[:, :SHOWN]]
        missing = np.full((len(means), SHOWN - typical.shape[1]), NONE)
        most, least = self.extremes[name][1]
        return dict(zip(EXAMPLES, (most, least, np.hstack([typical, missing]))))

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        found = {}
        for name, (values, lines) in self.extremes.items():
            found |= {
                f"extreme values/{name}": values,
                f"extreme lines/{name}": lines,
                f"sample values/{name}": np.stack(list(self.sample[name].values())),
                f"sample lines/{name}": np.array(list(self.sample[name])),
            }
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """From a file."""
        for key in arrays:
            part, _, name = key.partition("/")
            if part == "extreme values":
                self.extremes[name] = arrays[key], arrays[f"extreme lines/{name}"]
                self.sample[name] = dict(zip(arrays[f"sample lines/{name}"].tolist(), arrays[f"sample values/{name}"]))


def _largest(values: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((lines, -values), axis=-1)[..., :SHOWN]
    return np.take_along_axis(values, order, -1), np.take_along_axis(lines, order, -1)


def _hash(line: int) -> int:
    return (line * 2654435761 + 40503) % 2**32  # Knuth's multiplicative hash
