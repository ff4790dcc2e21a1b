"""Why sqrt(d_k): closed forms, torch's own derivative and scipy's softmax."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

from attention_atlas.model.analysis.formulas import scale


def test_the_size_of_the_gradient_is_that_of_torchs_jacobian() -> None:
    scores = np.random.default_rng(1).normal(0, 3, (5, 7))
    scores[2, 4:] = -np.inf
    found = scale.sharpness(scores)
    norms = []
    for row in scores:
        row = torch.tensor(row[np.isfinite(row)])
        norms.append(float(torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row).norm()))
    assert found.gradient == pytest.approx(np.mean(norms), abs=1e-9)
    assert found.largest == pytest.approx(softmax(scores, axis=-1).max(-1).mean(), abs=1e-12)


def test_two_equal_keys_have_the_steepest_softmax() -> None:
    assert scale.sharpness(np.zeros((1, 2))).gradient == pytest.approx(0.5)
    assert scale.sharpness(np.array([[900.0, 0.0]])).gradient == 0.0


def test_random_scores_are_sums_over_the_first_components() -> None:
    found = scale.random_scores((1, 3, 8), keys=4, draws=5, seed=3)
    random = np.random.default_rng(3)
    queries = random.standard_normal((5, 1, 8), dtype=np.float32)
    keys = random.standard_normal((5, 4, 8), dtype=np.float32)
    for row, width in zip(found, (1, 3, 8)):
        expected = np.einsum(
            "dkw,dkw->dk", np.broadcast_to(queries, keys.shape)[..., :width].astype(float), keys[..., :width]
        )
        np.testing.assert_allclose(row, expected, atol=1e-5)


def test_the_variance_grows_with_the_width_and_the_division_takes_it_back() -> None:
    found = scale.growth((1, 16, 64, 256), draws=400)
    np.testing.assert_allclose(found.variance / found.widths, 1, atol=0.15)  # of 6400 draws, by their own spread
    np.testing.assert_allclose(found.variance_with, 1, atol=0.15)
    np.testing.assert_allclose(found.variance, found.variance_with * found.widths)
    assert (np.diff(found.largest) > 0).all() and (np.diff(found.gradient[1:]) < 0).all()
    assert found.largest[-1] > 0.9 and found.largest_with[-1] < 0.4
    assert found.gradient_with[-1] > 2 * found.gradient[-1]
    assert found.largest[0] == found.largest_with[0]  # sqrt(1)
