"""Means over sentences against a loop over single passes, and their file."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.sentences import languages, sentences
from attention_atlas.model.analysis.why import means
from attention_atlas.model.means import main
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS

TEXTS = ("Der kleine Hund schläft unter dem Tisch.", "Hund", "Zwei Kinder bauen eine Burg.", "Ich trinke Tee.")


@pytest.fixture(scope="module")
def found(tiny_translator):
    return means.compute_means(tiny_translator, {"de-en": TEXTS})


def test_means_are_those_of_single_passes(tiny_translator, found):
    model, tokenizer = tiny_translator.model, tiny_translator.tokenizer
    said = {kind: ([], {0: [], 1: [], 2: []}) for kind in TRANSFORMER_KINDS}
    rows = []
    for text in TEXTS:
        source = tiny_translator.encode(text, "de-en")
        (target,) = tiny_translator.generate([source])
        output = tiny_translator.inspect(source, target)
        rows += [model.embedding.weight[i] * 32**0.5 for i in source[1:-1]]
        for kind in TRANSFORMER_KINDS:
            heads = torch.stack([r.attention(kind).weights @ r.attention(kind).values for r in output.records(kind)])
            for position in range(heads.shape[3]):
                to = said[kind][0] if position > 2 else said[kind][1][position]
                to.append(heads[:, 0, :, position].numpy())
    np.testing.assert_allclose(found.source_embedding, torch.stack(rows).mean(0).detach(), atol=1e-5)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(found.heads[kind], np.mean(said[kind][0], 0), atol=1e-5)
        for position in range(3):
            np.testing.assert_allclose(found.early[kind][position], np.mean(said[kind][1][position], 0), atol=1e-5)
        by_position = found.by_position(kind, 5)
        np.testing.assert_array_equal(by_position[:, :, 1], found.early[kind][1])
        np.testing.assert_array_equal(by_position[:, :, 4], found.heads[kind])
        assert found.by_position(kind, 2).shape[2] == 2
    assert found.sentences == 4 and found.digest == tiny_translator.digest and tokenizer.end_id == 2


def test_batches_change_nothing(tiny_translator, found, monkeypatch):
    monkeypatch.setattr(means, "BATCH_SIZE", 3)
    counts = []
    again = means.compute_means(tiny_translator, {"de-en": TEXTS}, progress=counts.append)
    assert counts == [3, 4]
    np.testing.assert_allclose(again.target_embedding, found.target_embedding, atol=1e-6)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(again.heads[kind], found.heads[kind], atol=1e-5)


def test_a_file_gives_them_back_and_is_refused_for_other_weights(tiny_translator, found, tmp_path):
    path = tmp_path / means.FILE
    means.save_means(path, found)
    assert path.stat().st_size < 1_000_000
    back = means.load_means(path, tiny_translator)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_array_equal(back.heads[kind], found.heads[kind])
        np.testing.assert_array_equal(back.early[kind], found.early[kind])
    means.save_means(path, type(found)("0" * 16, 4, *list(vars(found).values())[2:]))
    with pytest.raises(ValueError, match="means of other weights"):
        means.load_means(path, tiny_translator)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a file of means"):
        means.load_means(path, tiny_translator)


def test_no_sentence_is_refused(tiny_translator):
    with pytest.raises(ValueError, match="no sentences"):
        means.compute_means(tiny_translator, {"de-en": ["", "  "]})


def test_the_lists_are_ours_and_line_by_line_the_same():
    assert languages() == ("de", "en")
    for language in languages():
        lines = sentences(language)
        assert len(set(lines)) == len(lines) == 300 and all(line == line.strip() != "" for line in lines)
    with pytest.raises(ValueError, match="no sentences in 'xx'"):
        sentences("xx")


def test_the_program_writes_them_beside_the_weights(tiny_checkpoint, tiny_translator, tmp_path, capsys):
    file = tmp_path / "some.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    try:
        main(["--checkpoint", str(tiny_checkpoint), "--sentences", str(file), "--directions", "de-en"])
        assert means.load_means(tiny_checkpoint / means.FILE, tiny_translator).sentences == 4
        assert "4 sentences" in capsys.readouterr().out
    finally:
        (tiny_checkpoint / means.FILE).unlink()
