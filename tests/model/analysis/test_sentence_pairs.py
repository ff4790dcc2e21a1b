"""Minimal pairs, and the similarity of the vectors of their common words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.sentence_pairs import (
    compare_shared_words,
    match_words,
    minimal_pair_languages,
    minimal_pairs,
)
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.directions import language_of, parse_direction
from attention_atlas.model.translator import Translator


def test_every_source_language_has_one_minimal_pair_of_each_kind(shipped_translators):
    """The kinds are those of the page, and both sentences of a pair contain the word to follow."""
    from attention_atlas.viz.explorer.compare import KINDS

    read = {language_of(parse_direction(route.direction)[0]) for route in shipped_translators.routes}
    assert read <= set(minimal_pair_languages())
    for language in minimal_pair_languages():
        pairs = minimal_pairs(language)
        assert [pair.kind for pair in pairs] == list(KINDS) and len(pairs) == 12
        for pair in pairs:
            first, second = (text.casefold().strip(".?").replace(",", "").split() for text in (pair.first, pair.second))
            assert pair.first != pair.second and pair.word.casefold() in first and pair.word.casefold() in second


def test_each_common_word_is_matched_once():
    assert match_words(("Der", "Hund", "der", "Frau"), ("die", "Frau", "der", "DER", "der")) == [(3, 1), (0, 2), (2, 3)]
    assert match_words((), ("a",)) == []


def test_cosines_equal_torchs_on_the_encoders_output(tiny_translator):
    traces = [tiny_translator.translate(text) for text in ("Der Hund schläft.", "Ein Hund schläft heute.")]
    shared = compare_shared_words(tiny_translator, *traces)
    memories = [tiny_translator.inspect(t.source_ids, t.target_ids).memory[0].double() for t in traces]
    groups = [content_words(trace.source_tokens) for trace in traces]
    first, second = ([memory[list(g)].mean(0) for g in words] for memory, words in zip(memories, groups))
    cosines = torch.stack([torch.cosine_similarity(torch.stack(first), word[None]) for word in second]).numpy()
    texts = [[spelled(trace, group).casefold() for group in words] for trace, words in zip(traces, groups)]
    for word, cosine, baseline in zip(shared.words, shared.cosine, shared.baseline):
        i, j = (words.index(word.casefold()) for words in texts)
        assert cosine[-1] == pytest.approx(cosines[j, i], abs=1e-6)
        assert baseline[-1] == pytest.approx(np.delete(cosines[j], i).mean(), abs=1e-6)


def spelled(trace, group) -> str:
    return "".join(trace.source_tokens[i] for i in group).replace("\u2581", "")


def test_a_sentence_is_one_with_itself(tiny_translator):
    trace = tiny_translator.translate("Der kleine Hund schläft")
    shared = compare_shared_words(tiny_translator, trace, trace)
    assert np.allclose(shared.cosine, 1.0) and (shared.baseline < 1).all()
    assert shared.cosine.shape == shared.baseline.shape == (len(content_words(trace.source_tokens)), 3)


def test_sentences_without_common_words_and_other_networks_are_refused(tiny_translator, recurrent_checkpoint):
    dog, cat = (tiny_translator.translate(text) for text in ("Hund", "Katze"))
    with pytest.raises(ValueError, match="no word in common"):
        compare_shared_words(tiny_translator, dog, cat)
    recurrent = Translator.load(recurrent_checkpoint, "cpu")
    with pytest.raises(ValueError, match="Transformer"):
        compare_shared_words(recurrent, recurrent.translate("Hund"), recurrent.translate("Hund"))


@pytest.mark.parametrize("direction", ["de-en", "en-de", "en-fr"])
def test_the_followed_word_of_every_pair_has_a_row(shipped_translators, direction):
    translator = next(
        t for t in shipped_translators.all if isinstance(t.model, Transformer) and direction in t.directions
    )
    for pair in minimal_pairs(direction[:2]):
        traces = translator.trace_batch([pair.first, pair.second], direction)
        shared = compare_shared_words(translator, *traces)
        assert pair.word.casefold() in [word.casefold() for word in shared.words], pair
        assert (np.abs(shared.cosine) <= 1 + 1e-9).all()
