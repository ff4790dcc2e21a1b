"""Every pass, decoder and analysis runs on tensors that claim to be on cuda:0 or mps:0.

No tensor stays on the CPU, no operation mixes devices, and none uses float64 on Apple's device, which lacks it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from attention_atlas.model import checkpoint
from attention_atlas.model.analysis import (
    ablation,
    circuits,
    head_loop,
    padding,
    stations,
    why,
)
from attention_atlas.model.analysis.circuits.pairs import Pair
from attention_atlas.model.analysis.formulas import space, stages
from attention_atlas.model.analysis.lenses.read import decoder_lens
from attention_atlas.model.analysis.steering import compute_steering_vector
from attention_atlas.model.analysis.why import case
from attention_atlas.model.analysis.why.experiments import cutting
from attention_atlas.model.analysis.why.questions import make_question
from attention_atlas.model.checks.verify import verify
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS, AttentionKind
from attention_atlas.model.train import SummedLoss
from attention_atlas.model.training.batches import Batch, Examples, make_batch
from attention_atlas.model.training.packing import PackedPairs, PackedShape, pack
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES, TINY_LIMITS, build_tiny_model
from tests.fake_device import FAKES, Fake, fake_device

TEXT = "Der Hund schläft."


@pytest.fixture(params=FAKES)
def device(request):
    with fake_device(request.param) as device:
        yield device


@pytest.fixture()
def translator(device, tiny_checkpoint) -> Translator:
    return Translator(checkpoint.load(tiny_checkpoint), device, limits=TINY_LIMITS)


def test_the_fake_device_refuses_what_a_gpu_refuses(device):
    here, there = torch.ones(3), torch.ones(3, device=device)
    assert there.device == device and there.is_cuda != there.is_mps and isinstance(there * 2, Fake)
    assert here.device.type == "cpu"
    with pytest.raises(RuntimeError, match="same device"):
        here + there
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([here, there])
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()
    assert (there + torch.tensor(1.0)).sum() == 6  # one number may lie elsewhere
    assert there.cpu().numpy().tolist() == here.to(device).cpu().tolist() == [1, 1, 1]
    assert there[torch.tensor([0, 2])].device == device
    if device.type == "mps":
        for wide in (there.double, lambda: torch.ones(3, dtype=torch.float64).to(device)):
            with pytest.raises(TypeError, match="float64"):
                wide()


def test_every_parameter_and_buffer_moves(translator):
    assert {t.device for t in (*translator.model.parameters(), *translator.model.buffers())} == {translator.device}


def test_translations_traces_and_maps_agree_with_the_cpu(translator, tiny_translator):
    for text in SENTENCES[:4]:
        mine, theirs = translator.translate(text), tiny_translator.translate(text)  # a worker thread decodes
        assert mine.target_ids == theirs.target_ids and mine.device == str(translator.device)
        for kind in TRANSFORMER_KINDS:
            np.testing.assert_allclose(mine.maps(kind).weights, theirs.maps(kind).weights, atol=1e-6)
    batch = translator.translate_batch(SENTENCES[:6], batch_size=4)
    assert batch == tiny_translator.translate_batch(SENTENCES[:6], batch_size=4)
    wide = translator.translate_batch(SENTENCES[:3], beam=3, length_penalty=1.0)
    assert wide == tiny_translator.translate_batch(SENTENCES[:3], beam=3, length_penalty=1.0)


@torch.inference_mode()
def test_passes_without_maps_use_the_fused_kernel_and_agree_with_recorded_ones(translator, monkeypatch):
    model, calls, fused = translator.model, [], F.scaled_dot_product_attention

    def counted(queries, *args, **kwargs):
        calls.append(queries.shape[2])
        return fused(queries, *args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    source = translator.pad([[4, 20, 31, 45, 2], [4, 33, 2]])
    target = torch.tensor([[1, 20, 9, 8], [1, 31, 7, 6]], device=translator.device)
    recorded = model(source, target, record=True)
    assert not calls
    plain = model(source, target)
    assert len(calls) == model.config.num_encoder_layers + 2 * model.config.num_decoder_layers
    torch.testing.assert_close(plain.memory, recorded.memory, atol=1e-5, rtol=0)
    torch.testing.assert_close(plain.hidden, recorded.hidden, atol=1e-5, rtol=0)
    prefilled, _ = model.decode(target, model.encode(source), cache=model.new_cache())
    torch.testing.assert_close(prefilled, recorded.hidden, atol=1e-5, rtol=0)


def test_interventions(translator):
    interventions = Interventions(heads_off={("cross", 1, 0), ("encoder_self", 0, 2), ("decoder_self", 2, 3)})
    trace = translator.translate(TEXT, interventions=interventions)
    assert trace.device == str(translator.device)
    ablation.compare(translator, translator.translate(TEXT), interventions)


def test_every_analysis(translator):
    trace = translator.translate(TEXT)
    source, target = list(trace.source_ids), list(trace.target_ids)
    output = translator.inspect(source, target)
    for kind in TRANSFORMER_KINDS:
        stages.dissect(output, kind, 0, 1, query=0)
        inputs = head_loop.find_attention_input(translator, output, kind, 0)
        head_loop.compare_loop(inputs, runs=1)
        stages.projections(translator, output, kind, 0)
        stages.join_heads(translator, output, kind, 0, query=0)
        stages.score_matrix(output, kind, 0, 1)
    head_loop.compare_loop(head_loop.make_random_attention(2, 3, 8, 2, translator.device), runs=1)
    space.analogies(translator)
    vector, ids = space.sum_words(translator, ((1, translator.tokenizer.pieces[-1]),))
    space.cosines(translator, vector[None], ids)
    decoder_lens(translator.model, output, target)
    ablation.measure_order_blindness(translator, trace)
    padding.make_batch_masks(translator, trace, SENTENCES[2])
    translator.trace(TEXT, target=target)
    translator.trace(TEXT, prefix=target[:1])
    stations.embedding_rows(translator, trace.source_ids, output, side="source")
    stations.residual_norms(output.encoder_records)
    stations.next_token(translator, output, 0)


def test_attributions_agree_with_the_cpu(translator, tiny_translator):
    """Also sums in float64, which Apple's device leaves to the CPU."""
    tables = []
    for used in (translator, tiny_translator):
        trace = used.translate(TEXT)
        question = {"step": 1, "contrast": trace.top_ids[1][1]}
        pair = Pair(trace.source_ids, trace.source_ids[::-1], trace.decoder_ids[:2], 5, 9)
        tables.append(
            [
                why.attribute(used, trace, **question),
                why.split_logit(used, trace, **question),
                why.measure_heads(used, trace, **question),
                why.patch(used, trace, SENTENCES[2], **question),
                why.find_smallest_set(used, trace),
                circuits.find_circuit(used, [pair]),
            ]
        )
        opened = case.open_case(used, trace, make_question(used, trace, 1))
        cutting.measure_edges(opened, AttentionKind.CROSS, 1, 2)
        case.compare_outputs(opened, used.model.decoder.norm.weight.detach()[None])
        compute_steering_vector(used, SENTENCES[0], SENTENCES[2], place="encoder.final")
    for mine, theirs in zip(*tables):
        pd.testing.assert_frame_equal(mine.to_frame(), theirs.to_frame(), atol=1e-4, rtol=1e-3)


def test_every_check_of_the_verify_tab(translator):
    results = verify(translator, translator.translate(TEXT))
    assert results and not [result for result in results if "device" in str(result)]


@pytest.fixture(params=["padded", "packed"])
def batch(request, tokenizer) -> Batch:
    examples = Examples.encode([*zip(SENTENCES[:4:2], SENTENCES[1:4:2])], tokenizer, "en", max_length=64)
    if request.param == "padded":
        return make_batch(examples, np.arange(2), tokenizer)
    return pack(examples, PackedPairs(np.arange(2), np.array([2])), PackedShape(2, 128, 128), tokenizer)


def test_loss_and_gradients(device, tokenizer, batch):
    plain, moved = build_tiny_model(tokenizer), build_tiny_model(tokenizer).to(device)
    on_device = batch.to(device)
    SummedLoss(plain, 0.1)(batch.source, batch.inputs, batch.outputs, batch.packing).backward()
    SummedLoss(moved, 0.1)(on_device.source, on_device.inputs, on_device.outputs, on_device.packing).backward()
    for a, b in zip(plain.parameters(), moved.parameters()):
        torch.testing.assert_close(b.grad.cpu(), a.grad, atol=1e-5, rtol=1e-5)  # there, attention is torch's kernel


class Waits(TorchFunctionMode):
    """The calls for which the host waits for the device."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        indices = args[1] if func is torch.Tensor.__getitem__ else None
        by_mask = isinstance(indices, torch.Tensor) and indices.dtype == torch.bool
        if by_mask or func.__name__ in ("__bool__", "__int__", "__float__", "item", "nonzero", "tolist", "cpu"):
            self.calls.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_an_update_can_be_queued_before_the_last_one_has_finished(device, tokenizer, batch):
    batch = batch.to(device)
    loss = SummedLoss(build_tiny_model(tokenizer).to(device).train(), 0.1)
    with Waits() as waits:
        summed = loss(batch.source, batch.inputs, batch.outputs, batch.packing)
        summed.backward()
    assert not waits.calls
    with Waits() as waits:
        assert summed.item() > 0 and bool(summed > 0)
    assert waits.calls == ["item", "__bool__"]
