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


@pytest.mark.parametrize("d_model", [0, 1, 7])
def test_odd_widths_are_refused(d_model):
    with pytest.raises(ValueError, match=f"found {d_model}"):
        sinusoidal_encoding(torch.arange(3), d_model)


def test_the_model_adds_the_sinusoids_of_its_positions(tiny_model):
    ids = torch.tensor([[7, 8, 9]])
    plain = tiny_model.embedding(ids)[0] * math.sqrt(tiny_model.config.d_model)
    for positions, where in [
        (Positions(), [0, 1, 2]),
        (Positions(shift=40), [40, 41, 42]),
        (Positions(shift=-2), [-2, -1, 0]),
        (Positions(shift=500), [500, 501, 502]),
    ]:
        added = tiny_model.embed(ids, Interventions(source_positions=positions))[0] - plain
        torch.testing.assert_close(
            added, sinusoidal_encoding(torch.tensor(where), tiny_model.config.d_model), atol=1e-5, rtol=0
        )
    assert torch.equal(tiny_model.embed(ids, Interventions(source_positions=Positions(enabled=False)))[0], plain)
