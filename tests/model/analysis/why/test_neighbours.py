"""Tests of neighbouring words."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.analysis.why.neighbours import load_forms, make_neighbour_sentences
from attention_atlas.model.trace.words import word_groups


@pytest.mark.parametrize(
    ("text", "word", "form"),
    [
        ("Meine Mutter hat Brot gebacken.", "gebacken", ("verb", "past participle")),
        ("Ein Mann trinkt ein Bier.", "Bier", ("noun", "n", "acc")),
    ],
)
def test_neighbours_are_nearest_words_of_the_same_form(shipped_translators, text, word, form):
    """Compare with cosines by numpy over the whole vocabulary."""
    translator, known = shipped_translators["de-en"], load_forms("de")
    trace, tokenizer = translator.translate(text), translator.tokenizer
    group = next(
        group
        for group in word_groups(trace.source_tokens)
        if "".join(trace.source_tokens[i] for i in group) == f"▁{word}"
    )
    before, after = text.split(word)
    neighbours = [
        sentence.removeprefix(before).removesuffix(after)
        for sentence in make_neighbour_sentences(translator, trace, group[0], count=3)
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
    assert neighbours == [other for other in fitting if other != word][:3]
    assert all(form in known[neighbour.lower()] for neighbour in neighbours)


def test_punctuation_and_symbols_have_no_neighbours(tiny_translator):
    trace = tiny_translator.translate("Ich trinke Tee.")
    for position in (trace.source_tokens.index("."), 0, len(trace.source_ids) - 1, 99):
        with pytest.raises(ValueError, match="not a word of the sentence"):
            make_neighbour_sentences(tiny_translator, trace, position)
