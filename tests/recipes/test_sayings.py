"""The sayings, a corpus that comes with the code: complete, without duplicates, and unlike the everyday test set."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np
import pytest
from scipy.sparse import csr_array

from attention_atlas.model.training import options
from attention_atlas.model.training.sources.readers import Corpus, comparison_key
from recipes.everyday import DIRECTIONS, read_everyday
from recipes.sayings import read_sayings
from recipes.train import MIXED


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


def test_sayings_are_read_only_if_an_option_names_them(tmp_path):
    for name, line in {"a.de": "Tom schläft.", "a.en": "Tom is asleep."}.items():
        (tmp_path / name).write_text(line + "\n")
    files = ["--pair", "de-en", str(tmp_path / "a.de"), str(tmp_path / "a.en")]

    def corpora_of(*repeat: str) -> list[Corpus]:
        args = options.parse(["--run-dir", str(tmp_path / "run"), *files, *repeat], "", MIXED)
        return [splits.train for splits in MIXED.find(args, ["de-en"])]

    assert [corpus.name for corpus in corpora_of()] == ["a.de"]
    assert [(corpus.name, corpus.languages) for corpus in corpora_of("--repeat", "sayings", "2")][1:] == [
        ("sayings", languages) for languages in (("de", "en"), ("de", "fr"), ("en", "fr"))
    ]


def words_in(texts: list[list[str]], known: list[list[str]]) -> csr_array:
    """Return a matrix [text, word] of zeros and ones: which words of the known texts each text has."""
    columns = {word: column for column, word in enumerate(sorted({word for text in known for word in text}))}
    cells = sorted({(row, columns[word]) for row, text in enumerate(texts) for word in text if word in columns})
    return csr_array((np.ones(len(cells), int), np.array(cells).T), shape=(len(texts), len(columns)))


@pytest.mark.long
def test_no_saying_resembles_a_test_sentence(corpora):
    tested = [comparison_key(s.source).split() for direction in DIRECTIONS for s in read_everyday(direction)]
    sides = {comparison_key(side) for corpus in corpora for pair in corpus.pairs for side in pair}
    sayings = [side.split() for side in sorted(sides)]
    shared = (words_in(sayings, tested) @ words_in(tested, tested).T).toarray()
    lengths = np.add.outer([len(words) for words in sayings], [len(words) for words in tested])
    # A ratio above 0.6 requires this many shared words.
    for saying, sentence in zip(*np.nonzero(2 * shared > 0.5 * lengths)):
        assert SequenceMatcher(None, sayings[saying], tested[sentence]).ratio() <= 0.6, sayings[saying]
