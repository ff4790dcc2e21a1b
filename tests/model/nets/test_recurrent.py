"""The recurrent network equals torch.nn.GRU and a plain loop, and checkpoints, translators and checks accept it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch

from attention_atlas.model import align, checkpoint, faithfulness, means, survey
from attention_atlas.model.checks import verify
from attention_atlas.model.checks.oracle import torch_unit
from attention_atlas.model.decode.steps import StepDecoder
from attention_atlas.model.nets import networks
from attention_atlas.model.nets.masks import pad
from attention_atlas.model.nets.recurrent import AdditiveAttention, GatedUnit, Recurrent, RecurrentConfig
from attention_atlas.model.trace import storage
from attention_atlas.model.trace.interventions import positions_off
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES, refused

SOURCE, TARGET = pad([[4, 20, 31, 45, 20, 61, 2], [5, 21, 60, 2]], 0), torch.tensor([[1, 30, 41, 52], [1, 33, 44, 12]])


@pytest.fixture(params=[True, False], ids=["attention", "one vector"])
def model(request) -> Recurrent:
    torch.manual_seed(3)
    built = Recurrent(RecurrentConfig(70, d_model=12, attention=request.param))
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return built.eval()


def test_a_gated_unit_equals_torchs_gru():
    torch.manual_seed(1)
    unit, rows, state = GatedUnit(5, 7), torch.randn(3, 6, 5), torch.randn(3, 7)
    with torch.no_grad():
        unit.read.bias.normal_(), unit.recall.bias.normal_()
    expected, _ = torch_unit(unit)(rows, state[None])
    for at in range(6):
        gates = unit(unit.read(rows[:, at]), state)
        torch.testing.assert_close(gates.after, expected[:, at], atol=1e-5, rtol=0)
        assert gates.before is state
        blended = (1 - gates.update) * gates.new + gates.update * state
        torch.testing.assert_close(gates.after, blended, atol=1e-6, rtol=0)
        state = gates.after


def cell_of(unit: GatedUnit) -> torch.nn.GRUCell:
    cell = torch.nn.GRUCell(unit.read.in_features, unit.recall.in_features)
    cell.load_state_dict(
        {
            f"{part}_{name}": tensor
            for name, linear in (("ih", unit.read), ("hh", unit.recall))
            for part, tensor in linear.state_dict().items()
        }
    )
    return cell


@torch.no_grad()
def test_recorded_gates_are_those_of_torchs_cell(model):
    """With one gate's bias at +-40 that gate is 1 or 0, and torch's cell then shows what the other parts are."""
    output, plain = model(SOURCE, TARGET, record=True), model(SOURCE, TARGET)
    torch.testing.assert_close(output.hidden, plain.hidden)
    assert not plain.encoder_records
    lengths = (SOURCE != 0).sum(-1)
    decoder_rows = model.token_rows(TARGET)
    if model.attention is not None:
        record = output.attention(AttentionKind.ALIGNMENT, 0)
        decoder_rows = torch.cat((decoder_rows, (record.weights @ record.values)[:, 0]), dim=-1)
    ahead, back = output.encoder_records[0].units
    (writer,) = output.decoder_records[0].units
    source_rows = model.token_rows(SOURCE)
    for unit, gates, rows, real in (
        (model.forwards, ahead, source_rows, lengths),
        (model.backwards, back, source_rows, lengths),
        (model.writer, writer, decoder_rows, torch.tensor([4, 4])),
    ):
        cell, width = cell_of(unit), unit.recall.in_features
        for row in range(len(rows)):
            x, before = rows[row, : real[row]], gates.before[row, : real[row]]
            at = slice(None, real[row])
            torch.testing.assert_close(cell(x, before), gates.after[row, at], atol=1e-5, rtol=0)
            shut = cell_of(unit)
            shut.bias_ih[width : 2 * width] = -40.0  # z = 0: the state is the candidate
            torch.testing.assert_close(shut(x, before), gates.new[row, at], atol=1e-5, rtol=0)
            update = (gates.after[row, at] - shut(x, before)) / (before - shut(x, before))
            torch.testing.assert_close(gates.update[row, at], update, atol=1e-3, rtol=0)
            # The reset gate: the candidate's pre-activation without (r = 0) and with the whole state (r = 1).
            ends = []
            for bias in (-40.0, 40.0):
                shut.bias_ih[:width] = bias
                ends.append(shut(x, before).atanh())
            reset = (gates.new[row, at].atanh() - ends[0]) / (ends[1] - ends[0])
            torch.testing.assert_close(gates.reset[row, at], reset, atol=1e-2, rtol=0)
    # The states follow one another, from the left, from the right and in the decoder.
    assert torch.equal(ahead.before[:, 1:], ahead.after[:, :-1]) and torch.equal(back.before[:, :-1], back.after[:, 1:])
    assert torch.equal(writer.before[:, 1:], writer.after[:, :-1])
    torch.testing.assert_close(writer.before[:, 0], model.encode(SOURCE).start)


def test_additive_attention_equals_its_formula():
    torch.manual_seed(2)
    module, query, keys = AdditiveAttention(4, 6, 5), torch.randn(2, 4), torch.randn(2, 3, 6)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    weights = module(module.of_query(query), module.of_key(keys), mask)
    w, u, b, v = module.of_query.weight, module.of_key.weight, module.of_key.bias, module.score.weight[0]
    scores = (torch.tanh((query @ w.T)[:, None] + keys @ u.T + b) @ v).exp() * mask
    torch.testing.assert_close(weights, scores / scores.sum(-1, keepdim=True), atol=1e-6, rtol=0)
    assert weights[1, 2] == 0


def test_the_encoder_equals_torchs_bidirectional_gru_with_any_padding(model):
    memory = model.encode(SOURCE).memory
    for row, length in ((0, 7), (1, 4)):
        rows = model.token_rows(SOURCE[row : row + 1, :length])
        ahead, _ = torch_unit(model.forwards)(rows)
        back, _ = torch_unit(model.backwards)(rows.flip(1))
        torch.testing.assert_close(memory[row, :length], torch.cat((ahead, back.flip(1)), -1)[0], atol=1e-5, rtol=0)
    alone = model(SOURCE[1:, :4], TARGET[1:])
    torch.testing.assert_close(alone.logits[0], model(SOURCE, TARGET).logits[1], atol=1e-5, rtol=0)


def test_decoding_steps_equal_the_full_pass(model):
    whole = model(SOURCE, TARGET, record=True)
    decoder = StepDecoder(model, model.encode(SOURCE), TARGET[:, :2], record=True)
    for step in (2, 3):
        decoder.append(TARGET[:, step])
        torch.testing.assert_close(decoder.logits, whole.logits[:, step], atol=1e-5, rtol=0)
    decoder.reorder(torch.tensor([1, 1]))
    assert torch.equal(decoder.prefix, TARGET[[1, 1], :4])
    assert whole.kinds == ((AttentionKind.ALIGNMENT,) if model.config.attention else ())


def test_every_parameter_has_a_gradient(model):
    model.train()
    model(SOURCE, TARGET).logits.square().mean().backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]


@pytest.fixture(scope="module")
def translator(recurrent_checkpoint) -> Translator:
    return Translator.load(recurrent_checkpoint, device="cpu")  # its own: a test changes a weight


def test_translations_have_the_alignment_of_a_recorded_pass(translator):
    alone = [translator.translate(text) for text in SENTENCES[:3]]
    for trace in alone:
        assert trace.kinds == (AttentionKind.ALIGNMENT,) and trace.encoder_self is None
        assert trace.alignment.weights.shape == (1, 1, len(trace.target_ids), len(trace.source_ids))
        output = translator.inspect(trace)
        assert output.kinds == trace.kinds
        alignment = output.weights(AttentionKind.ALIGNMENT)[:, 0].numpy()
        np.testing.assert_allclose(alignment, trace.alignment.weights, atol=1e-6)
        assert output.logits[0].argmax(-1).tolist() == list(trace.target_ids)
    for single, together in zip(alone, translator.trace_batch(SENTENCES[:3])):
        assert single.target_ids == together.target_ids
    assert translator.beam([alone[0].source_ids], width=2)[0].hypotheses
    with pytest.raises(ValueError, match="has no encoder_self attention"):
        alone[0].maps(AttentionKind.ENCODER_SELF)


def test_every_check_passes_and_finds_a_changed_weight(translator):
    trace = translator.translate(SENTENCES[0])
    assert storage.from_npz(storage.to_npz(trace)).kinds == trace.kinds
    assert storage.from_json(storage.to_json(trace)).alignment.weights.tobytes() == trace.alignment.weights.tobytes()
    results = list(verify.verify(translator, trace))
    assert len(results) == 9 and not [result for result in results if not result.passed]
    translator.model.writer.recall.bias.data[:16] += 0.5  # the reset gate's: the trace is no longer the model's
    try:
        failed = {result.name for result in verify.verify(translator, trace) if not result.passed}
        assert "Maps match the model" in failed and "Decoder outputs = torch's" not in failed
    finally:
        translator.model.writer.recall.bias.data[:16] -= 0.5


def test_questions_about_heads_are_refused(translator):
    with pytest.raises(ValueError, match="recurrent network has no heads"):
        translator.translate(SENTENCES[0], interventions=positions_off())
    for program, more in ((means, ()), (survey, ()), (faithfulness, ()), (align, ("a.de", "a.en"))):
        with pytest.raises(ValueError, match="not a Transformer"):
            program.main(["--checkpoint", str(translator.folder), *more])
    with pytest.raises(ValueError, match="d_model must be even"):
        RecurrentConfig(10, d_model=7)
    with pytest.raises(ValueError, match="attention must be true or false"):
        RecurrentConfig(10, attention=1)


def test_unknown_networks_and_configs_are_refused(recurrent_checkpoint, tmp_path, monkeypatch, tokenizer):
    folder = shutil.copytree(recurrent_checkpoint, tmp_path / "copy")
    config = json.loads((folder / checkpoint.CONFIG).read_text())
    assert config["network"] == "gru" and type(checkpoint.load(folder).model) is Recurrent
    for change, *words in (
        ({"network": "convolutional"}, "config.json: there is no network 'convolutional': ", "'gru'"),
        ({"model": {"vocabulary_size": 5, "d_model": 0}}, "d_model must be"),
    ):
        (folder / checkpoint.CONFIG).write_text(json.dumps(config | change))
        refused(folder, *words)
    model = checkpoint.load(recurrent_checkpoint).model
    monkeypatch.delitem(networks.NETWORKS, "gru")
    with pytest.raises(ValueError, match="Recurrent is not among the networks 'transformer'"):
        checkpoint.save(tmp_path / "unknown", model, tokenizer, ("de-en",))
