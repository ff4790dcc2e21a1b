"""Kernel regression and attention without weights, written out by hand and by torch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.formulas import kernels, plain
from attention_atlas.model.analysis.positions.schemes import SCHEMES

BY_HAND = {
    "gaussian": lambda u: math.exp(-u * u / 2),
    "boxcar": lambda u: float(abs(u) <= 1),
    "triangular": lambda u: max(0.0, 1 - abs(u)),
}


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("bandwidth", [0.3, 1.5])
def test_nadaraya_and_watsons_mean(name, bandwidth) -> None:
    found = kernels.regression(kernels.KERNELS[name], bandwidth, points=12, queries=9)
    for row, query in enumerate(found.queries):
        values = np.array([BY_HAND[name]((query - key) / bandwidth) for key in found.keys])
        if values.sum() == 0:
            assert np.isnan(found.fitted[row]) and not found.weights[row].any()
            continue
        np.testing.assert_allclose(found.weights[row], values / values.sum(), atol=1e-12)
        assert found.fitted[row] == pytest.approx((values * found.values).sum() / values.sum())
    answered = ~np.isnan(found.fitted)
    expected = np.sqrt(((found.fitted - found.true)[answered] ** 2).mean())
    assert found.error == pytest.approx(expected) and answered.any()


def test_attention_in_the_kernels_place_is_torchs() -> None:
    found = kernels.regression(kernels.KERNELS["attention"], 0.5, points=10, queries=8)
    q, k = (torch.tensor(kernels.vectors(x, 0.5)) for x in (found.queries, found.keys))
    values = torch.tensor(found.values)[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], values[None])[0, :, 0]
    np.testing.assert_allclose(found.fitted, expected.numpy(), atol=1e-10)
    # Its vectors are the paper's codes, and what it says depends on the distance alone.
    np.testing.assert_allclose(kernels.vectors(np.arange(5), 1.0), SCHEMES[-1].table(5, kernels.WIDTH), atol=1e-6)
    moved = kernels.KERNELS["attention"].scores(found.queries + 7, found.keys + 7, 0.5)
    np.testing.assert_allclose(moved, kernels.KERNELS["attention"].scores(found.queries, found.keys, 0.5), atol=1e-9)


def test_a_wider_kernel_is_a_flatter_curve() -> None:
    spread = [
        np.ptp(kernels.regression(kernels.KERNELS[name], width).fitted)
        for name in ("gaussian", "attention")
        for width in (0.3, 3.0)
    ]
    assert spread[0] > 2 * spread[1] and spread[2] > 2 * spread[3]


@pytest.mark.parametrize("scaled", [False, True])
def test_attention_without_weights_is_torchs_with_identities(scaled) -> None:
    x = np.random.default_rng(0).normal(size=(6, 8))
    found, given = plain.attend(x, scaled=scaled), torch.tensor(x)[None]
    expected = torch.nn.functional.scaled_dot_product_attention(given, given, given, scale=None if scaled else 1.0)
    np.testing.assert_allclose(found.output, expected[0].numpy(), atol=1e-12)
    np.testing.assert_allclose(found.weights.sum(-1), 1)
    assert found.own == pytest.approx(np.mean([found.weights[i, i] for i in range(6)]))
    assert plain.asymmetry(found.scores) < 1e-12
    assert plain.asymmetry(np.array([[0.0, 3.0], [1.0, 0.0]])) == pytest.approx(2 / np.std([0, 3, 1, 0]))
    assert plain.asymmetry(np.zeros((2, 2))) == 0.0
