"""What is kept of a model's steps from text to text: as long as the model is the same, and no longer."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import nn

from attention_atlas.model.nets.lean import halves
from attention_atlas.model.nets.lean.kept import kept
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from tests.conftest import build_tiny_model
from tests.model.nets.lean.test_halves import CHANGES, needs_packing


def _doubled(weight: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(weight.detach() * 2.0)


def _other_norm(model: Transformer) -> None:
    sublayer = model.decoder.layers[0].sublayers[1]
    sublayer.norm = nn.LayerNorm(model.config.d_model, eps=0.1)


def _gated(model: Transformer) -> None:
    feed_forward = model.decoder.layers[0].feed_forward
    assert feed_forward.gate is None
    feed_forward.gate = nn.Linear(feed_forward.expand.in_features, feed_forward.expand.out_features)


def _other_address(model: Transformer) -> None:
    weight = model.decoder.layers[0].feed_forward.expand.weight
    weight.data = weight.data * 2.0


CHANGED: dict[str, Callable[[Transformer], object]] = {
    "a parameter": lambda model: setattr(
        model.decoder.layers[1].self_attention.output,
        "weight",
        _doubled(model.decoder.layers[1].self_attention.output.weight),
    ),
    "a parameter's numbers": _other_address,
    "the embedding": lambda model: setattr(model.embedding, "weight", _doubled(model.embedding.weight)),
    "a module": _other_norm,
    "an activation": lambda model: setattr(model.decoder.layers[1].feed_forward, "activation", torch.tanh),
    "a factor": lambda model: setattr(model, "scale", 2.0 * model.scale),
    "a module where there was none": _gated,
    "whole layers": lambda model: setattr(model.decoder, "layers", model.decoder.layers[:1]),
    "the type of all numbers": lambda model: model.double(),
}


@torch.inference_mode()
def assert_its_step_is_the_model(model: Transformer) -> None:
    ids = torch.randint(4, 300, (1, 1))
    source = model.encode(ids)
    lean = kept(model).step(model)(ids[0], source, model.new_cache())
    torch.testing.assert_close(lean, model.read(source, ids).logits[:, 0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_model_with_another_part_has_other_steps(change, tokenizer):
    model = build_tiny_model(tokenizer)
    before = kept(model)
    assert kept(model) is before and kept(model).step(model) is before.plain
    change(model)
    found = kept(model)
    assert found is not before and kept(model) is found
    assert_its_step_is_the_model(model)


def test_what_is_written_into_a_weight_is_followed(tokenizer):
    model = build_tiny_model(tokenizer)
    before = kept(model)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.1)
    assert kept(model) is before
    assert_its_step_is_the_model(model)


def test_a_change_of_the_pass_has_a_step_of_its_own(tokenizer):
    model = build_tiny_model(tokenizer)
    off = Interventions(heads_off=frozenset({(AttentionKind.CROSS, 0, 1)}))
    assert kept(model).step(model, off).layers[0].cross_gate is not None
    assert kept(model).step(model).layers[0].cross_gate is None


def test_each_number_of_threads_has_its_own(tokenizer):
    model, before = build_tiny_model(tokenizer), torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            found.append(kept(model))
    finally:
        torch.set_num_threads(before)
    assert found[0] is found[2] and found[0] is not found[1]


def test_a_model_that_nobody_has_is_let_go(tokenizer):
    model = build_tiny_model(tokenizer)
    kept(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@needs_packing
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_next_text_looks_at_packed_copies_again(change, halved_model):
    logits = kept(halved_model).step(halved_model).logits
    before = logits.half
    assert isinstance(before, halves.Half) and logits.half is before
    with torch.no_grad():
        change(halved_model.output_matrix)
    assert logits.half is before  # of the text under way
    kept(halved_model)
    assert logits.half is not before
    assert torch.equal(logits.half(torch.eye(halved_model.config.d_model)), halved_model.output_matrix.t())
