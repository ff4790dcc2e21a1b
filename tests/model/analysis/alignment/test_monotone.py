"""Links that keep to the order of words: planted paths, and what the order decides where a row hesitates."""

from __future__ import annotations

from itertools import product

import numpy as np

from attention_atlas.model.analysis.alignment.monotone import probable, warped


def test_a_path_is_the_best_of_all(rng=np.random.default_rng(3)):
    scores = rng.random((4, 3))

    def paths(row: int, column: int):
        if (row, column) == (3, 2):
            yield [(2, 3)]
        for down, right in ((1, 1), (1, 0), (0, 1)):
            if row + down <= 3 and column + right <= 2:
                yield from ([(column, row), *rest] for rest in paths(row + down, column + right))

    best = max(paths(0, 0), key=lambda path: sum(scores[row, column] for column, row in path))
    assert warped(scores) == frozenset(best)


def test_order_decides_where_a_row_hesitates():
    scores = np.full((6, 6), 0.02) + np.eye(6)
    scores[3] = 0.02
    scores[3, [0, 3]] = 0.5  # as much for the first word as for the fourth
    (found,) = probable([scores] + [])
    assert found == {(at, at) for at in range(6)}


def test_words_may_change_places_and_lengths_differ():
    scores = np.full((5, 4), 0.01)
    for target, source in ((0, 0), (1, 3), (2, 1), (3, 2)):
        scores[target, source] = 1.0
    several = probable([scores] * 4)
    assert several == [several[0]] * 4 and {(0, 0), (3, 1), (1, 2), (2, 3)} <= several[0]
    assert probable([np.ones((1, 1)), np.zeros((2, 3))])[0] == {(0, 0)}
    for rows, columns in product((1, 2), (1, 3)):
        assert all(0 <= s < columns and 0 <= t < rows for s, t in probable([np.ones((rows, columns))])[0])
