"""Links that keep to the order of words: where a row hesitates between two, the one nearer to the last row's wins.

Attention reads each target word by itself. A path through all of them (dynamic time warping), or the probability of
each link given the others and how far one usually jumps (the alignment model of Vogel et al. 1996), sees the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_atlas.model.trace.alignment.links import Links

SHARPER = 3.0  # attention spreads over more words than it means: its scores to this power are taken for probabilities
FARTHEST = 60  # words that a jump is told apart by
ROUNDS = 3  # of learning how far one jumps
SURE = 0.5  # a link is more probable than not, by both sides
FLOOR = 1e-6  # of a word that no head reads


def warped(scores: np.ndarray) -> Links:
    """The path of the largest sum of scores [target word, source word] from the first words to the last ones that never
    goes back on either side (dynamic time warping; Sakoe and Chiba 1978)."""
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


def probable(scores: Sequence[np.ndarray]) -> list[Links]:
    """Links of sentences together, from scores [target word, source word]: those whose probability, by the rows in
    order and by the columns in order, is above one half in the geometric mean (Vogel et al. 1996; both sides agreeing:
    Liang et al. 2006). How far one jumps from word to word is learnt from the sentences themselves."""
    shared = [_rows(one) * _rows(one.T).T for one in scores]
    across, down = _posteriors(shared), _posteriors([one.T for one in shared])
    found = (np.sqrt(rows * columns.T) for rows, columns in zip(across, down))
    return [frozenset((int(source), int(target)) for target, source in np.argwhere(one > SURE)) for one in found]


def _posteriors(scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    emitted = [_rows(one) ** SHARPER + FLOOR for one in scores]
    reach = np.arange(-FARTHEST, FARTHEST + 1)
    jumps = np.exp(-np.abs(reach - 1) / 2.0)
    for _ in range(ROUNDS):
        counts, found = np.full(jumps.shape, 0.5), []
        for one in emitted:
            found.append(_forward_backward(one, jumps, counts))
        jumps = counts / counts.sum()
    return found


def _forward_backward(emitted: np.ndarray, jumps: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Each row's probabilities over the columns [row, column], given all rows; counts gains the expected jumps."""
    rows, columns = emitted.shape
    places = np.arange(columns)
    far = np.clip(places[None, :] - places[:, None], -FARTHEST, FARTHEST) + FARTHEST
    moves = _rows(jumps[far])
    before, after = np.empty_like(emitted), np.ones_like(emitted)
    before[0] = emitted[0] / emitted[0].sum()
    for row in range(1, rows):
        before[row] = (before[row - 1] @ moves) * emitted[row]
        before[row] /= before[row].sum()
    for row in range(rows - 2, -1, -1):
        ahead = emitted[row + 1] * after[row + 1]
        both = moves * before[row][:, None] * ahead
        counts += np.bincount(far.ravel(), (both / both.sum()).ravel(), len(counts))
        after[row] = moves @ ahead
        after[row] /= after[row].sum()
    return _rows(before * after)


def _rows(values: np.ndarray) -> np.ndarray:
    return values / np.maximum(values.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
