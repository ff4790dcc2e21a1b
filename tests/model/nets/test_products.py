"""Packed float16 products equal the float32 products, and never those of a weight that has changed since."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_atlas.model.checkpoint import _for_decoding
from attention_atlas.model.nets import products
from attention_atlas.model.nets.decoder_step import DecoderStep
from attention_atlas.model.nets.products import ALL, MANY_ROWS, Linear, StepProduct, linear, packed
from tests.conftest import build_tiny_model

OUT, IN = 48, 36
needs_packing = pytest.mark.skipif(
    not products.packing_is_supported(), reason="this processor's PyTorch packs no float16"
)


@pytest.fixture(autouse=True)
def pack_small_matrices(monkeypatch) -> None:
    monkeypatch.setattr(products, "MIN_NUMBERS", 1)


def parameter(*shape: int) -> nn.Parameter:
    """Random float16 numbers, laid out as a checkpoint is loaded."""
    return nn.Parameter(_for_decoding(torch.randn(*shape).half()))


@pytest.fixture()
def float16_model(tokenizer) -> nn.Module:
    """A tiny model as a shipped checkpoint is loaded."""
    model = build_tiny_model(tokenizer)
    model.load_state_dict({name: _for_decoding(t.half()) for name, t in model.state_dict().items()}, assign=True)
    return model


def _swap_columns(array) -> None:
    array[:, [0, 1]] = array[:, [1, 0]]


CHANGES: dict[str, Callable[[Tensor], object]] = {
    "in place": lambda weight: weight.mul_(2.0),
    "an element of its data": lambda weight: weight.data[3, 2].fill_(0.25),
    "two rows of its data": lambda weight: weight.data.copy_(weight.data[torch.arange(len(weight)).roll(1)]),
    "two columns by NumPy": lambda weight: _swap_columns(weight.detach().numpy()),
    "the memory it lies in": lambda weight: setattr(weight, "data", _for_decoding(weight.data * 2)),
}


@needs_packing
@pytest.mark.parametrize(("outputs", "inputs"), [(7, 5), (1, 1), (61, 36), (300, 7)])
def test_a_packed_product_equals_the_float64_product(outputs, inputs):
    weight = parameter(outputs, inputs)
    weight.data[0, 0] = 5 * 2.0**-24  # below float16's smallest normal number
    copy = packed(weight)
    assert torch.equal(copy(torch.eye(inputs)), weight.t())
    for rows in (1, 2, 9, 130):
        x = torch.randn(inputs, rows).t()
        expected = x.double() @ weight.detach().double().t()
        torch.testing.assert_close(copy(x).double(), expected, atol=1e-5, rtol=0)
    assert packed(weight) is copy  # packed once
    assert torch.equal(packed(weight, slice(1, 3))(torch.eye(inputs)), weight[1:3].t())


@needs_packing
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_weight_is_packed_again(change):
    weight = parameter(8, 6)
    before = packed(weight)
    with torch.no_grad():
        change(weight)
    assert packed(weight) is not before
    assert torch.equal(packed(weight)(torch.eye(6)), weight.t())


@needs_packing
def test_the_number_of_threads_does_not_change_the_checksum():
    """Or a server that divides its cores would pack again for each visitor."""
    weight, before = parameter(300, 256), torch.get_num_threads()
    try:
        copies = {packed(weight) for threads in (1, 2, 3) if torch.set_num_threads(threads) is None}
    finally:
        torch.set_num_threads(before)
    assert len(copies) == 1


def test_weights_that_float16_cannot_represent_are_not_packed():
    for value in (1 / 3, 7e4, float("nan"), 1e-9):
        weight = parameter(4, 4)
        weight.data[1, 1] = value
        assert packed(weight) is None
    for tensor in (torch.ones(4, 4).double(), torch.ones(4, 4), torch.ones(4, 4, device="meta").t()):
        assert packed(nn.Parameter(tensor)) is None  # the second is laid out differently
    with torch.inference_mode():
        assert packed(_for_decoding(torch.ones(4, 4).half())) is None  # inference tensors have no version


def linear_module() -> Linear:
    module = Linear(IN, OUT)
    module.weight = nn.Parameter(_for_decoding(module.weight.detach().half()))
    return module


@pytest.fixture()
def was_packed(monkeypatch) -> list[bool]:
    """For each weight that linear() tried to pack on a processor that gains by it, whether that succeeded."""
    results = []

    def spy(*args: object) -> products.PackedWeight | None:
        results.append((copy := packed(*args)) is not None)
        return copy

    monkeypatch.setattr(products.processor, "is_intels", lambda: False)
    monkeypatch.setattr(products, "packed", spy)
    return results


@needs_packing
@pytest.mark.parametrize("shape", [(MANY_ROWS, IN), (2, MANY_ROWS, IN), (MANY_ROWS, 3, IN)])
@pytest.mark.parametrize("rows", [ALL, slice(5, None), slice(16)])
def test_linear_of_many_rows_equals_torchs(shape, rows, was_packed):
    module, x = linear_module(), torch.randn(shape)
    weight, bias = module.weight.detach()[rows], module.bias.detach()[rows]
    with torch.inference_mode():
        for values in (x, x.transpose(0, -1).contiguous().transpose(0, -1)):
            for added in (module.bias, None):
                product = linear(values, module.weight, added, rows)
                exact = F.linear(values.double(), weight.double(), None if added is None else bias.double())
                assert product.shape == (*shape[:-1], len(weight))
                torch.testing.assert_close(product.double(), exact, atol=1e-5, rtol=0)
        module.weight.data.mul_(2.0)
        module.bias.data.mul_(2.0)
        torch.testing.assert_close(module(x), F.linear(x, module.weight, module.bias))
    assert was_packed == [True] * 5


def test_linear_is_torchs_where_packed_products_cannot_be_used(was_packed, monkeypatch):
    module, x = linear_module(), torch.randn(MANY_ROWS, IN)
    expected = F.linear(x, module.weight, module.bias)
    assert torch.equal(module(x), expected)
    torch.testing.assert_close(linear(x, module.weight, module.bias, slice(7)), expected[:, :7])
    module(x).sum().backward()
    assert module.weight.grad is not None
    with torch.no_grad():
        assert torch.equal(module(x), expected)
    with torch.inference_mode():
        torch.testing.assert_close(module(x[:-1]), expected[:-1])  # few rows
        assert module.double()(x.double()).dtype == torch.float64
        module.float()
        with torch.autocast("cpu", torch.bfloat16):
            assert module(x).dtype == torch.bfloat16
        for name, value in (("MAX_NUMBERS", OUT * IN - 1), ("MANY_ROWS", MANY_ROWS + 1)):
            with monkeypatch.context() as changed:
                changed.setattr(products, name, value)
                module(x)
        monkeypatch.setattr(products.processor, "is_intels", lambda: True)
        module(x)
    assert not was_packed


@pytest.mark.parametrize("intel", [True, False])
@pytest.mark.parametrize("float16", [True, False])
@pytest.mark.parametrize("rows", [ALL, slice(16)])
@torch.inference_mode()
def test_step_products_equal_torchs(float16, rows, intel, monkeypatch):
    monkeypatch.setattr(products.processor, "is_intels", lambda: intel)
    with torch.inference_mode(False):
        weight, bias = parameter(OUT, IN) if float16 else nn.Parameter(torch.randn(OUT, IN)), torch.randn(OUT)
    for added in (bias, None):
        product = StepProduct(weight, added, rows)
        assert (product.packed is not None) == (float16 and products.packing_is_supported())
        for batch in (1, 2, 9):
            x = torch.randn(batch, IN)
            expected = F.linear(x, weight[rows], None if added is None else added[rows])
            torch.testing.assert_close(product(x), expected, atol=1e-4, rtol=0)
            residual = torch.randn_like(expected)
            torch.testing.assert_close(product(x, residual), expected + residual, atol=1e-4, rtol=0)


@pytest.mark.parametrize("batch", [1, 5, 9])
def test_a_packed_decoding_step_equals_the_full_pass_and_follows_the_model(float16_model, batch):
    ids = torch.randint(4, 300, (batch, 5))
    step = DecoderStep(float16_model)
    assert (step.logits.packed is not None) == products.packing_is_supported()

    def check() -> None:
        with torch.inference_mode():
            source, cache = float16_model.encode(ids), float16_model.new_cache()
            logits = float16_model.read(source, ids).logits
            for position in range(ids.shape[1]):
                row = step(ids[:, position], source, cache)
                torch.testing.assert_close(row, logits[:, position], atol=1e-4, rtol=0)

    check()
    with torch.no_grad():
        for weight in float16_model.parameters():
            weight.mul_(1.1)
    check()


def test_large_models_are_not_copied(float16_model, monkeypatch):
    monkeypatch.setattr("attention_atlas.model.nets.decoder_step.MAX_PACKED_WEIGHTS", float16_model.step_numbers - 1)
    assert DecoderStep(float16_model).logits.packed is None
