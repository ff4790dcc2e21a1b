"""Decoding over tensors at fixed addresses, with run() itself in place of a CUDA graph, equals plain decoding."""

from __future__ import annotations

import pytest
import torch

from attention_atlas.model import checkpoint
from attention_atlas.model.decode import static
from attention_atlas.model.decode.recorded import greedy_with_records
from attention_atlas.model.decode.steps import greedy
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES, build_tiny_model
from tests.fake_device import fake_device
from tests.model.decode.sweeps import BEGIN, SOURCES, same_maps

NO_END = -1


@pytest.fixture()
def repeats(monkeypatch) -> list[int]:
    """The sizes of the batches of the steps that are repeated by graphs."""
    sizes: list[int] = []

    def capture(run, device):
        def repeat():
            sizes.append(len(run.__self__.ids))
            run()

        run()  # as when a graph is captured, which leaves its traces in the tensors
        return repeat

    monkeypatch.setattr(static, "can_capture", lambda device: True)
    monkeypatch.setattr(static, "capture", capture)
    return sizes


def decode(model, limits=(6, 2, 9), end_id=NO_END, **options):
    return greedy(model, model.encode(pad(SOURCES, 0)), list(limits), begin_id=BEGIN, end_id=end_id, **options)


@pytest.mark.parametrize("family", [{}, {"norm_first": False}, {"position_code": "learned"}, {"banned_ids": (0, 7)}])
@torch.inference_mode()
def test_ids_maps_and_distributions_are_those_of_plain_decoding(tokenizer, repeats, monkeypatch, family):
    model, ends = build_tiny_model(tokenizer, **family), {"begin_id": BEGIN, "end_id": NO_END}
    memory = model.encode(pad(SOURCES, 0), record=True)
    targets, recorded = greedy_with_records(model, memory, [6, 2, 9], **ends)
    assert repeats == [4] * 9  # three sentences are rounded up to four
    monkeypatch.undo()
    expected, plain = greedy_with_records(model, memory, [6, 2, 9], **ends)
    assert targets == expected
    whole = model.read(memory, pad([[BEGIN, *ids[:-1]] for ids in targets], 0), record=True)
    for row, (ids, ours, theirs) in enumerate(zip(targets, recorded.distributions, plain.distributions)):
        same_maps(recorded.output, whole, len(ids), row)
        for column, other in zip(ours.columns, theirs.columns):
            torch.testing.assert_close(column, other, atol=1e-4, rtol=0)


def test_a_graph_serves_later_batches_and_is_captured_again_for_other_weights(tokenizer, repeats, monkeypatch):
    model = build_tiny_model(tokenizer)
    first = decode(model)
    (before,) = static._pools[model]._decoders.values()
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.expand.weight.mul_(-3)
    in_place = decode(model)
    assert list(static._pools[model]._decoders.values()) == [before]
    model.decoder.layers[1].feed_forward.contract = torch.nn.Linear(
        *model.decoder.layers[1].feed_forward.contract.weight.T.shape
    )
    replaced = decode(model)
    assert len(static._pools[model]._decoders) == 2
    monkeypatch.undo()
    assert decode(model) == replaced and in_place != first


def test_it_stops_soon_after_all_sentences_have_ended(tokenizer, repeats):
    model = build_tiny_model(tokenizer)
    end_id = decode(model, (40, 40, 40))[0][2]
    repeats.clear()
    results = decode(model, (40, 3, 3), end_id)
    assert results[0][-1] == end_id and len(results[0]) <= 3 and len(repeats) <= static.CHECK_EVERY


def test_what_a_graph_cannot_do_is_decoded_without(tokenizer, repeats):
    model = build_tiny_model(tokenizer)
    decode(model, interventions=Interventions(heads_off={(AttentionKind.CROSS, 0, 1)}))
    decode(model, prefix=[9, 8])
    decode(build_tiny_model(tokenizer, position_code="relative", scale_scores=False))
    hook = model.decoder.layers[0].feed_forward.register_forward_hook(lambda *_: None)
    decode(model)
    assert not repeats
    hook.remove()
    decode(model)
    assert repeats


def test_a_device_that_cannot_capture_decodes_without(tokenizer, repeats, monkeypatch):
    model, calls = build_tiny_model(tokenizer), []

    def fail(run, device):
        calls.append(run)
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(static, "capture", fail)
    assert decode(model) == decode(model) and len(calls) == 1
    monkeypatch.undo()
    assert decode(model) == decode(build_tiny_model(tokenizer))


def test_all_tensors_are_on_the_device(tiny_checkpoint, tiny_translator, repeats):
    with fake_device() as device:
        translator = Translator(checkpoint.load(tiny_checkpoint), device, limits=tiny_translator.limits)
        traces = translator.trace_batch(SENTENCES[:3])
        assert repeats
        assert [trace.target_ids for trace in traces] == [
            trace.target_ids for trace in tiny_translator.trace_batch(SENTENCES[:3])
        ]
