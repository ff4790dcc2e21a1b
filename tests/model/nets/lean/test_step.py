"""The lean step's products, shared out among cores in every way that a matrix can lie in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F

from attention_atlas.model.checkpoint import _for_decoding
from attention_atlas.model.nets.lean import products
from attention_atlas.model.nets.lean.products import Affine, _bags
from attention_atlas.model.nets.lean.step import DecoderStep, _norm
from tests.conftest import build_tiny_model

WAYS = {"_whole", "_by_input", "_by_output"}


@pytest.fixture(params=[1, 2, 3])
def threads(request) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize(("bags", "intel"), [(True, False), (False, True), (False, False)])
def test_every_share_of_a_product_gives_the_product(threads, bags, intel, monkeypatch):
    monkeypatch.setattr(products, "SMALL", 100)
    monkeypatch.setattr(products, "LARGE", 2000)
    monkeypatch.setattr(products, "gains_by_bags", lambda: bags)
    monkeypatch.setattr(products.processor, "is_intels", lambda: intel)
    taken, few = set(), set()
    for outputs, inputs in ((7, 6), (61, 12), (60, 12), (12, 60), (301, 12), (300, 12), (12, 300), (25, 25), (97, 60)):
        for biased in (True, False):
            weight = torch.randn(outputs, inputs)
            bias = torch.randn(outputs) if biased else None
            columns = _for_decoding(torch.cat([weight, torch.randn(2 * outputs, inputs)]))[:outputs]
            for laid in (weight, _for_decoding(weight), columns):
                product = Affine(laid, bias)
                taken.add(product.product.__name__)
                few.add(product.few)
                assert product.whole == intel
                for rows in (1, 2, 4, 7):
                    x = torch.randn(rows, inputs)
                    torch.testing.assert_close(product(x), F.linear(x, weight, bias), atol=1e-4, rtol=0)
                    onto, plain = torch.randn(rows, outputs), F.linear(x, weight, bias)
                    torch.testing.assert_close(product(x, onto), plain + onto, atol=1e-4, rtol=0)
                    across = torch.randn(inputs, rows).t()
                    torch.testing.assert_close(product(across), F.linear(across, weight, bias), atol=1e-4, rtol=0)
    assert taken == ({"_whole"} if threads == 1 else WAYS)
    assert few == ({0, 5} if bags else {0})


def test_bags_hold_each_input_once_a_row():
    """Three rows in two shares of a table whose rows stand two apart."""
    rows, starts = _bags(4, 2, 2, 3)
    assert rows.tolist() == 3 * [0, 2] + 3 * [4, 6] and starts.tolist() == [0, 2, 4, 6, 8, 10]


def test_numbers_that_bags_are_slow_for_are_products():
    assert Affine(torch.empty(8, 6, device="meta"), None).few == 0
    for dtype in (torch.float64, torch.bfloat16):
        weight = _laid(torch.randn(8, 6, dtype=dtype))
        assert Affine(weight, None).few == 0
        torch.testing.assert_close(Affine(weight, None)(weight[:1]), weight[:1] @ weight.t())


def _laid(weight: torch.Tensor) -> torch.Tensor:
    return weight.t().contiguous().t()


def test_an_odd_vocabulary_is_shared_out_too(threads, monkeypatch):
    """It was read by a single core: half of what a step of OPUS-MT reads."""
    monkeypatch.setattr(products, "SMALL", 1)
    for laid in (torch.randn(1163, 48), _for_decoding(torch.randn(1163, 48))):
        assert Affine(laid, None).product.__name__ == ("_whole" if threads == 1 else "_by_input")
    monkeypatch.setattr(products, "gains_by_bags", lambda: True)
    assert len(Affine(laid, None).bags(1)[1]) == threads


@pytest.mark.parametrize("bags", [True, False], ids=["bags", "products"])
@pytest.mark.parametrize(
    "changes", [{}, {"norm_first": False, "logits_bias": True}, {"norm": "rms", "biases": False, "residual": False}]
)
def test_steps_on_several_cores_equal_the_full_pass(threads, tokenizer, changes, bags, monkeypatch):
    monkeypatch.setattr(products, "gains_by_bags", lambda: bags)
    monkeypatch.setattr(products, "SMALL", 1)
    monkeypatch.setattr(products, "LARGE", 4000)
    model = build_tiny_model(tokenizer, d_model=36, **changes)
    model.load_state_dict({name: _for_decoding(t) for name, t in model.state_dict().items()}, assign=True)
    ids = torch.tensor([[1, 30, 41, 52], [1, 77, 30, 30], [1, 12, 99, 200]])
    with torch.inference_mode():
        source, cache = model.encode(torch.tensor([[4, 20, 31, 2], [4, 33, 2, 0], [4, 90, 17, 2]])), model.new_cache()
        lean, whole = DecoderStep(model), model.read(source, ids).logits
        assert lean.logits.few == (5 if bags else 0)
        for at in range(ids.shape[1]):
            torch.testing.assert_close(lean(ids[:, at], source, cache), whole[:, at], atol=1e-4, rtol=0)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_the_rms_norm_of_a_row_is_torchs(size):
    norm, x = torch.nn.RMSNorm(48, eps=1e-6), size * torch.randn(3, 48)
    torch.nn.init.normal_(norm.weight)
    with torch.inference_mode():
        for rows in (x[:1], x):
            torch.testing.assert_close(_norm(norm)(rows), norm(rows))


def test_a_step_follows_its_model(threads, tokenizer, monkeypatch):
    """It holds no copy of a weight."""
    monkeypatch.setattr(products, "SMALL", 1)
    model = build_tiny_model(tokenizer)
    model.load_state_dict({name: _for_decoding(t) for name, t in model.state_dict().items()}, assign=True)
    with torch.inference_mode():
        source, ids = model.encode(torch.tensor([[4, 20, 31, 2]])), torch.tensor([1])
        lean = DecoderStep(model)
        lean(ids, source, model.new_cache())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    with torch.inference_mode():
        source = model.encode(torch.tensor([[4, 20, 31, 2]]))
        torch.testing.assert_close(
            lean(ids, source, model.new_cache()), model.read(source, ids[:, None]).logits[:, 0], atol=1e-4, rtol=0
        )
