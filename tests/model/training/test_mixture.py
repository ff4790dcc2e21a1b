"""Mixtures of corpora, and the readers of news and tables."""

from __future__ import annotations

import pytest

from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.source import Mixture
from attention_atlas.model.training.sources.folder import read_news
from attention_atlas.model.training.sources.readers import Corpus, read_table
from tests.model.training.test_corpora import write_gz


def test_fractions_of_a_corpus_are_sampled_and_whole_repeats_contain_every_pair(tokenizer):
    pairs = [(f"Zahl {i}", f"number {i}") for i in range(20)]
    corpus = Corpus("own", ("de", "en"), tuple(pairs))
    config = TrainConfig(directions=("de-en",), repeats=(("own", 1.5),))
    made = Mixture([corpus], config, tokenizer, max_length=200, held_out=())
    epochs = [made.epoch(number) for number in range(2)]
    for epoch in epochs:
        assert len(epoch.source) == len(made) == 30
        assert {tokenizer.decode(ids) for ids in epoch.target} == {b for _, b in pairs}
    assert sorted(epochs[0].source) != sorted(epochs[1].source)


def test_news_is_split_by_year(tmp_path):
    for name in ("newstest2012", "newstest2013", "newstest2018.deen", "newsdiscusstest2015.enfr"):
        for language in ("de", "en"):
            write_gz(tmp_path / f"{name}.{language}.gz", [f"{name} {language}"])
    write_gz(tmp_path / "newstest2014.de.gz", ["allein"])  # its English side is missing
    parts = read_news(tmp_path, ("de", "en"))
    assert parts["train"].pairs == (("newstest2012 de", "newstest2012 en"),)
    assert parts["dev"].pairs == (("newstest2013 de", "newstest2013 en"),) and len(parts["test"].pairs) == 2
    assert read_news(tmp_path, ("fr", "en")) is None


def test_a_table_has_two_columns(tmp_path):
    write_gz(tmp_path / "deu-eng.tsv.gz", ["A dog.\tEin Hund."])
    assert read_table(tmp_path / "deu-eng.tsv.gz", "English TAB German") == [["A dog.", "Ein Hund."]]
    write_gz(tmp_path / "bad.tsv.gz", ["A dog.\tEin Hund.", "A cat."])
    with pytest.raises(ValueError, match="line 2"):
        read_table(tmp_path / "bad.tsv.gz", "English TAB German")
