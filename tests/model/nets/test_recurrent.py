"""The recurrent network against torch.nn.GRU, additive attention against a plain loop, and its way through the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attention_atlas.model import align, faithfulness, means, survey
from attention_atlas.model.checks import verify
from attention_atlas.model.checks.oracle import torch_unit
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.recurrent import AdditiveAttention, GatedUnit, Recurrent, RecurrentConfig
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.interventions import positions_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES

SOURCE, TARGET = pad([[4, 20, 31, 45, 20, 61, 2], [5, 21, 60, 2]], 0), torch.tensor([[1, 30, 41, 52], [1, 33, 44, 12]])


@pytest.fixture(params=[True, False], ids=["attention", "one vector"])
def model(request) -> Recurrent:
    torch.manual_seed(3)
    built = Recurrent(RecurrentConfig(70, d_model=12, attention=request.param))
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return built.eval()


def test_a_gated_unit_is_torchs():
    torch.manual_seed(1)
    unit, rows, state = GatedUnit(5, 7), torch.randn(3, 6, 5), torch.randn(3, 7)
    with torch.no_grad():
        unit.read.bias.normal_(), unit.recall.bias.normal_()
    expected, _ = torch_unit(unit)(rows, state[None])
    for at in range(6):
        state = unit(unit.read(rows[:, at]), state)
        torch.testing.assert_close(state, expected[:, at], atol=1e-5, rtol=0)


def test_additive_attention_is_its_formula_in_a_loop():
    torch.manual_seed(2)
    module, query, keys = AdditiveAttention(4, 6, 5), torch.randn(2, 4), torch.randn(2, 3, 6)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    weights = module(module.of_query(query), module.of_key(keys), mask)
    w, u, b, v = (
        p.detach().double().numpy()
        for p in (module.of_query.weight, module.of_key.weight, module.of_key.bias, module.score.weight[0])
    )
    for row in range(2):
        scores = [
            math.exp(float(v @ np.tanh(w @ query[row].double().numpy() + u @ keys[row, k].double().numpy() + b)))
            if mask[row, k]
            else 0.0
            for k in range(3)
        ]
        np.testing.assert_allclose(weights[row].detach().numpy(), np.array(scores) / sum(scores), atol=1e-6)
    assert weights[1, 2] == 0


def test_the_encoder_reads_as_torchs_bidirectional_unit_does_whatever_the_padding(model):
    memory = model.encode(SOURCE).memory
    for row, length in ((0, 7), (1, 4)):
        rows = model.token_rows(SOURCE[row : row + 1, :length])
        ahead, _ = torch_unit(model.forwards)(rows)
        back, _ = torch_unit(model.backwards)(rows.flip(1))
        torch.testing.assert_close(memory[row, :length], torch.cat((ahead, back.flip(1)), -1)[0], atol=1e-5, rtol=0)
    alone = model(SOURCE[1:, :4], TARGET[1:])
    torch.testing.assert_close(alone.logits[0], model(SOURCE, TARGET).logits[1], atol=1e-5, rtol=0)


def test_step_by_step_is_the_whole_pass_and_can_go_back(model):
    whole = model(SOURCE, TARGET, record=True)
    decoder = StepDecoder(model, model.encode(SOURCE), TARGET[:, :2], record=True)
    for step in (2, 3):
        decoder.append(TARGET[:, step])
        torch.testing.assert_close(decoder.logits, whole.logits[:, step], atol=1e-5, rtol=0)
    decoder.rewind(3)
    torch.testing.assert_close(decoder.logits, whole.logits[:, 2], atol=1e-5, rtol=0)
    decoder.reorder(torch.tensor([1, 1]))
    assert torch.equal(decoder.prefix, TARGET[[1, 1], :3])
    assert whole.kinds == ((AttentionKind.ALIGNMENT,) if model.config.attention else ())


def test_every_parameter_learns(model):
    model.train()
    model(SOURCE, TARGET).logits.square().mean().backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]


@pytest.fixture(scope="module")
def translator(recurrent_checkpoint) -> Translator:
    return Translator.load(recurrent_checkpoint, device="cpu")  # its own: a test changes a weight


def test_its_traces_hold_one_kind_of_map_and_every_check_of_it_passes(translator):
    trace = translator.translate(SENTENCES[0])
    assert trace.kinds == (AttentionKind.ALIGNMENT,)
    assert trace.alignment.weights.shape == (1, 1, len(trace.target_ids), len(trace.source_ids))
    assert storage.from_npz(storage.to_npz(trace)).kinds == trace.kinds
    assert storage.from_json(storage.to_json(trace)).alignment.weights.tobytes() == trace.alignment.weights.tobytes()
    results = list(verify.verify(translator, trace))
    assert len(results) == 9 and not [result for result in results if not result.passed]
    translator.model.writer.recall.bias.data[:16] += 0.5  # of the reset gate: the trace is no longer the model's
    try:
        failed = {result.name for result in verify.verify(translator, trace) if not result.passed}
        assert "Maps are the model's" in failed and "Decoder outputs = torch's" not in failed
    finally:
        translator.model.writer.recall.bias.data[:16] -= 0.5


def test_what_it_cannot_be_asked_is_refused_in_words(translator):
    with pytest.raises(ValueError, match="recurrent network has no heads"):
        translator.translate(SENTENCES[0], interventions=positions_off())
    for program, more in ((means, ()), (survey, ()), (faithfulness, ()), (align, ("a.de", "a.en"))):
        with pytest.raises(ValueError, match="not a Transformer"):
            program.main(["--checkpoint", str(translator.folder), *more])
    with pytest.raises(ValueError, match="d_model must be even"):
        RecurrentConfig(10, d_model=7)
    with pytest.raises(ValueError, match="attention must be true or false"):
        RecurrentConfig(10, attention=1)
