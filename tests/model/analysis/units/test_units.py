"""Dictionaries find what was planted and say what they lose; neurons and units are excited by what excites them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.units import fitted
from attention_atlas.model.analysis.units.excited import Units
from attention_atlas.model.analysis.units.measure import qualities, rows_of
from attention_atlas.model.analysis.units.sparse import Dictionary, projected, train
from attention_atlas.model.dictionary import main
from attention_atlas.model.trace.tokens import is_symbol
from attention_atlas.model.translator import Translator

PLACE, TEXTS = "encoder.0.resid_post", ("Der kleine Hund schläft unter dem Tisch.", "Ich trinke Tee.", "Zwei Kinder.")


def test_planted_directions_are_found():
    chance = torch.Generator().manual_seed(0)
    directions = torch.nn.functional.normalize(torch.randn(24, 16, generator=chance), dim=-1)
    chosen = torch.rand(4000, 24, generator=chance).topk(2).indices
    codes = torch.zeros(4000, 24).scatter(1, chosen, 1 + torch.rand(4000, 2, generator=chance))
    rows = codes @ directions + 0.5
    found = train(rows, 48, 2, 500)
    assert float((rows - found(rows)).pow(2).sum() / (rows - rows.mean(0)).pow(2).sum()) < 0.15
    alike = (directions @ found.directions.T).max(1).values
    assert float((alike > 0.9).float().mean()) > 0.8
    torch.testing.assert_close(found.directions.norm(dim=-1), torch.ones(48))
    assert int((found.codes(rows) > 0).sum(-1).max()) <= 2
    with pytest.raises(ValueError, match="512 rows"):
        train(rows[:100], 48, 2, 5)


def test_a_projection_on_all_directions_is_the_row_itself():
    chance = torch.Generator().manual_seed(0)
    rows, directions = torch.randn(7, 6, generator=chance), torch.eye(6) + 0.1 * torch.randn(6, 6, generator=chance)
    torch.testing.assert_close(projected(directions, torch.ones(6), 6, rows), rows, atol=1e-2, rtol=0)


@pytest.fixture(scope="module")
def dictionary(tiny_translator):
    rows = rows_of(tiny_translator, PLACE, TEXTS * 30, "de-en")
    return train(rows, 40, 4, 300)


def test_what_is_lost_is_measured_between_the_mean_and_the_stream_itself(tiny_translator, dictionary):
    texts, rows = [("de-en", text) for text in TEXTS], rows_of(tiny_translator, PLACE, TEXTS, "de-en")
    found = qualities(tiny_translator, PLACE, dictionary, rows, texts)
    assert set(found) == {"dictionary", "random", "neurons"} and found["dictionary"].active <= 4
    assert found["dictionary"].explained > found["random"].explained
    silent = replace(dictionary, encoder=torch.zeros_like(dictionary.encoder), bias=-torch.ones(40))
    assert qualities(tiny_translator, PLACE, silent, rows, texts)["dictionary"].recovered == pytest.approx(0, abs=1e-3)
    both = torch.cat([torch.eye(rows.shape[1]), -torch.eye(rows.shape[1])])  # each coordinate, and its opposite
    exact = Dictionary(both, torch.zeros(len(both)), both, dictionary.centre, 1.0, len(both))
    assert qualities(tiny_translator, PLACE, exact, rows, texts)["dictionary"].recovered == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("of", ["neurons", "dictionary"])
def test_the_sentences_of_a_unit_are_those_that_excite_it_most(tiny_translator, dictionary, of, monkeypatch):
    monkeypatch.setattr("attention_atlas.model.analysis.units.excited.TOGETHER", 2)
    units = Units(tiny_translator, "de-en", 0, TEXTS, dictionary if of == "dictionary" else None)
    monkeypatch.setitem(vars(tiny_translator), "_results_of_work", OrderedDict())
    assert list(units.peaks.run()) == [(1, 2), (2, 2)]
    values, places = units.peaks.result()
    assert values.shape == places.shape == (3, len(units.written))
    run = tiny_translator.run(TEXTS, names=[units.place], direction="de-en")[units.place]
    for line, text in enumerate(TEXTS):
        ids = tiny_translator.encode(text, "de-en")
        words = [i for i, token in enumerate(tiny_translator.tokenizer.tokens(ids)) if not is_symbol(token)]
        rows = run[line, words]
        rows = dictionary.codes(rows) if of == "dictionary" else rows
        np.testing.assert_allclose(rows.max(0).values.clamp(min=0), values[line], atol=1e-5)
        np.testing.assert_allclose(units.of(ids).max(0), values[line], atol=1e-5)
    if of == "neurons":  # what they write is what the layer adds
        one = tiny_translator.run(TEXTS[:1], names=["encoder.0.ffn.post", "encoder.0.ffn.out"], direction="de-en")
        bias = tiny_translator.model.encoder.layers[0].feed_forward.contract.bias
        torch.testing.assert_close(one["encoder.0.ffn.post"] @ units.written + bias, one["encoder.0.ffn.out"])


@pytest.mark.long
def test_the_program_writes_a_dictionary_of_these_weights(tiny_checkpoint, tmp_path, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(f"{text} {i}" for i in range(20) for text in TEXTS), encoding="utf-8")
    out = tmp_path / fitted.FILE
    sizes = ["--units", "32", "--active", "3", "--updates", "20", "--layer", "1"]
    main(["--checkpoint", str(tiny_checkpoint), "--out", str(out), "--sentences", str(lines), *sizes])
    assert "random: loss recovered" in capsys.readouterr().out
    translator = Translator.load(tiny_checkpoint, "cpu")
    width = translator.config.d_model
    found = fitted.load(out, translator.digest, width)
    assert (found.layer, len(found.dictionary.bias), found.dictionary.k) == (0, 32, 3) and len(found.qualities) == 3
    with pytest.raises(ValueError, match="other weights"):
        fitted.load(out, "0" * 16, width)
    with pytest.raises(ValueError, match="not the shapes"):
        fitted.load(out, translator.digest, width + 1)
    out.write_bytes(out.read_bytes()[:200])
    with pytest.raises(ValueError, match="not a file"):
        fitted.load(out, translator.digest, width)
    with pytest.raises(ValueError, match="the encoder has"):
        main(["--checkpoint", str(tiny_checkpoint), "--out", str(tmp_path / "x"), "--layer", "9"])
