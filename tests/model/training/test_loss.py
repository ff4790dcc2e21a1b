"""The loss of a network before training, against its closed form."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.training.loss import SummedLoss

SIZE = 32_000


@pytest.mark.parametrize(("variance", "expected"), [(0.0, 10.37), (1.0, 10.87), (1.1, 10.92)])
def test_the_first_loss_is_ln_v_and_half_the_variance_of_the_logits(variance, expected) -> None:
    """The mean of exp(z) of normal logits z is exp(variance / 2), and that of the target's logit is 0."""
    torch.manual_seed(0)
    model = Transformer(ModelConfig(SIZE, 64, 4, 1, 1, 64, dropout=0.0, tied_output=False)).eval()
    source, inputs, outputs = (torch.randint(1, SIZE, (40, 12)) for _ in range(3))
    with torch.no_grad():
        model.output.weight.normal_(std=math.sqrt(variance / 64))  # the norm before it gives vectors of length sqrt(64)
        logits = model(source, inputs).logits
        loss = float(SummedLoss(model, 0.0)(source, inputs, outputs)) / outputs.numel()
    assert float(logits.var()) == pytest.approx(variance, rel=0.05)
    assert loss == pytest.approx(float(F.cross_entropy(logits.flatten(0, 1), outputs.flatten())), abs=1e-4)
    assert loss == pytest.approx(math.log(SIZE) + variance / 2, abs=0.08)
    assert round(math.log(SIZE) + variance / 2, 2) == expected
