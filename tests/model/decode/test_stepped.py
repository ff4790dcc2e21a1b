"""The maps that follow from a decode's steps are those of a recorded pass."""

from __future__ import annotations

import pytest
import torch

from attention_atlas.model.decode.recorded import StepMaps, greedy_with_records
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.records import ForwardOutput
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.edits import Add, Scale
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from tests.conftest import build_tiny_model
from tests.model.decode.sweeps import BEGIN, LEAN, SOURCES, SWEEPS, same_maps

EDITED = {
    "edits": lambda rows: Interventions(
        edits=(
            ("decoder.*.self.q", Scale(1.5, heads=(1,))),
            ("decoder.1.self.k", Add(0.4, positions=(1, 2))),
            ("decoder.0.cross.k", Add(0.3, positions=(0,))),
            ("decoder.2.cross.scores", Scale(0.5)),
            ("decoder.1.resid_mid", Add(0.2)),
        )
    ),
    "a function": lambda rows: Sweep(edits=(("decoder.*.self.scores", lambda x, at: x * 0.7),)),
    "a stream patched": SWEEPS["a stream patched"],
}


@pytest.mark.parametrize("family", [{}, {"norm_first": False}, {"position_code": "relative", "scale_scores": False}])
@pytest.mark.parametrize("changes", [*LEAN, *EDITED])
@torch.inference_mode()
def test_the_maps_of_steps_are_those_of_a_pass_under_the_same_changes(tokenizer, family, changes):
    # In float64: unscaled scores reach 43 here, where float32 rounds by 4e-6, and the softmax shows all of it.
    model, changes = build_tiny_model(tokenizer, **family).double(), {**LEAN, **EDITED}[changes](len(SOURCES))
    memory = model.encode(pad(SOURCES, 0), interventions=changes, record=True)
    found, kept = greedy_with_records(model, memory, [6, 2, 9], begin_id=BEGIN, end_id=-1, interventions=changes)
    assert isinstance(kept.output, StepMaps) and [len(ids) for ids in found] == [6, 2, 9]
    inputs = pad([[BEGIN, *ids[:-1]] for ids in found], 0)
    for row, whole in enumerate([model.read(memory, inputs, interventions=changes, record=True)] * len(found)):
        same_maps(kept.output, whole, row, atol=1e-10)


@pytest.mark.parametrize("changes", ["gates by position", "gates and a cut edge"])
@torch.inference_mode()
def test_where_steps_do_not_say_all_a_pass_is_recorded(tiny_model, changes):
    changes = SWEEPS[changes](1)
    memory = tiny_model.encode(torch.tensor(SOURCES[:1]), interventions=changes, record=True)
    _, kept = greedy_with_records(tiny_model, memory, [5], begin_id=BEGIN, end_id=-1, interventions=changes)
    assert isinstance(kept.output, ForwardOutput)


@torch.inference_mode()
def test_a_network_that_looks_ahead_has_the_maps_of_a_pass(tokenizer):
    """Its steps read no more than their prefix."""
    model = build_tiny_model(tokenizer, look_ahead_mask=False)
    memory = model.encode(torch.tensor(SOURCES[:1]), record=True)
    _, kept = greedy_with_records(model, memory, [5], begin_id=BEGIN, end_id=-1)
    assert kept.output.maps(AttentionKind.DECODER_SELF, 0)[0, 0, 0, -1] > 0
