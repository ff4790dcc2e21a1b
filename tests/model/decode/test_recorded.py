"""A recorded decode: its maps and distributions equal those of a recorded full pass."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from attention_atlas.model.decode.recorded import Distributions, StepMaps, greedy_with_records
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.edits import Add, Scale
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from tests.conftest import build_tiny_model
from tests.model.decode.sweeps import BEGIN, CACHED, SOURCES, SWEEPS, assert_distributions_equal, same_maps

END = 2
EDITED = {
    "edits": lambda rows: Interventions(
        edits={
            "decoder.*.self.q": Scale(1.5, heads=(1,)),
            "decoder.1.self.k": Add(0.4, positions=(1, 2)),
            "decoder.0.cross.k": Add(0.3, positions=(0,)),
            "decoder.2.cross.scores": Scale(0.5),
            "decoder.1.resid_mid": Add(0.2),
        }
    ),
    "a function": lambda rows: Sweep(edits=(("decoder.*.self.scores", lambda x, at: x * 0.7),)),
    "a stream patched": SWEEPS["a stream patched"],
}


@pytest.mark.parametrize("family", [{}, {"norm_first": False}, {"position_code": "relative", "scale_scores": False}])
@pytest.mark.parametrize("changes_name", [*CACHED, *EDITED])
@torch.inference_mode()
def test_maps_of_steps_equal_those_of_a_pass_with_the_same_changes(tokenizer, family, changes_name):
    # In float64: unscaled scores reach 43 here, where float32 rounds by 4e-6.
    model, changes = build_tiny_model(tokenizer, **family).double(), {**CACHED, **EDITED}[changes_name](len(SOURCES))
    memory = model.encode(pad(SOURCES, 0), interventions=changes, record=True)
    targets, recorded = greedy_with_records(model, memory, [6, 2, 9], begin_id=BEGIN, end_id=-1, interventions=changes)
    assert isinstance(recorded.output, StepMaps) and [len(ids) for ids in targets] == [6, 2, 9]
    inputs = pad([[BEGIN, *ids[:-1]] for ids in targets], 0)
    whole = model.read(memory, inputs, interventions=changes, record=True)
    for row in range(len(targets)):
        same_maps(recorded.output, whole, row, atol=1e-10)


@pytest.mark.parametrize("changes", ["gates by position", "gates and a cut edge"])
@torch.inference_mode()
def test_changes_that_the_cached_step_does_not_support_are_read_from_a_recorded_pass(tiny_model, changes):
    changes = SWEEPS[changes](1)
    memory = tiny_model.encode(torch.tensor(SOURCES[:1]), interventions=changes, record=True)
    _, recorded = greedy_with_records(tiny_model, memory, [5], begin_id=BEGIN, end_id=-1, interventions=changes)
    assert isinstance(recorded.output, ForwardOutput)


@torch.inference_mode()
def test_maps_without_a_look_ahead_mask_are_those_of_a_pass(tokenizer):
    """A step reads only its prefix."""
    model = build_tiny_model(tokenizer, look_ahead_mask=False)
    memory = model.encode(torch.tensor(SOURCES[:1]), record=True)
    _, recorded = greedy_with_records(model, memory, [5], begin_id=BEGIN, end_id=-1)
    assert recorded.output.maps(AttentionKind.DECODER_SELF, 0)[0, 0, 0, -1] > 0


def test_distributions_and_maps_equal_those_of_a_pass(tiny_model):
    memory, ends = tiny_model.encode(pad(SOURCES, 0), record=True), {"begin_id": BEGIN, "end_id": END}
    limits = [6, 2, 9]
    targets, recorded = greedy_with_records(tiny_model, memory, limits, **ends)
    assert targets == greedy(tiny_model, memory, limits, **ends) and len({len(ids) for ids in targets}) > 1
    whole = tiny_model.read(memory, pad([[BEGIN, *ids[:-1]] for ids in targets], 0), record=True)
    for row, (ids, steps) in enumerate(zip(targets, recorded.distributions)):
        assert len(steps) == len(ids) and set(steps.chosen_rank.tolist()) == {1}
        assert_distributions_equal(whole.logits[row, : len(ids)], ids, steps)
        same_maps(recorded.output, whole, row)


@torch.inference_mode()
def test_forced_ids_and_prefixes_give_the_numbers_of_a_free_decode(tiny_model):
    memory, ends = tiny_model.encode(pad(SOURCES[:1], 0), record=True), {"begin_id": BEGIN, "end_id": -1}
    (free,), recorded = greedy_with_records(tiny_model, memory, [9], **ends)
    _, forced = greedy_with_records(tiny_model, memory, [9], forced=free, **ends)
    for kind in recorded.output.kinds:
        assert torch.equal(forced.output.maps(kind, 0), recorded.output.maps(kind, 0))
    plain = tiny_model.read(memory, torch.tensor([[BEGIN, *free[:-1]]]), record=True)
    same_maps(recorded.output, plain)
    for field in fields(Distributions):
        assert torch.equal(getattr(forced.distributions[0], field.name), getattr(recorded.distributions[0], field.name))
    for length in (1, 5, 8):
        (ids,), continued = greedy_with_records(tiny_model, memory, [9 - length], prefix=free[:length], **ends)
        assert ids == free
        assert_distributions_equal(plain.logits[0], free, continued.distributions[0])
        same_maps(continued.output, plain)
    (ids,), continued = greedy_with_records(tiny_model, memory, [3], prefix=[9, 8, 7], **ends)
    whole = tiny_model.read(memory, torch.tensor([[BEGIN, *ids[:-1]]]))
    assert ids[:3] == [9, 8, 7] and len(ids) == 6
    assert_distributions_equal(whole.logits[0], ids, continued.distributions[0])
    assert ids[3:] == whole.logits[0, 3:].argmax(-1).tolist()
