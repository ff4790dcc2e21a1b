"""Products by oneDNN: those of torch.nn.functional.linear, however a matrix lies in memory."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from model.checkpoint import _for_decoding
from model.nets import linear as products
from model.nets.linear import Linear, linear

pytestmark = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this PyTorch has no product by oneDNN"
)
OUT, IN = 48, 36


@pytest.fixture(autouse=True)
def on_a_processor_that_gains(monkeypatch):
    monkeypatch.setattr(products, "gains_by_onednn", lambda: True)
    monkeypatch.setattr(products, "WORTH_IT", 0)


@pytest.fixture()
def by_onednn(monkeypatch) -> list[bool]:
    """True for each of its products."""
    asked, is_in_one_piece = [], products._is_in_one_piece
    monkeypatch.setattr(products, "_is_in_one_piece", lambda weight: asked.append(True) or is_in_one_piece(weight))
    return asked


@pytest.mark.parametrize("shape", [(5, IN), (2, 7, IN), (1, 1, IN), (0, IN)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("lies", ["by rows", "by columns", "rows of another", "columns of another", "apart"])
@torch.inference_mode()
def test_it_is_the_product(shape, biased, lies, by_onednn):
    whole = torch.randn(2 * OUT, IN)
    weight = {
        "by rows": whole[:OUT].clone(),
        "by columns": _for_decoding(whole[:OUT]),
        "rows of another": whole[OUT:],
        "columns of another": _for_decoding(whole)[OUT:],
        "apart": whole[::2],
    }[lies]
    x, bias = torch.randn(shape), torch.randn(OUT) if biased else None
    exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    for found, expected in ((linear(x, weight, bias), exact), (linear(x, weight, bias, relu=True), exact.relu())):
        assert found.is_contiguous() and found.dtype == torch.float32
        torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=0)
    across = torch.randn(IN, 9).t()
    torch.testing.assert_close(linear(across, weight, bias), F.linear(across, weight, bias), atol=1e-5, rtol=0)
    assert by_onednn == [True] * 3


def test_what_it_has_no_product_for_is_torchs(by_onednn):
    module, x = Linear(IN, OUT), torch.randn(3, IN)
    expected = F.linear(x, module.weight, module.bias)
    assert torch.equal(module(x), expected) and torch.equal(
        linear(x, module.weight, module.bias, relu=True), expected.relu()
    )
    linear(x, module.weight, relu=True).sum().backward()
    assert module.weight.grad is not None
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert module(x).dtype == torch.bfloat16
    assert not by_onednn
    with torch.no_grad():
        assert torch.equal(linear(x.double(), module.weight.double()), F.linear(x.double(), module.weight.double()))
        torch.testing.assert_close(module(x), expected, atol=1e-5, rtol=0)
    assert by_onednn == [True]


def test_it_follows_its_weight():
    module, x = Linear(IN, OUT), torch.randn(3, IN)
    with torch.inference_mode():
        before = module(x)
        module.weight.data.mul_(2.0)
        module.bias.data.mul_(2.0)
        torch.testing.assert_close(module(x), 2 * before)
