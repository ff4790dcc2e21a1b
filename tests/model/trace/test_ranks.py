"""Rank correlation against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from attention_atlas.model.trace.why.ranks import average_ranks, spearman


@pytest.mark.parametrize("seed", range(5))
def test_ties_and_all(seed):
    random = np.random.default_rng(seed)
    a, b = random.integers(0, 6, 20).astype(float), random.normal(size=20)
    np.testing.assert_allclose(average_ranks(a), stats.rankdata(a))
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)


def test_blanks_count_for_nothing():
    a, b = np.array([1.0, np.nan, 2.0, 3.0, 4.0]), np.array([2.0, 9.0, 1.0, 4.0, 3.0])
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a[[0, 2, 3, 4]], b[[0, 2, 3, 4]]).statistic)


def test_nothing_to_rank():
    assert spearman(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    assert spearman(np.ones(5), np.arange(5.0)) is None
