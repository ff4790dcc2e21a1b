"""Means of a served model: of its folder, or made when they are asked for; and words in a word's place."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis.why.attribution import attribute, attribute_case
from attention_atlas.model.analysis.why.means import (
    FILE,
    SERVED_BATCH_SIZE,
    SERVED_SENTENCES,
    MeansCache,
    compute_means,
    save_means,
)
from attention_atlas.model.analysis.why.neighbours import load_forms, make_neighbour_sentences
from attention_atlas.model.trace.why.evidence import to_jsonable
from attention_atlas.model.trace.words import word_groups
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels.scene import PageQuestion, Scene, Selection
from attention_atlas.viz.server import api
from attention_atlas.viz.server.endpoints import EndpointContext


def test_means_are_of_the_same_sentences_in_every_process(tiny_translator):
    cache, other = MeansCache(), MeansCache()
    assert cache.find(tiny_translator, "de-en") is None
    steps = list(cache.compute(tiny_translator, "de-en"))
    assert [step.done for step in steps[:2]] == [SERVED_BATCH_SIZE, 2 * SERVED_BATCH_SIZE]
    assert (steps[-1].done, steps[-1].total) == (SERVED_SENTENCES, SERVED_SENTENCES)
    means = cache.find(tiny_translator, "de-en")
    assert means.sentences == SERVED_SENTENCES and means.digest == tiny_translator.digest
    list(other.compute(tiny_translator, "de-en"))
    np.testing.assert_array_equal(other.find(tiny_translator, "de-en").source_embedding, means.source_embedding)
    assert cache.can_compute("de-en") and not cache.can_compute("xx-en")
    with pytest.raises(ValueError, match="no sentences"):
        next(cache.compute(tiny_translator, "xx-en"))


def test_means_of_the_folder_count_if_they_are_of_these_weights(tiny_checkpoint, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in tiny_checkpoint.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    translator = Translator.load(folder, "cpu")
    means = compute_means(translator, {"de-en": ["Hund", "Boot"]})
    save_means(folder / FILE, means)
    np.testing.assert_array_equal(MeansCache().find(translator, "de-en").source_embedding, means.source_embedding)
    trace = translator.translate("Der Hund schläft.")
    page = Scene(trace, Selection(), translator, page_question=PageQuestion.of(trace, 2), means_cache=MeansCache())
    served = EndpointContext(Translators([translator]))
    rows = api.why(served, trace.source_text, step=2)["rows"]
    python = attribute(translator, trace, step=2).rows
    for row, shown, told in zip(python, attribute_case(page.case).rows, rows, strict=True):
        np.testing.assert_array_equal(row.values, shown.values)  # Python, the page and the API: with the same means
        assert to_jsonable(row) == {name: value for name, value in told.items() if name != "agreement"}
    translator.digest = "another"
    assert MeansCache().find(translator, "de-en") is None


@pytest.mark.parametrize(
    ("text", "word", "form"),
    [
        ("Meine Mutter hat Brot gebacken.", "gebacken", ("verb", "past participle")),
        ("Ein Mann trinkt ein Bier.", "Bier", ("noun", "n", "acc")),
    ],
)
def test_a_neighbour_is_the_nearest_word_of_the_language_and_of_the_words_form(shipped_translators, text, word, form):
    """Against cosines by numpy over the whole vocabulary: "gebacken" became "rappel", and "ein Bier" "ein Nagoya"."""
    translator, known = shipped_translators["de-en"], load_forms("de")
    trace, tokenizer = translator.translate(text), translator.tokenizer
    group = next(
        group
        for group in word_groups(trace.source_tokens)
        if "".join(trace.source_tokens[i] for i in group) == f"▁{word}"
    )
    before, after = text.split(word)
    found = [
        one.removeprefix(before).removesuffix(after)
        for one in make_neighbour_sentences(translator, trace, group[0], count=3)
    ]
    matrix = translator.model.embedding.weight.detach().double().numpy()
    row = matrix[[trace.source_ids[i] for i in group]].mean(0)
    near = np.argsort(-(matrix @ row / np.linalg.norm(matrix, axis=1)))
    fitting = [
        token[1:]
        for token in (str(tokenizer.pieces[i]) for i in near)
        if token[0] == "▁"
        and token[1:2].isupper() == word[0].isupper()
        and known[word.lower()] <= known.get(token[1:].lower(), frozenset())
    ]
    assert found == [one for one in fitting if one != word][:3]
    assert all(form in known[one.lower()] for one in found)


def test_marks_of_punctuation_have_no_neighbours(tiny_translator):
    trace = tiny_translator.translate("Ich trinke Tee.")
    with pytest.raises(ValueError, match="not a word of the sentence"):
        make_neighbour_sentences(tiny_translator, trace, trace.source_tokens.index("."))


def test_a_symbol_has_no_neighbours(tiny_translator):
    trace = tiny_translator.translate("Ich trinke Tee.")
    for position in (0, len(trace.source_ids) - 1, 99):
        with pytest.raises(ValueError, match="not a word of the sentence"):
            make_neighbour_sentences(tiny_translator, trace, position)
