"""Our loss and dropout kernels against torch's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.nets.layer import Dropout
from attention_atlas.model.training.loss import summed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_loss_and_gradient_equal_torch(smoothing, scale):
    torch.manual_seed(0)
    logits = (scale * torch.randn(11, 37)).requires_grad_()
    targets = torch.randint(37, (11,))
    copy = logits.detach().clone().requires_grad_()
    ours = summed_cross_entropy(logits, targets, smoothing)
    theirs = F.cross_entropy(copy, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)
    (0.3 * ours).backward()
    (0.3 * theirs).backward()
    torch.testing.assert_close(logits.grad, copy.grad, rtol=1e-5, atol=1e-6)


def test_the_gradient_agrees_with_finite_differences():
    torch.manual_seed(1)
    logits, targets = torch.randn(3, 5, requires_grad=True), torch.tensor([0, 4, 2])
    summed_cross_entropy(logits, targets, 0.1).backward()
    for where in [(0, 0), (1, 2), (2, 4)]:
        step = torch.zeros(3, 5)
        step[where] = 1e-2
        with torch.no_grad():
            slope = (
                summed_cross_entropy(logits + step, targets, 0.1) - summed_cross_entropy(logits - step, targets, 0.1)
            ) / 2e-2
        assert slope.item() == pytest.approx(logits.grad[where].item(), abs=1e-3)


def test_bfloat16_logits_keep_their_type_and_a_float32_loss():
    logits = torch.randn(4, 9, dtype=torch.bfloat16, requires_grad=True)
    loss = summed_cross_entropy(logits, torch.tensor([1, 2, 3, 4]), 0.1)
    loss.backward()
    assert loss.dtype == torch.float32 and logits.grad.dtype == torch.bfloat16


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
