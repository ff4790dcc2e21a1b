"""Word links that follow the order of words, from scores between words.

Attention scores each target word by itself. Dynamic time warping, or an alignment model with jump probabilities (Vogel
et al. 1996), scores the whole sentence: where a row is undecided between two words, the neighbouring rows decide.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.trace.alignment import Links
from attention_atlas.model.trace.maps import normalize_rows

POWER = 3.0  # attention is flatter than link probabilities: scores are raised to this power
MAX_JUMP = 60  # in words; longer jumps count as this one
ROUNDS = 3  # of estimating the jump probabilities
MIN_PROBABILITY = 0.5  # of a link
FLOOR = 1e-6  # keeps a word that no head reads possible


def link_by_path(scores: np.ndarray) -> Links:
    """Return the monotone path with the largest sum of scores [target word, source word], from the first words to the
    last ones (dynamic time warping; Sakoe and Chiba 1978)."""
    rows, columns = scores.shape
    total = np.full((rows + 1, columns + 1), -np.inf)
    total[0, 0] = 0.0
    for row in range(rows):
        for column in range(columns):
            before = max(total[row, column], total[row, column + 1], total[row + 1, column])
            total[row + 1, column + 1] = before + scores[row, column]
    row, column, links = rows, columns, []
    while row and column:
        links.append((column - 1, row - 1))
        steps = ((row - 1, column - 1), (row - 1, column), (row, column - 1))
        row, column = max(steps, key=lambda step: total[step])
    return frozenset(links)


def link_by_jumps(scores: Sequence[np.ndarray]) -> list[Links]:
    """Return the links of several sentences whose probability exceeds one half.

    scores: [target word, source word] of each sentence. The probability is the geometric mean of two hidden Markov
    models, one over the rows and one over the columns (Vogel et al. 1996; agreement: Liang et al. 2006). The jump
    probabilities are estimated from the sentences themselves.
    """
    both = [normalize_rows(s) * normalize_rows(s.T).T for s in scores]
    by_rows, by_columns = _posteriors(both), _posteriors([s.T for s in both])
    probabilities = (np.sqrt(rows * columns.T) for rows, columns in zip(by_rows, by_columns))
    return [
        frozenset((int(source), int(target)) for target, source in np.argwhere(p > MIN_PROBABILITY))
        for p in probabilities
    ]


def _posteriors(scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Estimate the jump probabilities by expectation-maximisation; return each row's posterior over columns."""
    emissions = [normalize_rows(s) ** POWER + FLOOR for s in scores]
    jumps = np.exp(-np.abs(np.arange(-MAX_JUMP, MAX_JUMP + 1) - 1) / 2.0)
    for _ in range(ROUNDS):
        counts = np.full(jumps.shape, 0.5)
        posteriors = [_forward_backward(emission, jumps, counts) for emission in emissions]
        jumps = counts / counts.sum()
    return posteriors


def _forward_backward(emissions: np.ndarray, jumps: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the posterior of each row over the columns [row, column], and add the expected jumps to counts."""
    rows, columns = emissions.shape
    positions = np.arange(columns)
    jump = np.clip(positions[None, :] - positions[:, None], -MAX_JUMP, MAX_JUMP) + MAX_JUMP
    transitions = normalize_rows(jumps[jump])
    before, after = np.empty_like(emissions), np.ones_like(emissions)
    before[0] = emissions[0] / emissions[0].sum()
    for row in range(1, rows):
        before[row] = (before[row - 1] @ transitions) * emissions[row]
        before[row] /= before[row].sum()
    for row in range(rows - 2, -1, -1):
        ahead = emissions[row + 1] * after[row + 1]
        joint = transitions * before[row][:, None] * ahead
        counts += np.bincount(jump.ravel(), (joint / joint.sum()).ravel(), len(counts))
        after[row] = transitions @ ahead
        after[row] /= after[row].sum()
    return normalize_rows(before * after)
