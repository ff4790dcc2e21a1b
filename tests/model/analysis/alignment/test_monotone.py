"""Links that follow the order of words, on planted scores."""

from __future__ import annotations

from itertools import product

import numpy as np

from attention_atlas.model.analysis.alignment.monotone import link_by_jumps, link_by_path


def test_a_path_has_the_largest_sum_of_all_paths():
    scores = np.random.default_rng(3).random((4, 3))

    def paths(row: int, column: int):
        if (row, column) == (3, 2):
            yield [(2, 3)]
        for down, right in ((1, 1), (1, 0), (0, 1)):
            if row + down <= 3 and column + right <= 2:
                yield from ([(column, row), *rest] for rest in paths(row + down, column + right))

    best = max(paths(0, 0), key=lambda path: sum(scores[row, column] for column, row in path))
    assert link_by_path(scores) == frozenset(best)


def test_word_order_decides_between_equal_scores():
    scores = np.full((6, 6), 0.02) + np.eye(6)
    scores[3] = 0.02
    scores[3, [0, 3]] = 0.5  # as much for the first word as for the fourth
    (links,) = link_by_jumps([scores])
    assert links == {(at, at) for at in range(6)}


def test_words_may_be_reordered_and_lengths_may_differ():
    scores = np.full((5, 4), 0.01)
    for target, source in ((0, 0), (1, 3), (2, 1), (3, 2)):
        scores[target, source] = 1.0
    repeated = link_by_jumps([scores] * 4)
    assert repeated == [repeated[0]] * 4 and {(0, 0), (3, 1), (1, 2), (2, 3)} <= repeated[0]
    assert link_by_jumps([np.ones((1, 1)), np.zeros((2, 3))])[0] == {(0, 0)}
    for rows, columns in product((1, 2), (1, 3)):
        assert all(0 <= s < columns and 0 <= t < rows for s, t in link_by_jumps([np.ones((rows, columns))])[0])
