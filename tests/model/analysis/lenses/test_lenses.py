"""Lenses against differences, against what they must be at their ends, and their file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.lenses import fitted, tuned
from attention_atlas.model.analysis.lenses.decoder import decoder_lens, streams_of
from attention_atlas.model.analysis.lenses.encoder import best, encoder_lens, layer_translations
from attention_atlas.model.analysis.lenses.fit import Fitting, fit
from attention_atlas.model.analysis.lenses.fitted import Lens
from attention_atlas.model.analysis.lenses.jacobian import Jacobians
from attention_atlas.model.lenses import main
from attention_atlas.model.trace.edits import Add
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator

TEXTS = ("Der kleine Hund schläft unter dem Tisch.", "Zwei Kinder bauen eine Burg.", "Ich trinke Tee.", "Hund")


@pytest.fixture(scope="module")
def lenses(tiny_translator):
    return fit(tiny_translator, {"de-en": TEXTS}, slopes=2)


@pytest.fixture(scope="module")
def recorded(tiny_translator):
    """One sentence's ids, its translation's, and their recorded pass."""
    source = tiny_translator.encode(TEXTS[0], "de-en")
    (target,) = tiny_translator.generate([source], "de-en")
    return source, target, tiny_translator.inspect(source, target)


@pytest.mark.parametrize("name", ["encoder.0.resid_pre", "encoder.1.resid_post", "decoder.1.resid_post"])
def test_a_jacobian_is_the_slope_of_all_that_follows(tiny_translator, name):
    """Against differences: the stream of one position is moved a little, and the last streams' sum is read again. Over
    two sentences of unlike length, so that padding counts, and through attention, so that other rows do."""
    texts, targets, side = TEXTS[1:3], ("Two children are building a castle.", "Tea."), Side(name.split(".")[0])
    jacobians = Jacobians(tiny_translator.config)
    last = jacobians.names[-1]
    jacobians.add(tiny_translator.run(texts, targets, names=jacobians.names, direction="de-en", grad=True))
    found = jacobians.means(side)[jacobians.sides[side].index(name)]
    direction = torch.linspace(-1, 1, tiny_translator.config.d_model)
    total, positions, step = 0.0, 0, 1e-3
    for text, target in zip(texts, targets):
        one = tiny_translator.run([text], [target], names=[last], direction="de-en")
        length = (one.source_mask if side is Side.ENCODER else one.mask).sum()
        for position in range(length):
            ends = []
            for sign in (1, -1):
                moved = tiny_translator.edit(
                    {name: Add(direction.tolist(), strength=sign * step, positions=(position,))}
                )
                run = moved.run([text], [target], names=[last], direction="de-en")
                ends.append(run[last].sum((0, 1)).double())
            total, positions = total + (ends[0] - ends[1]) / (2 * step), positions + 1
    expected = total / positions
    torch.testing.assert_close((found @ direction).double(), expected, atol=5e-3 * float(expected.abs().max()), rtol=0)


def test_fitting_goes_on_where_it_was_stopped(tiny_translator, lenses, tmp_path, monkeypatch):
    """The same lenses, whether at once or after a kill in the middle, by a process that has only the files."""
    parts = Fitting(tiny_translator, {"de-en": TEXTS}, 2, folder=tmp_path).parts()
    of = 2 + tiny_translator.config.num_decoder_layers
    while (progress := next(parts)) != (1, of):
        assert progress == (0, of)
    monkeypatch.setattr(Jacobians, "adding", None)  # what is done is not done again
    again = fit(tiny_translator, {"de-en": TEXTS}, slopes=2, folder=tmp_path)
    for name, tensor in fitted.tensors(lenses).items():
        torch.testing.assert_close(fitted.tensors(again)[name], tensor, atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="no sentences"):
        Fitting(tiny_translator, {"de-en": [" "]})


def test_with_j_of_one_it_is_the_logit_lens(tiny_translator, lenses, recorded):
    _, target, output = recorded
    ones = torch.eye(tiny_translator.config.d_model).expand_as(lenses.decoder).clone()
    plain = decoder_lens(tiny_translator.model, output, target)
    through = decoder_lens(
        tiny_translator.model, output, target, replace(lenses, decoder=ones).of_decoder(Lens.JACOBIAN)
    )
    np.testing.assert_array_equal(plain.top_ids, through.top_ids)
    np.testing.assert_allclose(plain.divergences, through.divergences, atol=1e-5)


@pytest.mark.parametrize("lens", list(Lens))
def test_every_lens_ends_in_what_the_model_says(tiny_translator, lenses, recorded, lens):
    _, target, output = recorded
    found = decoder_lens(tiny_translator.model, output, target, lenses.of_decoder(lens))
    own = output.logits[0].softmax(-1)
    np.testing.assert_array_equal(found.top_ids[-1], own.argmax(-1))
    np.testing.assert_allclose(found.chosen_probabilities[-1], own[torch.arange(len(target)), target], atol=1e-6)
    np.testing.assert_allclose(found.divergences[-1], 0, atol=1e-6)
    with torch.inference_mode():  # against torch's own divergence, at the decoder's input
        first = tiny_translator.model.decoder.norm(lenses.of_decoder(lens)(streams_of(output, Side.DECODER)[:, 0]))[0]
        said = tiny_translator.model.project(first).log_softmax(-1)
        expected = torch.nn.functional.kl_div(said, own.log(), log_target=True, reduction="none").sum(-1)
    np.testing.assert_allclose(found.divergences[0], expected, rtol=1e-4, atol=1e-6)


def test_the_encoders_words_are_those_its_slope_points_to(tiny_translator, lenses, recorded):
    *_, output = recorded
    found = encoder_lens(tiny_translator.model, output, lenses)
    streams = streams_of(output, Side.ENCODER)[:, 0]
    assert found.ids.shape == found.shares.shape == (*streams.shape[:2], 10)
    with torch.inference_mode():
        for layer, position in ((0, 1), (2, 3)):
            pointed = lenses.encoder[layer] @ streams[layer, position]
            shares = tiny_translator.model.project(tiny_translator.model.decoder.norm(pointed)).softmax(-1)
            assert shares.topk(10).indices.tolist() == found.ids[layer, position].tolist()
            np.testing.assert_allclose(found.shares[layer, position], shares.topk(10).values, rtol=1e-4)


def test_the_last_layers_translation_is_the_translation(tiny_translator, recorded):
    source, target, output = recorded
    found = layer_translations(tiny_translator, source, "de-en")
    assert len(found) == 3 and found[-1] == target
    memory = tiny_translator.model.encoder.norm(streams_of(output, Side.ENCODER)[1])  # after layer 1
    with tiny_translator.edit({"encoder.final": lambda x, at: memory}) as changed:
        assert changed.generate([source], "de-en")[0] == found[1]


def test_another_network_is_refused_in_words(recurrent_checkpoint):
    other = Translator.load(recurrent_checkpoint, "cpu")
    with pytest.raises(Refusal, match="not a Transformer"):
        layer_translations(other, other.encode("Hund"))


def test_a_tuned_lens_finds_a_planted_map_and_keeps_what_it_cannot_better():
    chance = torch.Generator().manual_seed(3)
    last = torch.randn(800, 12, generator=chance)
    matrix, words = torch.randn(12, 12, generator=chance), torch.randn(30, 12, generator=chance)
    stream = last @ torch.linalg.inv(matrix).T - 0.5
    weight, bias = tuned.fit(lambda rows: rows @ words.T, torch.stack([stream, last, last]))
    read = stream + stream @ weight[0].T + bias[0]
    assert (read @ words.T).softmax(-1).sub((last @ words.T).softmax(-1)).abs().max() < 0.05
    assert max(weight[1].abs().max(), bias[1].abs().max()) < 1e-4  # the logit lens is right already


def test_a_file_is_of_its_weights_and_whole(tiny_translator, lenses, tmp_path):
    path, config, digest = tmp_path / fitted.FILE, tiny_translator.config, tiny_translator.digest
    fitted.save(path, lenses)
    found = fitted.load(path, config, digest)
    assert found.sentences == len(TEXTS)
    torch.testing.assert_close(found.encoder, lenses.encoder, atol=2e-3, rtol=2e-3)
    with pytest.raises(ValueError, match="other weights"):
        fitted.load(path, config, "0" * 16)
    with pytest.raises(ValueError, match="encoder must be"):
        fitted.load(path, replace(config, num_encoder_layers=3), digest)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match="not a file of lenses"):
        fitted.load(path, config, digest)


@pytest.mark.long
def test_the_program_writes_them_and_refuses_to_write_over(tiny_checkpoint, tmp_path, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(TEXTS), encoding="utf-8")
    out = ["--checkpoint", str(tiny_checkpoint), "--out", str(tmp_path / "found.safetensors")]
    main([*out, "--sentences", str(lines), "--slopes", "1"])
    assert "8 sentences" in capsys.readouterr().out  # in two directions
    with pytest.raises(ValueError, match="--replace"):
        main([*out, "--sentences", str(lines)])
    lines.write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no sentences"):
        main([*out, "--replace", "--sentences", str(lines)])


def test_the_best_pieces_are_found_some_rows_at_a_time(tiny_translator, monkeypatch):
    streams = torch.randn(3, 5, tiny_translator.config.d_model)
    with torch.inference_mode():
        whole = best(tiny_translator.model, streams)
        monkeypatch.setattr("attention_atlas.model.nets.blocks.ROOM", 1)
        for one, other in zip(whole, best(tiny_translator.model, streams)):
            torch.testing.assert_close(one, other)
