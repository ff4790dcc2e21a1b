"""Two sentences that differ in little, and how alike the vectors of the words are that both have."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_atlas.model.analysis.beside.sentences import alike, languages, minimal_pairs, shared
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.alignment import content_words
from attention_atlas.model.trace.directions import language_of, parse_direction
from attention_atlas.model.translator import Translator


def test_every_language_read_has_one_pair_of_each_kind(shipped_translators):
    """The page's own table of kinds names no other, and both sentences of a pair have the followed word."""
    from attention_atlas.viz.explorer.compare import KINDS

    read = {language_of(parse_direction(route.direction)[0]) for route in shipped_translators.routes}
    assert read <= set(languages())
    for language in languages():
        found = minimal_pairs(language)
        assert [one.kind for one in found] == list(KINDS) and len(found) == 12
        for one in found:
            first, second = (text.casefold().strip(".?").replace(",", "").split() for text in (one.first, one.second))
            assert one.first != one.second and one.word.casefold() in first and one.word.casefold() in second


def test_common_words_are_found_in_pairs_each_once():
    assert shared(("Der", "Hund", "der", "Frau"), ("die", "Frau", "der", "DER", "der")) == [(3, 1), (0, 2), (2, 3)]
    assert shared((), ("a",)) == []


def test_cosines_are_torchs_of_what_the_encoder_itself_gives(tiny_translator):
    first, second = (tiny_translator.translate(text) for text in ("Der Hund schläft.", "Ein Hund schläft heute."))
    found = alike(tiny_translator, first, second)
    memories = [tiny_translator.inspect(one.source_ids, one.target_ids).memory[0].double() for one in (first, second)]
    groups = [content_words(one.source_tokens) for one in (first, second)]
    there, here = ([memory[list(g)].mean(0) for g in of] for memory, of in zip(memories, groups))
    every = torch.stack([torch.cosine_similarity(torch.stack(there), one[None]) for one in here]).numpy()
    for word, cosine, others in zip(found.words, found.cosine, found.others):
        at = next(w for w, group in enumerate(groups[1]) if spelled(second, group) == word)
        own = next(w for w, group in enumerate(groups[0]) if spelled(first, group).casefold() == word.casefold())
        assert cosine[-1] == pytest.approx(every[at, own], abs=1e-6)
        assert others[-1] == pytest.approx(np.delete(every[at], own).mean(), abs=1e-6)


def spelled(trace, group) -> str:
    return "".join(trace.source_tokens[i] for i in group).replace("\u2581", "")


def test_a_sentence_is_one_with_itself(tiny_translator):
    trace = tiny_translator.translate("Der kleine Hund schläft")
    found = alike(tiny_translator, trace, trace)
    assert np.allclose(found.cosine, 1.0) and (found.others < 1).all()
    assert found.cosine.shape == found.others.shape == (len(content_words(trace.source_tokens)), 3)


def test_what_cannot_be_compared_is_refused(tiny_translator, recurrent_checkpoint):
    one, other = (tiny_translator.translate(text) for text in ("Hund", "Katze"))
    with pytest.raises(ValueError, match="no word in common"):
        alike(tiny_translator, one, other)
    recurrent = Translator.load(recurrent_checkpoint, "cpu")
    with pytest.raises(ValueError, match="Transformer"):
        alike(recurrent, recurrent.translate("Hund"), recurrent.translate("Hund"))


@pytest.mark.parametrize("direction", ["de-en", "en-de", "en-fr"])
def test_the_followed_word_of_every_pair_has_a_row(shipped_translators, direction):
    translator = next(
        one for one in shipped_translators.all if isinstance(one.model, Transformer) and direction in one.directions
    )
    for pair in minimal_pairs(direction[:2]):
        traces = translator.trace_batch([pair.first, pair.second], direction)
        found = alike(translator, *traces)
        assert pair.word.casefold() in [word.casefold() for word in found.words], pair
        assert (np.abs(found.cosine) <= 1 + 1e-9).all()
