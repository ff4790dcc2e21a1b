"""Products by packed matrices: those of torch.nn.functional.linear, of whatever rows."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attention_atlas.model.checkpoint import _for_decoding
from attention_atlas.model.nets import linear as products
from attention_atlas.model.nets.lean import halves
from attention_atlas.model.nets.linear import ALL, MANY, Linear, linear

OUT, IN = 48, 36
needs_packing = pytest.mark.skipif(not halves._packs(), reason="this processor's PyTorch packs no float16")


@pytest.fixture(autouse=True)
def packed(monkeypatch) -> list[bool]:
    """Of each matrix that was looked at, whether it was packed, on a processor that gains by it."""
    asked = []

    def half(*args: object) -> halves.Half | None:
        found = halves.half(*args)
        asked.append(found is not None)
        return found

    monkeypatch.setattr(products.processor, "is_intels", lambda: False)
    monkeypatch.setattr(products, "half", half)
    return asked


def module() -> Linear:
    """As a shipped checkpoint is loaded."""
    made = Linear(IN, OUT)
    made.weight = nn.Parameter(_for_decoding(made.weight.detach().half()))
    return made


@needs_packing
@pytest.mark.parametrize("shape", [(MANY, IN), (2, MANY, IN), (MANY, 3, IN)])
@pytest.mark.parametrize("rows", [ALL, slice(5, None), slice(16)])
def test_it_is_the_product(shape, rows, packed):
    made, x = module(), torch.randn(shape)
    weight, bias = made.weight.detach()[rows], made.bias.detach()[rows]
    with torch.inference_mode():
        for given in (x, x.transpose(0, -1).contiguous().transpose(0, -1)):
            for added in (made.bias, None):
                found = linear(given, made.weight, added, rows)
                exact = F.linear(given.double(), weight.double(), None if added is None else bias.double())
                assert found.shape == (*shape[:-1], len(weight))
                torch.testing.assert_close(found.double(), exact, atol=1e-5, rtol=0)
    assert packed == [True] * 4


@needs_packing
def test_it_follows_its_parameters(packed):
    made, x = module(), torch.randn(MANY, IN)
    with torch.inference_mode():
        before = made(x)
        made.weight.data.mul_(2.0)
        made.bias.data.mul_(2.0)
        torch.testing.assert_close(made(x), 2 * before)
    assert packed == [True] * 2


def test_what_no_packed_matrix_has_a_product_for_is_torchs(packed, monkeypatch):
    made, x = module(), torch.randn(MANY, IN)
    expected = F.linear(x, made.weight, made.bias)
    assert torch.equal(made(x), expected)
    torch.testing.assert_close(linear(x, made.weight, made.bias, slice(7)), expected[:, :7])
    made(x).sum().backward()
    assert made.weight.grad is not None
    with torch.no_grad():
        assert torch.equal(made(x), expected)
    with torch.inference_mode():
        torch.testing.assert_close(made(x[:-1]), expected[:-1])  # of few rows
        assert made.double()(x.double()).dtype == torch.float64
        made.float()
        with torch.autocast("cpu", torch.bfloat16):
            assert made(x).dtype == torch.bfloat16
        for name, value in (("PACKED", OUT * IN - 1), ("MANY", MANY + 1)):
            with monkeypatch.context() as changed:
                changed.setattr(products, name, value)
                made(x)
        monkeypatch.setattr(products.processor, "is_intels", lambda: True)
        made(x)
    assert not packed
