"""Dictionaries on planted directions, their measured quality and file, and the peaks of units."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.units import dictionary as dictionaries
from attention_atlas.model.analysis.units.dictionary import Dictionary, measure_qualities, project, rows_of, train
from attention_atlas.model.analysis.units.units import Units
from attention_atlas.model.dictionary import main
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator

PLACE, TEXTS = "encoder.0.resid_post", ("Der kleine Hund schläft unter dem Tisch.", "Ich trinke Tee.", "Zwei Kinder.")


def test_planted_directions_are_found():
    generator = torch.Generator().manual_seed(0)
    directions = torch.nn.functional.normalize(torch.randn(24, 16, generator=generator), dim=-1)
    active = torch.rand(4000, 24, generator=generator).topk(2).indices
    codes = torch.zeros(4000, 24).scatter(1, active, 1 + torch.rand(4000, 2, generator=generator))
    rows = codes @ directions + 0.5
    dictionary = train(rows, 48, 2, 500)
    assert float((rows - dictionary(rows)).pow(2).sum() / (rows - rows.mean(0)).pow(2).sum()) < 0.15
    cosines = (directions @ dictionary.directions.T).max(1).values
    assert float((cosines > 0.9).float().mean()) > 0.8
    torch.testing.assert_close(dictionary.directions.norm(dim=-1), torch.ones(48))
    assert int((dictionary.codes(rows) > 0).sum(-1).max()) <= 2
    with pytest.raises(ValueError, match="512 rows"):
        train(rows[:100], 48, 2, 5)


def test_projecting_on_a_whole_basis_returns_the_rows():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(7, 6, generator=generator)
    directions = torch.eye(6) + 0.1 * torch.randn(6, 6, generator=generator)
    torch.testing.assert_close(project(directions, torch.ones(6), 6, rows), rows, atol=1e-2, rtol=0)


@pytest.fixture(scope="module")
def dictionary(tiny_translator):
    rows = rows_of(tiny_translator, PLACE, TEXTS * 30, "de-en")
    return train(rows, 40, 4, 300)


def test_recovered_loss_is_0_for_the_mean_and_1_for_the_stream(tiny_translator, dictionary):
    texts, rows = [("de-en", text) for text in TEXTS], rows_of(tiny_translator, PLACE, TEXTS, "de-en")
    qualities = measure_qualities(tiny_translator, PLACE, dictionary, rows, texts)
    assert set(qualities) == {"dictionary", "random", "neurons"} and qualities["dictionary"].active <= 4
    assert qualities["dictionary"].explained > qualities["random"].explained
    silent = replace(dictionary, encoder=torch.zeros_like(dictionary.encoder), bias=-torch.ones(40))
    both = torch.cat([torch.eye(rows.shape[1]), -torch.eye(rows.shape[1])])
    exact = Dictionary(both, torch.zeros(len(both)), both, dictionary.centre, 1.0, len(both))
    for other, recovered in ((silent, 0), (exact, 1)):
        quality = measure_qualities(tiny_translator, PLACE, other, rows, texts)["dictionary"]
        assert quality.recovered == pytest.approx(recovered, abs=1e-3)


@pytest.mark.parametrize("kind", ["neurons", "dictionary"])
def test_peaks_are_the_largest_activations_of_each_sentence(tiny_translator, dictionary, kind, monkeypatch):
    monkeypatch.setattr("attention_atlas.model.analysis.units.units.BATCH", 2)
    units = Units(tiny_translator, "de-en", 0, TEXTS, dictionary if kind == "dictionary" else None)
    monkeypatch.setitem(vars(tiny_translator), "_results_of_work", OrderedDict())
    assert list(units.peaks.run()) == [(1, 2), (2, 2)]
    values, places = units.peaks.result()
    assert values.shape == places.shape == (3, len(units.directions))
    run = tiny_translator.run(TEXTS, names=[units.place], direction="de-en")[units.place]
    for line, text in enumerate(TEXTS):
        ids = tiny_translator.encode(text, "de-en")
        words = [i for i, token in enumerate(tiny_translator.tokenizer.tokens(ids)) if not is_symbol(token)]
        rows = run[line, words]
        rows = dictionary.codes(rows) if kind == "dictionary" else rows
        np.testing.assert_allclose(rows.max(0).values.clamp(min=0), values[line], atol=1e-5)
        np.testing.assert_allclose(units.activations(ids).max(0), values[line], atol=1e-5)
    if kind == "neurons":  # what they add up to is what the layer adds
        post, out = "encoder.0.ffn.post", "encoder.0.ffn.out"
        run = tiny_translator.run(TEXTS[:1], names=[post, out], direction="de-en")
        bias = tiny_translator.model.encoder.layers[0].feed_forward.contract.bias
        torch.testing.assert_close(run[post] @ units.directions + bias, run[out])


@pytest.mark.long
def test_the_program_writes_a_dictionary(tiny_checkpoint, tmp_path, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(f"{text} {i}" for i in range(20) for text in TEXTS), encoding="utf-8")
    out = tmp_path / dictionaries.FILE
    sizes = ["--units", "32", "--active", "3", "--updates", "20", "--layer", "1"]
    main(["--checkpoint", str(tiny_checkpoint), "--out", str(out), "--sentences", str(lines), *sizes])
    assert "random: loss recovered" in capsys.readouterr().out
    translator = Translator.load(tiny_checkpoint, "cpu")
    width = translator.config.d_model
    stored = dictionaries.load(out, translator.digest, width)
    assert (stored.layer, len(stored.dictionary.bias), stored.dictionary.k) == (0, 32, 3) and len(stored.qualities) == 3
    with pytest.raises(ValueError, match="other weights"):
        dictionaries.load(out, "0" * 16, width)
    with pytest.raises(ValueError, match="not the shapes"):
        dictionaries.load(out, translator.digest, width + 1)
    out.write_bytes(out.read_bytes()[:200])
    with pytest.raises(ValueError, match="not a file"):
        dictionaries.load(out, translator.digest, width)
    with pytest.raises(ValueError, match="the encoder has"):
        main(["--checkpoint", str(tiny_checkpoint), "--out", str(tmp_path / "x"), "--layer", "9"])
