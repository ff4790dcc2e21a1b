"""Products with weights that float16 holds: the same numbers, and never those of a weight that has changed since."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from attention_atlas.model.checkpoint import _for_decoding
from attention_atlas.model.nets.lean import halves
from attention_atlas.model.nets.lean.halves import half
from attention_atlas.model.nets.lean.products import Products
from attention_atlas.model.nets.lean.step import DecoderStep

ALL = slice(None)
needs_packing = pytest.mark.skipif(not halves._packs(), reason="this processor's PyTorch packs no float16")
CHANGES: dict[str, Callable[[Tensor], object]] = {
    "in place": lambda weight: weight.mul_(2.0),
    "an element of its data": lambda weight: weight.data[3, 2].fill_(0.25),
    "two rows of its data": lambda weight: weight.data.copy_(weight.data[torch.arange(len(weight)).roll(1)]),
    "two columns by NumPy": lambda weight: _swap(weight.detach().numpy()),
}


def _swap(array) -> None:
    array[:, [0, 1]] = array[:, [1, 0]]


def parameter(*shape: int) -> nn.Parameter:
    return nn.Parameter(_for_decoding(torch.randn(*shape).half()))


@needs_packing
@pytest.mark.parametrize(("outputs", "inputs"), [(7, 5), (1, 1), (61, 36), (300, 7)])
def test_a_packed_product_is_the_product(outputs, inputs):
    weight = parameter(outputs, inputs)
    weight.data[0, 0] = 5 * 2.0**-24  # below float16's least normal number
    packed = half(weight, ALL)
    assert torch.equal(packed(torch.eye(inputs)), weight.t())
    for rows in (1, 2, 9, 130):
        x = torch.randn(inputs, rows).t()
        expected = x.double() @ weight.detach().double().t()
        torch.testing.assert_close(packed(x).double(), expected, atol=1e-5, rtol=0)
    assert half(weight, ALL) is packed  # no second copy
    assert torch.equal(half(weight, slice(1, 3))(torch.eye(inputs)), weight[1:3].t())


@needs_packing
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_weight_is_packed_anew(change):
    weight = parameter(8, 6)
    before = half(weight, ALL)
    with torch.no_grad():
        change(weight)
    assert half(weight, ALL) is not before
    assert torch.equal(half(weight, ALL)(torch.eye(6)), weight.t())


@needs_packing
def test_of_a_trusted_model_only_what_pytorch_counts_is_seen(halved_model):
    weight = halved_model.decoder.layers[0].feed_forward.expand.weight
    halves.trust(halved_model)
    before = half(weight, ALL)
    CHANGES["an element of its data"](weight)
    assert half(weight, ALL) is before
    with torch.no_grad():
        CHANGES["in place"](weight)
    changed = half(weight, ALL)
    assert changed is not before and torch.equal(changed(torch.eye(weight.shape[1])), weight.t())
    weight.data = weight.data.clone(memory_format=torch.preserve_format)
    assert half(weight, ALL) is not changed


@needs_packing
def test_pieces_of_a_whole_look_once(monkeypatch):
    weight, probes, known = parameter(8, 6), [], halves._probe
    monkeypatch.setattr(halves, "_probe", lambda weight: probes.append(1) or known(weight))
    first = half(weight, ALL)

    def in_pieces() -> list[halves.Half]:
        piece = halves.looking_once(lambda: half(weight, ALL))
        with ThreadPoolExecutor(2) as threads:
            return [piece(), *(threads.submit(piece).result() for _ in range(3)), piece()]

    probes.clear()
    assert in_pieces() == [first] * 5 and len(probes) == 1
    half(weight, ALL)
    assert len(probes) == 2  # one that is no piece looks by itself
    CHANGES["an element of its data"](weight)
    assert first not in in_pieces()


@needs_packing
def test_the_probe_is_the_same_on_any_number_of_cores():
    """Or a server that shares out its cores would pack again for each visitor."""
    weight, before = parameter(300, 256), torch.get_num_threads()
    try:
        packed = {half(weight, ALL) for threads in (1, 2, 3) if torch.set_num_threads(threads) is None}
    finally:
        torch.set_num_threads(before)
    assert len(packed) == 1


def test_what_float16_does_not_hold_is_not_packed():
    for value in (1 / 3, 7e4, float("nan"), 1e-9):
        weight = parameter(4, 4)
        weight.data[1, 1] = value
        assert half(weight, ALL) is None
    for other in (torch.ones(4, 4).double(), torch.ones(4, 4), torch.ones(4, 4, device="meta").t()):
        assert half(nn.Parameter(other), ALL) is None  # of these, the second lies otherwise in memory
    with torch.inference_mode():
        assert half(_for_decoding(torch.ones(4, 4).half()), ALL) is None  # nobody counts its versions


@needs_packing
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_step_by_packed_matrices_is_the_model(halved_model, batch):
    ids = torch.randint(4, 300, (batch, 5))
    with torch.inference_mode():
        source, cache = halved_model.encode(ids), halved_model.new_cache()
        lean, whole = DecoderStep(halved_model), halved_model.read(source, ids).logits
        assert isinstance(lean.logits.half, halves.Half) or not lean.logits.halved
        for at in range(ids.shape[1]):
            torch.testing.assert_close(lean(ids[:, at], source, cache), whole[:, at], atol=1e-5, rtol=0)


@needs_packing
def test_a_step_under_way_leaves_what_it_packed_when_the_model_changes(halved_model):
    ids = torch.randint(4, 300, (3, 1))
    with torch.inference_mode():
        lean = DecoderStep(halved_model)
        lean(ids[:, 0], halved_model.encode(ids), halved_model.new_cache())
    with torch.no_grad():
        for weight in halved_model.parameters():
            weight.mul_(1.1)
    with torch.inference_mode():
        source = halved_model.encode(ids)
        expected = halved_model.read(source, ids).logits[:, 0]
        torch.testing.assert_close(lean(ids[:, 0], source, halved_model.new_cache()), expected, atol=1e-5, rtol=0)


def test_a_large_model_is_not_copied(halved_model, monkeypatch):
    monkeypatch.setattr("attention_atlas.model.nets.lean.products.PACKED", halved_model.step_numbers - 1)
    weight = halved_model.output_matrix
    assert Products(halved_model)(weight, None).halved == range(0)
    monkeypatch.setattr("attention_atlas.model.nets.lean.products.PACKED", halved_model.step_numbers)
    products = Products(halved_model)
    assert 2 in products(weight, None).halved and products(weight, None) is products(weight, None)
