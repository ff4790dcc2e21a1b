"""Tests of means over sentences against single passes, of their file, and of the means of a served model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.sentences import has_sentences, languages, sentences
from attention_atlas.model.analysis.why import means
from attention_atlas.model.analysis.why.attribution import attribute, attribute_case
from attention_atlas.model.analysis.why.means import SERVED_BATCH_SIZE, find_means, means_work
from attention_atlas.model.means import main
from attention_atlas.model.trace.kinds import TRANSFORMER_KINDS
from attention_atlas.model.trace.why.evidence import to_jsonable
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection
from attention_atlas.viz.server import api
from attention_atlas.viz.server.endpoints import EndpointContext

TEXTS = ("Der kleine Hund schläft unter dem Tisch.", "Hund", "Zwei Kinder bauen eine Burg.", "Ich trinke Tee.")


@pytest.fixture(scope="module")
def stored(tiny_translator):
    return means.compute_means(tiny_translator, {"de-en": TEXTS})


def test_means_match_single_passes(tiny_translator, stored):
    model, tokenizer = tiny_translator.model, tiny_translator.tokenizer
    outputs = {kind: ([], {0: [], 1: [], 2: []}) for kind in TRANSFORMER_KINDS}
    rows = []
    for text in TEXTS:
        source = tiny_translator.encode(text, "de-en")
        (target,) = tiny_translator.generate([source])
        output = tiny_translator.inspect(source, target)
        rows += [model.embedding.weight[i] * 32**0.5 for i in source[1:-1]]
        for kind in TRANSFORMER_KINDS:
            heads = torch.stack([r.attention(kind).weights @ r.attention(kind).values for r in output.records(kind)])
            for position in range(heads.shape[3]):
                to = outputs[kind][0] if position > 2 else outputs[kind][1][position]
                to.append(heads[:, 0, :, position].numpy())
    np.testing.assert_allclose(stored.source_embedding, torch.stack(rows).mean(0).detach(), atol=1e-5)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(stored.heads[kind], np.mean(outputs[kind][0], 0), atol=1e-5)
        for position in range(3):
            np.testing.assert_allclose(stored.early[kind][position], np.mean(outputs[kind][1][position], 0), atol=1e-5)
        by_position = stored.by_position(kind, 5)
        np.testing.assert_array_equal(by_position[:, :, 1], stored.early[kind][1])
        np.testing.assert_array_equal(by_position[:, :, 4], stored.heads[kind])
        assert stored.by_position(kind, 2).shape[2] == 2
    assert stored.sentences == 4 and stored.digest == tiny_translator.digest and tokenizer.end_id == 2


def test_batch_size_changes_nothing(tiny_translator, stored, monkeypatch):
    monkeypatch.setattr(means, "BATCH_SIZE", 3)
    counts = []
    batched = means.compute_means(tiny_translator, {"de-en": TEXTS}, progress=counts.append)
    assert counts == [3, 4]
    np.testing.assert_allclose(batched.target_embedding, stored.target_embedding, atol=1e-6)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_allclose(batched.heads[kind], stored.heads[kind], atol=1e-5)


def test_saved_means_load_only_for_their_weights(tiny_translator, stored, tmp_path):
    path = tmp_path / means.FILE
    means.save_means(path, stored)
    assert path.stat().st_size < 1_000_000
    back = means.load_means(path, tiny_translator)
    for kind in TRANSFORMER_KINDS:
        np.testing.assert_array_equal(back.heads[kind], stored.heads[kind])
        np.testing.assert_array_equal(back.early[kind], stored.early[kind])
    means.save_means(path, type(stored)("0" * 16, 4, *list(vars(stored).values())[2:]))
    with pytest.raises(ValueError, match="means of other weights"):
        means.load_means(path, tiny_translator)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a file of means"):
        means.load_means(path, tiny_translator)


def test_no_sentences_raise(tiny_translator):
    with pytest.raises(ValueError, match="no sentences"):
        means.compute_means(tiny_translator, {"de-en": ["", "  "]})


def test_project_sentences_are_unique_and_300_a_language():
    assert languages() == ("de", "en")
    for language in languages():
        lines = sentences(language)
        assert len(set(lines)) == len(lines) == 300 and all(line == line.strip() != "" for line in lines)
    with pytest.raises(ValueError, match="no sentences in 'xx'"):
        sentences("xx")


def test_program_writes_means_beside_the_weights(checkpoint_copy, tiny_translator, tmp_path, capsys):
    file = tmp_path / "some.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    main(["--checkpoint", str(checkpoint_copy), "--sentences", str(file), "--directions", "de-en"])
    assert means.load_means(checkpoint_copy / means.FILE, tiny_translator).sentences == 4
    assert "4 sentences" in capsys.readouterr().out


def test_work_on_means_uses_the_same_sentences_in_every_process(tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(means, "SERVED_SENTENCES", 20)
    first, second = (Translator.load(tiny_checkpoint, "cpu") for _ in range(2))
    assert find_means(first, "de-en") is None
    progress = list(means_work(first, "de-en").run())
    assert progress == [(SERVED_BATCH_SIZE, 20), (2 * SERVED_BATCH_SIZE, 20), (20, 20)]
    computed = find_means(first, "de-en")
    assert computed.sentences == 20 and computed.digest == first.digest
    list(means_work(second, "de-en").run())
    np.testing.assert_array_equal(find_means(second, "de-en").source_embedding, computed.source_embedding)
    assert has_sentences("de-en") and not has_sentences("xx-en")


def test_stored_means_are_used_only_for_their_weights(checkpoint_copy):
    translator = Translator.load(checkpoint_copy, "cpu")
    stored = means.compute_means(translator, {"de-en": ["Hund", "Boot"]})
    means.save_means(checkpoint_copy / means.FILE, stored)
    np.testing.assert_array_equal(find_means(translator, "de-en").source_embedding, stored.source_embedding)
    trace = translator.translate("Der Hund schläft.")
    page = Scene(trace, Selection(), translator, page_question=PageQuestion.of(trace, 2))
    served = EndpointContext(Translators([translator]))
    rows = api.why(served, trace.source_text, step=2)["rows"]
    python = attribute(translator, trace, step=2).rows
    for row, of_page, of_api in zip(python, attribute_case(page.case).rows, rows, strict=True):
        np.testing.assert_array_equal(row.values, of_page.values)
        assert to_jsonable(row) == {name: value for name, value in of_api.items() if name != "agreement"}
    translator.digest = "another"
    assert find_means(translator, "de-en") is None
