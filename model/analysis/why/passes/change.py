"""Batches of counterfactuals: words of a sentence that are masked or replaced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Change:
    """A batch of counterfactuals, each bool [batch, positions], of the source and of the prefix.

    masked    never read, by no head of no layer; the row's own position is, and so reaches itself
    replaced  its embedding is the mean embedding's, its position kept
    """

    masked_source: np.ndarray
    masked_prefix: np.ndarray
    replaced_source: np.ndarray
    replaced_prefix: np.ndarray

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.masked_source, self.masked_prefix, self.replaced_source, self.replaced_prefix

    @property
    def at_source(self) -> np.ndarray:
        """Which of them change the source, bool [batch]."""
        return (self.masked_source | self.replaced_source).any(-1)

    @property
    def first_rows(self) -> np.ndarray:
        """The first row of the decoder that a change of the prefix reaches, int [batch]; the last where there is none.
        A masked position still reads itself."""
        reached = self.replaced_prefix.copy()
        reached[:, 1:] |= self.masked_prefix[:, :-1]
        reached[:, -1] = True
        return reached.argmax(-1)

    def sources(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows with different changes of the source, one for each of these, int [different], and which of them every
        row has, int [batch]."""
        found = np.concatenate((self.masked_source, self.replaced_source), axis=1)
        _, first, which = np.unique(found, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)

    def __len__(self) -> int:
        return len(self.masked_source)

    def __getitem__(self, rows: np.ndarray | slice) -> Change:
        return Change(*(part[rows] for part in self.parts))


def masked(source: np.ndarray, prefix: np.ndarray) -> Change:
    """These positions, bool [batch, source] and [batch, step + 1], are read by nobody. What the row itself reads (the
    last of the prefix) reaches it through the residual stream whatever is masked: it is replaced by the mean."""
    itself = np.zeros_like(prefix)
    itself[:, -1] = prefix[:, -1]
    return Change(source, prefix & ~itself, np.zeros_like(source), itself)


def replaced(source: np.ndarray, prefix: np.ndarray) -> Change:
    """These positions, bool [batch, source] and [batch, step + 1], hold the mean embedding."""
    return Change(np.zeros_like(source), np.zeros_like(prefix), source, prefix)
