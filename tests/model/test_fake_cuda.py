"""Every pass, decoder and analysis on tensors that say cuda:0: nothing is left on the CPU, nothing meets across."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model import checkpoint
from model.analysis import ablation, architecture, dissection, loop, order, padding, stations
from model.analysis.formulas import projections, space
from model.analysis.lenses.decoder import decoder_lens
from model.checks.verify import verify
from model.trace.interventions import Interventions
from model.trace.kinds import TRANSFORMER_KINDS, AttentionKind, Side
from model.train import SummedLoss
from model.training.batches import Examples, make_batch
from model.translator import Translator
from tests.conftest import SENTENCES
from tests.fake_cuda import CUDA, FakeCuda, fake_cuda

TEXT = SENTENCES[0]


@pytest.fixture()
def device():
    with fake_cuda() as device:
        yield device


@pytest.fixture()
def translator(device, tiny_checkpoint) -> Translator:
    return Translator(checkpoint.load(tiny_checkpoint), device)


def test_it_refuses_what_a_gpu_refuses(device):
    here, there = torch.ones(3), torch.ones(3, device=device)
    assert there.device == CUDA and there.is_cuda and isinstance(there * 2, FakeCuda) and here.device.type == "cpu"
    with pytest.raises(RuntimeError, match="same device"):
        here + there
    with pytest.raises(RuntimeError, match="same device"):
        torch.cat([here, there])
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()
    assert (there + torch.tensor(1.0)).sum() == 6  # one number may lie elsewhere
    assert there.cpu().numpy().tolist() == here.to(device).cpu().tolist() == [1, 1, 1]
    assert there[torch.tensor([0, 2])].device == CUDA


def test_every_parameter_and_buffer_moves(translator):
    assert {t.device for t in (*translator.model.parameters(), *translator.model.buffers())} == {CUDA}


def test_translations_traces_and_maps_are_those_of_the_cpu(translator, tiny_translator):
    for text in SENTENCES[:4]:
        mine, theirs = translator.translate(text), tiny_translator.translate(text)  # a worker thread decodes
        assert mine.target_ids == theirs.target_ids and mine.device.startswith("cuda")
        for kind in TRANSFORMER_KINDS:
            np.testing.assert_allclose(mine.maps(kind).weights, theirs.maps(kind).weights, atol=1e-6)
    batch = translator.translate_batch(SENTENCES[:6], batch_size=4)
    assert batch == tiny_translator.translate_batch(SENTENCES[:6], batch_size=4)
    wide = translator.translate_batch(SENTENCES[:3], beam=3, length_penalty=1.0)
    assert wide == tiny_translator.translate_batch(SENTENCES[:3], beam=3, length_penalty=1.0)


@pytest.mark.parametrize(
    "interventions",
    [
        Interventions(heads_off=frozenset({(AttentionKind.CROSS, 1, 0)})),
        Interventions(heads_off=frozenset({(AttentionKind.ENCODER_SELF, 0, 2), (AttentionKind.DECODER_SELF, 2, 3)})),
    ],
)
def test_interventions(translator, interventions):
    trace = translator.translate(TEXT, interventions=interventions)
    assert trace.device.startswith("cuda")
    ablation.compare(translator, translator.translate(TEXT), interventions)


def test_every_analysis(translator):
    trace = translator.translate(TEXT)
    source, target = list(trace.source_ids), list(trace.target_ids)
    output = translator.inspect(source, target)
    for kind in TRANSFORMER_KINDS:
        dissection.dissect(output, kind, 0, 1, query=0)
        given = loop.attention_input(translator, output, kind, 0)
        loop.compare_ways(given, runs=1)
        projections.projections(translator, output, kind, 0)
        projections.join_heads(translator, output, kind, 0, query=0)
        projections.score_matrix(output, kind, 0, 1)
    loop.compare_ways(loop.random_attention(loop.Sizes(2, 3, 8, 2), translator.device), runs=1)
    space.analogies(translator)
    vector, ids = space.total(translator, ((1, translator.tokenizer.pieces[-1]),))
    space.nearest(translator, vector[None], [ids])
    decoder_lens(translator.model, output, target)
    order.order_blindness(translator, trace)
    padding.of_two(translator, trace, SENTENCES[2])
    translator.trace(TEXT, target=target)
    translator.trace(TEXT, prefix=target[:1])
    rows = stations.embedding_rows(translator, trace.source_ids, output, side="source")
    architecture.stack(Side.ENCODER, translator.config, output, rows, layer=0, best=trace.top_probabilities)
    stations.residual_norms(output.encoder_records)
    stations.active_units(output.decoder_records[0])
    stations.next_token(translator, output, 0)


def test_every_check_of_the_verify_tab(translator):
    results = verify(translator, translator.translate(TEXT))
    assert results and not [result for result in results if "device" in str(result)]


def test_loss_and_gradients(device, tiny_model, tokenizer):
    examples = Examples.encode([*zip(SENTENCES[:4:2], SENTENCES[1:4:2])], tokenizer, "en", max_length=64)
    batch = make_batch(examples, np.arange(2), tokenizer)
    from tests.conftest import build_tiny_model

    plain, moved = build_tiny_model(tokenizer), build_tiny_model(tokenizer).to(device)
    on_device = batch.to(device)
    SummedLoss(plain, 0.1)(batch.source, batch.inputs, batch.outputs).backward()
    SummedLoss(moved, 0.1)(on_device.source, on_device.inputs, on_device.outputs).backward()
    for a, b in zip(plain.parameters(), moved.parameters()):
        torch.testing.assert_close(b.grad.cpu(), a.grad, atol=1e-6, rtol=1e-5)
