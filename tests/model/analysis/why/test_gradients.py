"""Tests of gradients against differences, and of integrated gradients against their known sum."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.why.case import Case
from attention_atlas.model.analysis.why.methods import gradients
from attention_atlas.model.trace.why.attribution import Columns
from tests.conftest import build_tiny_model
from tests.model.analysis.why.cases import case_of, measure_rows, random_cases

SOURCE, TARGET = [4, 20, 31, 45, 20, 2], [1, 30, 41]
COLUMNS = Columns(
    ((0,), (1, 2), (3,), (4,), (5,)), ((0,), (1, 2)), ("<2en>", "▁a", "b", "▁c", "▁a", "</s>"), ("<s>", "▁x", "y")
)


def float64_case(tokenizer, norm_first: bool = True, token: int = 40, contrast: int | None = 50, seed: int = 7) -> Case:
    model = build_tiny_model(tokenizer, norm_first=norm_first, seed=seed).double()
    return case_of(model, SOURCE, TARGET, token, contrast, COLUMNS)


@pytest.fixture()
def case(tokenizer, norm_first) -> Case:
    return float64_case(tokenizer, norm_first)


def test_gradient_x_input_matches_central_differences(case):
    """Against central differences along the word's own embedding, in float64."""
    attributions = gradients.gradient_x_input(case).values
    step = 1e-5
    for column, (source, prefix) in enumerate(zip(*case.columns.masks())):

        def at(size, source=source, prefix=prefix):
            sides = ((case.source_rows, source), (case.target_rows, prefix))
            return measure_rows(case, *(rows * torch.from_numpy(1.0 + size * on)[None, :, None] for rows, on in sides))

        assert attributions[column] == pytest.approx((at(step) - at(-step)) / (2 * step), rel=1e-2, abs=1e-6)


def test_gradients_leave_weights_alone(case):
    gradients.integrated_gradients(case)
    assert all(parameter.grad is None for parameter in case.model.parameters())


def test_gradients_work_inside_inference_mode(case):
    with torch.inference_mode():
        inside = gradients.gradient_x_input(case).values
    np.testing.assert_array_equal(inside, gradients.gradient_x_input(case).values)


def test_integrated_gradients_sum_to_the_gap_or_are_flagged(tokenizer, norm_first):
    """The gap is measured by a pass over the baseline's rows, apart from the integral."""
    flagged = 0
    for seed in range(6):
        case = float64_case(tokenizer, norm_first, token=40 + seed, seed=seed)
        attribution = gradients.integrated_gradients(case)
        means = zip(case.mean_rows, (case.source_rows, case.target_rows))
        gap = case.metric() - measure_rows(case, *(mean.expand_as(rows).clone() for mean, rows in means))
        assert attribution.sum.expected == pytest.approx(gap, abs=1e-9)
        complete = abs(attribution.values.sum() - gap) <= max(0.02 * abs(gap), 1e-3)
        assert complete == attribution.sum.holds
        assert complete != any("Incomplete" in note for note in attribution.notes)
        flagged += not complete
    assert flagged <= 1


@pytest.mark.parametrize(
    "count", [pytest.param(52, marks=pytest.mark.long), pytest.param(260, marks=pytest.mark.endure)]
)
def test_integrated_gradients_are_complete_for_nearly_all_words(model, count):
    flagged = 0
    for source, target, token, contrast in random_cases(model, count, seed=8):
        columns = Columns(
            *(tuple((i,) for i in range(len(side))) for side in (source, target)),
            *(("▁a",) * len(side) for side in (source, target)),
        )
        case = case_of(model, source, target, token, contrast, columns)
        flagged += not gradients.integrated_gradients(case).sum.holds
    assert flagged <= count / 20


def test_an_integral_cut_short_is_flagged(tokenizer, monkeypatch):
    monkeypatch.setattr(gradients, "INITIAL_SEGMENTS", 1)
    monkeypatch.setattr(gradients, "MAX_GRADIENTS", 3)
    cases = [float64_case(tokenizer, seed=seed) for seed in range(4)]
    assert any(not gradients.integrated_gradients(case).sum.holds for case in cases)


def test_line_matches_gauss_legendre(tokenizer):
    """Against Gauss-Legendre's rule with many nodes on the whole line, which knows nothing of segments."""
    case = float64_case(tokenizer)
    line = gradients._Line(case, tuple(torch.zeros_like(rows) for rows in (case.source_rows, case.target_rows)))
    nodes, weights = np.polynomial.legendre.leggauss(400)
    line.evaluate((nodes + 1) / 2)
    expected = sum(weight / 2 * slope for weight, slope in zip(weights, line.slope.values()))
    fine = [(i / 64, (i + 1) / 64) for i in range(64)]
    line.evaluate([place for part in fine for place in (part[0], sum(part) / 2)] + [1.0])
    np.testing.assert_allclose(np.concatenate(line.integrate(fine)), expected, atol=2e-3)


def test_integrated_gradients_are_linear_in_the_contrast(tokenizer):
    """Up to the error that their sums have (completeness)."""
    cases = [float64_case(tokenizer, True, *pair) for pair in ((40, 50), (50, 60), (40, 60))]
    one, other, third = (gradients.integrated_gradients(case).values for case in cases)
    np.testing.assert_allclose(one + other, third, atol=0.03 * np.abs(third).sum())
