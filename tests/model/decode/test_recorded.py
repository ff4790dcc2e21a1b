"""A recorded decode: its maps and distributions equal those of a recorded full pass."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest
import torch

from attention_atlas.model import checkpoint
from attention_atlas.model.decode.distributions import Distributions
from attention_atlas.model.decode.recorded import BatchMaps, greedy_with_records
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.sweep import Sweep
from attention_atlas.model.trace.edits import Add, Scale
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES, build_tiny_model
from tests.fake_device import Fake, fake_device
from tests.model.decode.sweeps import BEGIN, CACHED, DECODER, SOURCES, SWEEPS, assert_distributions_equal, same_maps

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
    assert [len(ids) for ids in targets] == [6, 2, 9]
    inputs = pad([[BEGIN, *ids[:-1]] for ids in targets], 0)
    whole = model.read(memory, inputs, interventions=changes, record=True)
    for row, ids in enumerate(targets):
        same_maps(recorded.output, whole, len(ids), row, atol=1e-10)


@pytest.mark.parametrize("changes", ["gates by position", "gates and a cut edge"])
@torch.inference_mode()
def test_changes_that_the_cached_step_does_not_support_are_read_from_a_recorded_pass(tiny_model, changes):
    changes = SWEEPS[changes](1)
    memory = tiny_model.encode(torch.tensor(SOURCES[:1]), interventions=changes, record=True)
    (ids,), recorded = greedy_with_records(tiny_model, memory, [5], begin_id=BEGIN, end_id=-1, interventions=changes)
    whole = tiny_model.read(memory, torch.tensor([[BEGIN, *ids[:-1]]]), interventions=changes, record=True)
    same_maps(recorded.output, whole, 5)


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
        same_maps(recorded.output, whole, len(ids), row)


@torch.inference_mode()
def test_forced_ids_and_prefixes_give_the_numbers_of_a_free_decode(tiny_model):
    memory, ends = tiny_model.encode(pad(SOURCES[:1], 0), record=True), {"begin_id": BEGIN, "end_id": -1}
    (free,), recorded = greedy_with_records(tiny_model, memory, [9], **ends)
    _, forced = greedy_with_records(tiny_model, memory, [9], forced=free, **ends)
    for kind in recorded.output.kinds:
        assert torch.equal(forced.output.maps(kind, 0), recorded.output.maps(kind, 0))
    plain = tiny_model.read(memory, torch.tensor([[BEGIN, *free[:-1]]]), record=True)
    same_maps(recorded.output, plain, 9)
    for field in fields(Distributions):
        assert torch.equal(getattr(forced.distributions[0], field.name), getattr(recorded.distributions[0], field.name))
    for length in (1, 5, 8):
        (ids,), continued = greedy_with_records(tiny_model, memory, [9 - length], prefix=free[:length], **ends)
        assert ids == free
        assert_distributions_equal(plain.logits[0], free, continued.distributions[0])
        same_maps(continued.output, plain, 9)
    (ids,), continued = greedy_with_records(tiny_model, memory, [3], prefix=[9, 8, 7], **ends)
    whole = tiny_model.read(memory, torch.tensor([[BEGIN, *ids[:-1]]]))
    assert ids[:3] == [9, 8, 7] and len(ids) == 6
    assert_distributions_equal(whole.logits[0], ids, continued.distributions[0])
    assert ids[3:] == whole.logits[0, 3:].argmax(-1).tolist()


@pytest.fixture()
def copies(monkeypatch) -> list[tuple[int, ...]]:
    """The shapes of the maps that are copied from a device."""
    shapes, copy = [], torch.Tensor.cpu

    def cpu(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim == 5 and isinstance(tensor, Fake):
            shapes.append(tuple(tensor.shape))
        return copy(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    return shapes


def test_the_maps_of_a_batch_are_copied_at_once_when_one_is_read(copies, tiny_checkpoint, tiny_translator):
    with fake_device() as device:
        translator = Translator(checkpoint.load(tiny_checkpoint), device, limits=tiny_translator.limits)
        traces = translator.trace_batch(SENTENCES[:5])
        assert not copies
        for trace, alone in zip(traces, tiny_translator.trace_batch(SENTENCES[:5])):
            for kind in trace.kinds:
                np.testing.assert_allclose(trace.maps(kind).weights, alone.maps(kind).weights, atol=1e-6)
        assert [shape[0] for shape in copies] == [5, 5, 5]  # one for each kind


def test_traces_are_views_of_the_copy_unless_it_is_mostly_padding(tiny_translator):
    first, second, _ = (trace.cross.weights for trace in tiny_translator.trace_batch([SENTENCES[0]] * 3))
    assert second.ctypes.data - first.ctypes.data == first.nbytes
    weights = torch.full((3, 1, 1, 9, 9), 1 / 9)
    for lengths, is_view in (((9, 9, 1), True), ((9, 1, 1), False)):
        maps = BatchMaps({DECODER: weights})
        readers = [maps.reader(DECODER, row, length, length) for row, length in enumerate(lengths)]
        for read, length in zip(readers, lengths):
            array = read()
            assert array.shape == (1, 1, length, length)
            assert np.shares_memory(array, weights.numpy()) == is_view


def test_unread_maps_can_be_pickled_and_read_by_many_threads(tiny_translator):
    text = SENTENCES[0]
    expected = tiny_translator.trace_batch([text])[0].cross.weights
    (trace,) = tiny_translator.trace_batch([text])
    for copied in (pickle.loads(pickle.dumps(trace)), copy.deepcopy(trace)):
        assert np.array_equal(copied.cross.weights, expected)
    (trace,) = tiny_translator.trace_batch([text])
    with ThreadPoolExecutor(8) as pool:
        arrays = list(pool.map(lambda _: trace.cross.weights, range(64)))
    assert all(np.array_equal(array, expected) for array in arrays)
    with pytest.raises(AttributeError, match="heights"):
        _ = trace.cross.heights
