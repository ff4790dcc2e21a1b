"""The everyday sentences that come with the code: each once, whole, and none of the visitor's test."""

from __future__ import annotations

from difflib import SequenceMatcher

import pytest

from model.evaluation.everyday import DIRECTIONS, read_everyday
from model.training.sources.readers import Corpus, normalised
from model.training.sources.tables import read_sayings


@pytest.fixture(scope="module")
def corpora() -> list[Corpus]:
    return read_sayings()


def test_every_pair_of_languages_has_its_corpus(corpora):
    assert [corpus.languages for corpus in corpora] == [("de", "en"), ("de", "fr"), ("en", "fr")]
    german = corpora[0].pairs
    assert len(german) > 900 and len({source for source, _ in german}) == len(german)
    for corpus in corpora:
        for pair in corpus.pairs:
            assert all(side == side.strip() and side[-1] in ".!?…»\"'" for side in pair), pair


def test_none_is_nearly_a_sentence_of_the_visitors_test(corpora):
    tested = [normalised(s.source).split() for direction in DIRECTIONS for s in read_everyday(direction)]
    for saying in {normalised(side) for corpus in corpora for pair in corpus.pairs for side in pair}:
        words = saying.split()
        # A ratio above 0.6 needs that many words of both.
        for other in tested:
            shared = len(set(words) & set(other))
            if 2 * shared > 0.5 * (len(words) + len(other)):
                assert SequenceMatcher(None, words, other).ratio() <= 0.6, saying
