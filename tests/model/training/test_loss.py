"""Our dropout drops its rate, keeps the mean, and passes gradients."""

from __future__ import annotations

import pytest
import torch

from attention_atlas.model.nets.layer import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.999])
def test_dropout_drops_its_rate_and_keeps_the_mean(rate):
    torch.manual_seed(2)
    dropout, x = Dropout(rate), torch.ones(401, 1003)
    dropped = dropout(x)
    assert (dropped == 0).float().mean().item() == pytest.approx(rate, abs=1 / 256)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.05)
    assert torch.equal(dropout.eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_dropout_passes_gradients_through_the_remaining_values():
    x = torch.ones(1000, requires_grad=True)
    dropped = Dropout(0.25)(x)
    dropped.sum().backward()
    torch.testing.assert_close(x.grad, dropped.detach())


def test_dropout_is_repeatable_by_seed_and_varies_between_calls():
    dropout, x = Dropout(0.3), torch.ones(1000)
    torch.manual_seed(3)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(3)
    assert torch.equal(dropout(x), first) and not torch.equal(first, second)
