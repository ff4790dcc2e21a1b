"""Kernel regression against loops written out by hand, and against torch's attention."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.formulas import kernels
from attention_atlas.model.analysis.positions.codes import SCHEMES

BY_HAND = {
    "gaussian": lambda u: math.exp(-u * u / 2),
    "boxcar": lambda u: float(abs(u) <= 1),
    "triangular": lambda u: max(0.0, 1 - abs(u)),
}


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("bandwidth", [0.3, 1.5])
def test_predictions_are_weighted_means(name, bandwidth) -> None:
    fit = kernels.fit_regression(kernels.KERNELS[name], bandwidth, points=12, queries=9)
    for row, query in enumerate(fit.queries):
        values = np.array([BY_HAND[name]((query - key) / bandwidth) for key in fit.keys])
        if values.sum() == 0:
            assert np.isnan(fit.fitted[row]) and not fit.weights[row].any()
            continue
        np.testing.assert_allclose(fit.weights[row], values / values.sum(), atol=1e-12)
        assert fit.fitted[row] == pytest.approx((values * fit.values).sum() / values.sum())
    has_value = ~np.isnan(fit.fitted)
    expected = np.sqrt(((fit.fitted - fit.true)[has_value] ** 2).mean())
    assert fit.error == pytest.approx(expected) and has_value.any()


def test_attention_as_a_kernel_equals_torchs() -> None:
    fit = kernels.fit_regression(kernels.KERNELS["attention"], 0.5, points=10, queries=8)
    q, k = (torch.tensor(kernels.encode_numbers(x, 0.5)) for x in (fit.queries, fit.keys))
    values = torch.tensor(fit.values)[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], values[None])[0, :, 0]
    np.testing.assert_allclose(fit.fitted, expected.numpy(), atol=1e-10)
    np.testing.assert_allclose(
        kernels.encode_numbers(np.arange(5), 1.0), SCHEMES[-1].table(5, kernels.WIDTH), atol=1e-6
    )
    shifted = kernels.KERNELS["attention"].scores(fit.queries + 7, fit.keys + 7, 0.5)
    np.testing.assert_allclose(shifted, kernels.KERNELS["attention"].scores(fit.queries, fit.keys, 0.5), atol=1e-9)


def test_a_wider_kernel_gives_a_flatter_curve() -> None:
    ranges = [
        np.ptp(kernels.fit_regression(kernels.KERNELS[name], width).fitted)
        for name in ("gaussian", "attention")
        for width in (0.3, 3.0)
    ]
    assert ranges[0] > 2 * ranges[1] and ranges[2] > 2 * ranges[3]
