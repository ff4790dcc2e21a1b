"""Lenses: Jacobians against finite differences, identities, the programs and the file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model import checkpoint
from attention_atlas.model.analysis.lenses import fit as fitting
from attention_atlas.model.analysis.lenses import storage
from attention_atlas.model.analysis.lenses.fit import Fitting, all_stream_names, fit, sum_jacobians
from attention_atlas.model.analysis.lenses.read import (
    decoder_lens,
    encoder_lens,
    layer_translations,
    streams_of,
    top_pieces,
)
from attention_atlas.model.analysis.lenses.storage import Lens
from attention_atlas.model.lenses import main
from attention_atlas.model.serve.work import finish
from attention_atlas.model.trace.edits import Add
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator
from tests.conftest import SENTENCES

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
def test_a_jacobian_equals_finite_differences(tiny_translator, name):
    """The sentences differ in length, so that padding matters, and attention connects their rows."""
    texts, targets, side = TEXTS[1:3], ("Two children are building a castle.", "Tea."), Side(name.split(".")[0])
    names = all_stream_names(tiny_translator.config)
    last, run = names[-1], tiny_translator.run(texts, targets, names=names, direction="de-en", grad=True)
    sums = torch.from_numpy(finish(sum_jacobians(run, names)))
    jacobian = sums[names.index(name)] / (run.source_mask if side is Side.ENCODER else run.mask).sum()
    direction = torch.linspace(-1, 1, tiny_translator.config.d_model)
    total, positions, step = 0.0, 0, 1e-3
    for text, target in zip(texts, targets):
        run = tiny_translator.run([text], [target], names=[last], direction="de-en")
        length = (run.source_mask if side is Side.ENCODER else run.mask).sum()
        for position in range(length):
            ends = []
            for sign in (1, -1):
                edit = Add(direction.tolist(), strength=sign * step, positions=(position,))
                changed = tiny_translator.edit({name: edit})
                run = changed.run([text], [target], names=[last], direction="de-en")
                ends.append(run[last].sum((0, 1)).double())
            total, positions = total + (ends[0] - ends[1]) / (2 * step), positions + 1
    expected = total / positions
    atol = 5e-3 * float(expected.abs().max())
    torch.testing.assert_close(jacobian @ direction.double(), expected, atol=atol, rtol=0)


def test_the_fitted_jacobians_are_means_over_the_positions_of_their_side(tiny_translator, lenses):
    names = all_stream_names(tiny_translator.config)
    run = tiny_translator.run([TEXTS[0], TEXTS[2]], names=names, direction="de-en", grad=True)
    sums = torch.from_numpy(finish(sum_jacobians(run, names)))
    of_encoder = [name.startswith("encoder.") for name in names]
    of_decoder = [not is_encoder for is_encoder in of_encoder]
    for fitted, rows, mask in ((lenses.encoder, of_encoder, run.source_mask), (lenses.decoder, of_decoder, run.mask)):
        torch.testing.assert_close(fitted.double(), sums[rows] / mask.sum(), atol=1e-5, rtol=1e-4)


def test_a_stopped_fit_continues_from_its_files(tiny_translator, lenses, tmp_path, monkeypatch):
    parts = Fitting(tiny_translator, {"de-en": TEXTS}, 2, folder=tmp_path).parts()
    total = 2 + tiny_translator.config.num_decoder_layers
    while (progress := next(parts)) != (1, total):
        assert progress == (0, total)
    monkeypatch.setattr(fitting, "sum_jacobians", None)  # finished parts are not made again
    continued = fit(tiny_translator, {"de-en": TEXTS}, slopes=2, folder=tmp_path)
    for name, tensor in storage.tensors(lenses).items():
        torch.testing.assert_close(storage.tensors(continued)[name], tensor, atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="no sentences"):
        Fitting(tiny_translator, {"de-en": [" "]})


def test_the_jacobian_lens_with_identities_is_the_logit_lens(tiny_translator, lenses, recorded):
    _, target, output = recorded
    ones = torch.eye(tiny_translator.config.d_model).expand_as(lenses.decoder).clone()
    plain = decoder_lens(tiny_translator.model, output, target)
    identities = replace(lenses, decoder=ones).of_decoder(Lens.JACOBIAN)
    jacobian = decoder_lens(tiny_translator.model, output, target, identities)
    np.testing.assert_array_equal(plain.top_ids, jacobian.top_ids)
    np.testing.assert_allclose(plain.divergences, jacobian.divergences, atol=1e-5)


@pytest.mark.parametrize("lens", list(Lens))
def test_every_lens_ends_in_the_models_distribution(tiny_translator, lenses, recorded, lens):
    _, target, output = recorded
    read = decoder_lens(tiny_translator.model, output, target, lenses.of_decoder(lens))
    final = output.logits[0].softmax(-1)
    np.testing.assert_array_equal(read.top_ids[-1], final.argmax(-1))
    probabilities = final[torch.arange(len(target)), target]
    np.testing.assert_allclose(read.chosen_probabilities[-1], probabilities, atol=1e-6)
    np.testing.assert_array_equal(read.chosen_ranks[-1], 1 + (final > probabilities[:, None]).sum(-1))
    np.testing.assert_allclose(read.divergences[-1], 0, atol=1e-6)
    with torch.inference_mode():
        first = tiny_translator.model.decoder.norm(lenses.of_decoder(lens)(streams_of(output, Side.DECODER)[:, 0]))[0]
        predicted = tiny_translator.model.project(first).log_softmax(-1)
        expected = torch.nn.functional.kl_div(predicted, final.log(), log_target=True, reduction="none").sum(-1)
    np.testing.assert_allclose(read.divergences[0], expected, rtol=1e-4, atol=1e-6)


def test_encoder_lens_reads_the_jacobian_times_the_stream(tiny_translator, lenses, recorded):
    *_, output = recorded
    read = encoder_lens(tiny_translator.model, output, lenses)
    streams = streams_of(output, Side.ENCODER)[:, 0]
    assert read.ids.shape == read.shares.shape == (*streams.shape[:2], 10)
    with torch.inference_mode():
        for layer, position in ((0, 1), (2, 3)):
            pointed = lenses.encoder[layer] @ streams[layer, position]
            shares = tiny_translator.model.project(tiny_translator.model.decoder.norm(pointed)).softmax(-1)
            assert shares.topk(10).indices.tolist() == read.ids[layer, position].tolist()
            np.testing.assert_allclose(read.shares[layer, position], shares.topk(10).values, rtol=1e-4)


def test_the_last_layers_translation_is_the_models_own(tiny_translator, recorded):
    source, target, output = recorded
    translations = layer_translations(tiny_translator, source, "de-en")
    assert len(translations) == 3 and translations[-1] == target
    memory = tiny_translator.model.encoder.norm(streams_of(output, Side.ENCODER)[1])  # after layer 1
    with tiny_translator.edit({"encoder.final": lambda x, at: memory}) as changed:
        assert changed.generate([source], "de-en")[0] == translations[1]


def test_other_networks_are_refused(recurrent_checkpoint):
    recurrent = Translator.load(recurrent_checkpoint, "cpu")
    with pytest.raises(Refusal, match="not a Transformer"):
        layer_translations(recurrent, recurrent.encode("Hund"))


def test_a_tuned_lens_finds_a_planted_map_and_keeps_the_logit_lens_if_it_is_best():
    generator = torch.Generator().manual_seed(3)
    last = torch.randn(800, 12, generator=generator)
    matrix, words = torch.randn(12, 12, generator=generator), torch.randn(30, 12, generator=generator)
    stream = last @ torch.linalg.inv(matrix).T - 0.5
    weight, bias = finish(fitting.fit_layer(lambda rows: rows @ words.T, stream, last))
    read = stream + stream @ weight.T + bias
    assert (read @ words.T).softmax(-1).sub((last @ words.T).softmax(-1)).abs().max() < 0.05
    weight, bias = finish(fitting.fit_layer(lambda rows: rows @ words.T, last, last))
    assert max(weight.abs().max(), bias.abs().max()) < 1e-4  # the logit lens is already right


def test_loading_checks_the_weights_and_the_shapes(tiny_translator, lenses, tmp_path):
    path, config, digest = tmp_path / storage.FILE, tiny_translator.config, tiny_translator.digest
    storage.save(path, lenses)
    loaded = storage.load(path, config, digest)
    assert loaded.sentences == len(TEXTS)
    torch.testing.assert_close(loaded.encoder, lenses.encoder, atol=2e-3, rtol=2e-3)
    with pytest.raises(ValueError, match="other weights"):
        storage.load(path, config, "0" * 16)
    with pytest.raises(ValueError, match="encoder must be"):
        storage.load(path, replace(config, num_encoder_layers=3), digest)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match="not a file of lenses"):
        storage.load(path, config, digest)


@pytest.mark.long
def test_the_program_writes_a_file_and_does_not_overwrite_it(tiny_checkpoint, tmp_path, capsys):
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


@pytest.mark.long
def test_the_program_measures_hit_rates_on_pairs(tiny_checkpoint, tmp_path):
    files = [tmp_path / "own.de", tmp_path / "own.en"]
    for path, lines in zip(files, (SENTENCES[::2], SENTENCES[1::2])):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    out = tmp_path / "found.safetensors"
    pairs = {"de-en": {"everyday": [*zip(SENTENCES[:8:2], SENTENCES[1:8:2])]}, "xx-en": {"absent": []}}
    main(
        ["--checkpoint", str(tiny_checkpoint), "--out", str(out), "--slopes", "1", "--sentences", str(files[0])]
        + ["--pair", "de-en", *map(str, files)],
        pairs,
    )
    loaded = checkpoint.load(tiny_checkpoint)
    hit_rates = storage.load(out, loaded.model.config, loaded.digest).hit_rates
    assert {name: rates.sentences for name, rates in hit_rates.items()} == {"everyday": 4, "own.de": 6}


def test_top_pieces_do_not_depend_on_the_block_size(tiny_translator, monkeypatch):
    streams = torch.randn(3, 5, tiny_translator.config.d_model)
    with torch.inference_mode():
        expected = top_pieces(tiny_translator.model, streams)
        monkeypatch.setattr("attention_atlas.model.nets.blocks.MAX_LOGITS", 1)
        for a, b in zip(expected, top_pieces(tiny_translator.model, streams)):
            torch.testing.assert_close(a, b)
