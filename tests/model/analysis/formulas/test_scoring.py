"""Scoring functions against torch and scipy."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
import torch
from scipy.special import softmax

from attention_atlas.model.analysis.formulas import scoring


@pytest.mark.parametrize("scaled", [False, True])
def test_unweighted_attention_equals_torchs_with_identities(scaled) -> None:
    x = np.random.default_rng(0).normal(size=(6, 8))
    (scores, weights, output), inputs = scoring.attend(x, scaled=scaled), torch.tensor(x)[None]
    expected = torch.nn.functional.scaled_dot_product_attention(inputs, inputs, inputs, scale=None if scaled else 1.0)
    np.testing.assert_allclose(output, expected[0].numpy(), atol=1e-12)
    np.testing.assert_allclose(weights.sum(-1), 1)
    assert scoring.self_weight(weights) == pytest.approx(np.mean([weights[i, i] for i in range(6)]))
    assert scoring.asymmetry(scores) < 1e-12
    assert scoring.asymmetry(np.array([[0.0, 3.0], [1.0, 0.0]])) == pytest.approx(2 / np.std([0, 3, 1, 0]))
    assert scoring.asymmetry(np.zeros((2, 2))) == 0.0


def test_the_gradient_is_the_norm_of_torchs_jacobian() -> None:
    scores = np.random.default_rng(1).normal(0, 3, (5, 7))
    scores[2, 4:] = -np.inf
    sharpness = scoring.sharpness(scores)
    norms = []
    for row in scores:
        row = torch.tensor(row[np.isfinite(row)])
        norms.append(float(torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row).norm()))
    assert sharpness.gradient == pytest.approx(np.mean(norms), abs=1e-9)
    assert sharpness.largest == pytest.approx(softmax(scores, axis=-1).max(-1).mean(), abs=1e-12)
    assert scoring.sharpness(np.zeros((1, 2))).gradient == pytest.approx(0.5)
    assert scoring.sharpness(np.array([[900.0, 0.0]])).gradient == 0.0


def test_random_scores_are_sums_over_the_first_components() -> None:
    scores = scoring.random_scores((1, 3, 8), keys=4, draws=5, seed=3)
    random = np.random.default_rng(3)
    queries = random.standard_normal((5, 1, 8), dtype=np.float32)
    keys = random.standard_normal((5, 4, 8), dtype=np.float32)
    for row, width in zip(scores, (1, 3, 8)):
        products = np.broadcast_to(queries, keys.shape)[..., :width].astype(float) * keys[..., :width]
        np.testing.assert_allclose(row, products.sum(-1), atol=1e-5)


def test_variance_grows_with_the_width_and_the_division_undoes_it() -> None:
    widths = (1, 16, 64, 256)
    plain, scaled = scoring.measure_growth(widths, draws=400)
    (variance, largest, gradient), (variance_scaled, largest_scaled, gradient_scaled) = (
        np.array([astuple(sharpness) for sharpness in by_width]).T for by_width in (plain, scaled)
    )
    np.testing.assert_allclose(variance / widths, 1, atol=0.15)  # the spread of 6400 draws
    np.testing.assert_allclose(variance_scaled, 1, atol=0.15)
    np.testing.assert_allclose(variance, variance_scaled * widths)
    assert (np.diff(largest) > 0).all() and (np.diff(gradient[1:]) < 0).all()
    assert largest[-1] > 0.9 and largest_scaled[-1] < 0.4
    assert gradient_scaled[-1] > 2 * gradient[-1]
    assert largest[0] == largest_scaled[0]  # sqrt(1)
