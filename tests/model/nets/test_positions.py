"""The sinusoidal code equals the paper's formula, computed here without torch."""

from __future__ import annotations

import math

import pytest
import torch

from attention_atlas.model.nets.positions import sinusoidal_encoding
from attention_atlas.model.trace.interventions import Interventions, Positions


@pytest.mark.parametrize("d_model", [2, 6, 32, 256])
def test_the_sinusoids_equal_the_papers_formula(d_model):
    positions = [0, 1, 2, 17, 255, 4000]
    encoding = sinusoidal_encoding(torch.tensor(positions), d_model)
    for row, position in zip(encoding.tolist(), positions):
        for pair in range(d_model // 2):
            angle = position / 10_000 ** (2 * pair / d_model)
            assert row[2 * pair] == pytest.approx(math.sin(angle), abs=1e-6)
            assert row[2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_shift_rotates_each_pair_by_a_fixed_angle():
    """PE(pos + k) = R(k) PE(pos): only true if sine and cosine of a pair share their frequency."""
    d_model, shift = 16, 5
    encoding = sinusoidal_encoding(torch.arange(100), d_model).double()
    angles = shift / 10_000 ** (torch.arange(0, d_model, 2).double() / d_model)
    sine, cosine = encoding[:-shift, 0::2], encoding[:-shift, 1::2]
    torch.testing.assert_close(encoding[shift:, 0::2], sine * angles.cos() + cosine * angles.sin(), atol=1e-6, rtol=0)
    torch.testing.assert_close(encoding[shift:, 1::2], cosine * angles.cos() - sine * angles.sin(), atol=1e-6, rtol=0)


def test_all_rows_have_the_same_length_and_bounded_values():
    encoding = sinusoidal_encoding(torch.arange(500), 64)
    torch.testing.assert_close(encoding.norm(dim=1), torch.full((500,), math.sqrt(32)))
    assert encoding.abs().max() <= 1


def test_the_base_sets_the_longest_wavelength():
    encoding = sinusoidal_encoding(torch.tensor([3.0]), 4, base=100.0)
    assert encoding[0].tolist() == pytest.approx([math.sin(3), math.cos(3), math.sin(0.3), math.cos(0.3)], abs=1e-6)


@pytest.mark.parametrize("d_model", [0, 1, 7])
def test_odd_widths_are_refused(d_model):
    with pytest.raises(ValueError, match=f"found {d_model}"):
        sinusoidal_encoding(torch.arange(3), d_model)


def test_the_model_adds_the_sinusoids_of_its_positions(tiny_model):
    ids = torch.tensor([[7, 8, 9]])
    plain = tiny_model.embedding(ids)[0] * math.sqrt(tiny_model.config.d_model)
    for shift in (0, 40, -2, 500):
        added = tiny_model.embed(ids, Interventions(source_positions=Positions(shift=shift)))[0] - plain
        expected = sinusoidal_encoding(torch.arange(3) + shift, tiny_model.config.d_model)
        torch.testing.assert_close(added, expected, atol=1e-5, rtol=0)
    assert torch.equal(tiny_model.embed(ids, Interventions(source_positions=Positions(enabled=False)))[0], plain)
