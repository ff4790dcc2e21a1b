"""Corpora of three columns: their parts, what may train, and what is implausible."""

from __future__ import annotations

from pathlib import Path

import pytest

from attention_atlas.model.training import corpora
from attention_atlas.model.training.sources.folder import read_folder
from attention_atlas.model.training.sources.more import is_plausible, read_rows
from tests.model.training.test_corpora import bucket, options, write_gz, write_tatoeba


def english(wanted, count: int, form: str = "We saw {} birds there.") -> list[str]:
    """The first sentences of a form that fall into wanted buckets."""
    corpus = (sentence for n in range(10**6) if bucket(sentence := form.format(n)) in wanted)
    return [next(corpus) for _ in range(count)]


def german(sentence: str) -> str:
    return sentence.replace("We saw", "Wir sahen dort").replace("birds there", "Vögel")


def french(sentence: str) -> str:
    return sentence.replace("We saw", "Nous y avons vu").replace("birds there", "oiseaux")


def write_more(folder: Path, **files: list[tuple[str, str, str]]) -> None:
    for name, rows in files.items():
        write_gz(folder / "more" / f"{name.replace('_', '-')}.tsv.gz", map("\t".join, rows))


def parts(folder: Path, pair: tuple[str, str]) -> dict[str, dict[str, set]]:
    return {
        s.train.name: {"train": set(s.train.pairs), "dev": set(s.dev.pairs), "test": set(s.test.pairs)}
        for s in read_folder(folder, [pair])
    }


def rows_of(*sentences: str) -> list[tuple[str, str, str]]:
    return [(sentence, german(sentence), french(sentence)) for sentence in sentences]


def test_the_english_sentence_determines_the_split_in_all_languages(tmp_path):
    test, dev, train = (english(wanted, 2) for wanted in ({0}, {1}, {50}))
    write_more(tmp_path, stories=rows_of(*test, *dev, *train))
    corpus = parts(tmp_path, ("de", "en"))["stories"]
    for name, sentences in (("test", test), ("dev", dev), ("train", train)):
        assert corpus[name] == {(german(s), s) for s in sentences}
        assert parts(tmp_path, ("en", "fr"))["stories"][name] == {(french(s), s) for s in sentences}
        assert parts(tmp_path, ("fr", "de"))["stories"][name] == {(german(s), french(s)) for s in sentences}


def test_files_of_one_domain_are_one_corpus_with_its_own_share_held_out(tmp_path):
    (first,), (second,) = english({3}, 1), english({6}, 1)
    write_more(tmp_path, chat_wmt=rows_of(first), restaurant_woz=rows_of(second))
    corpus = parts(tmp_path, ("de", "en"))["chats"]  # 4 % test, 3 % dev
    assert corpus["test"] == {(german(first), first)} and corpus["dev"] == {(german(second), second)}


def test_no_held_out_sentence_of_one_corpus_trains_in_another_on_any_side(tmp_path):
    (held,), (free,) = english({3}, 1), english({50}, 1)  # test of the chats, which hold out 4 %; not of the stories
    other = "An entirely other sentence is here."
    assert bucket(other) > 10
    stories = [(held, "Ganz anders.", ""), (other, german(held), ""), (other, "", french(held)), *rows_of(free)]
    write_more(tmp_path, chat_wmt=rows_of(held), stories=stories)
    assert parts(tmp_path, ("de", "en"))["stories"]["train"] == {(german(free), free)}
    assert parts(tmp_path, ("fr", "en"))["stories"]["train"] == {(french(free), free)}


def test_known_splits_stay_and_their_training_pairs_are_not_held_out(tmp_path):
    trained, tested = english({3}, 1), english({0}, 1)
    write_tatoeba(tmp_path / "tatoeba/deu-eng.zip", [f"{s}\t{german(s)}" for s in (*trained, *tested)])
    before = parts(tmp_path, ("de", "en"))["tatoeba"]
    assert before["train"] and before["test"]
    write_more(tmp_path, chat_wmt=rows_of(*trained), stories=[(english({50}, 1)[0], german(tested[0]), "")])
    corpus = parts(tmp_path, ("de", "en"))
    assert corpus["tatoeba"] == before and set(corpus) == {"tatoeba"}  # nothing is left of the two others
    assert "chats" not in parts(tmp_path, ("fr", "en"))  # although the other pair has no older corpus


def test_talks_are_held_out_but_never_trained_on(tmp_path):
    every = english(range(100), 60)
    write_more(tmp_path, ted=rows_of(*every), stories=rows_of("We saw it all."))
    corpus = parts(tmp_path, ("de", "en"))["ted"]
    assert not corpus["train"] and {e for _, e in corpus["test"]} == {s for s in every if bucket(s) < 4}
    clean = corpora.find(options(data=tmp_path), ["de-en"])
    assert {s.train.name: len(s.train.pairs) for s in clean} == {"stories": 1, "ted": 0}


def test_only_familiar_words_of_dictionaries_are_trained_on(tmp_path):
    trained = english(range(10, 100), 30)
    write_more(tmp_path, stories=rows_of(*trained), lexicon=[("birds", "Vögel", ""), ("birds; there", "Vögel", "")])
    lines = (
        "birds\tVögel",
        "saw there sb.\tjdn. dort sehen",
        "we/there\twir",
        "we saw cormorants\twir sahen Kormorane",
    )
    path = tmp_path / "dictionary" / "deu-eng.tsv.gz"
    write_gz(path, lines)
    corpus = {s.train.name: s.train.pairs for s in corpora.find(options(data=tmp_path), ["de-en"])}
    assert corpus["dictionary"] == (("Vögel", "birds"),) == corpus["lexicon"]  # nobody met a somebody
    assert "dictionary" not in {s.train.name for s in read_folder(tmp_path, [("fr", "en")])}
    write_gz(path, ["dog\tHund", "bird"])
    with pytest.raises(ValueError, match="line 2: expected English TAB German, found 1"):
        corpora.find(options(data=tmp_path), ["de-en"])


def test_abbreviations_of_a_dictionary_are_written_out(tmp_path):
    line = "to take sb.’s word for sth.\tjdm. etw. aufs Wort glauben"
    write_gz(tmp_path / "dictionary" / "deu-eng.tsv.gz", [line])
    (corpus,) = read_folder(tmp_path, [("de", "en")])
    assert corpus.train.pairs == (("jemandem etwas aufs Wort glauben", "to take somebody's word for something"),)


def test_a_row_without_three_columns_is_refused(tmp_path):
    write_gz(tmp_path / "x.tsv.gz", ["A dog.\tEin Hund.\t", "A cat.\tEine Katze."])
    with pytest.raises(ValueError, match="line 2: expected English TAB German TAB French, found 2"):
        read_rows(tmp_path / "x.tsv.gz")


@pytest.mark.parametrize(
    "german_side, english_side, fits",
    [
        ("Der Bus kommt um neun.", "The bus comes at nine.", True),
        ("Ja.", "Yes.", True),
        ("Ein Hotel in Berlin.", "A hotel in Berlin.", True),
        ("Der Bus.", "The bus that we were waiting for has not come yet.", False),
        ("The bus comes at nine and it is late.", "The bus was late, and that was it.", False),
        ("Please leave this text untranslated", "Please leave this text untranslated", False),
        ("Drücke <b>Start</b>.", "Press <b>start</b>.", False),
        ("Gehe zu www.katze.de", "Go to www.cat.com", False),
        ("...", "So?", False),
    ],
)
def test_implausible_pairs_are_detected(german_side, english_side, fits):
    assert is_plausible((german_side, english_side), ("de", "en")) is fits
    assert is_plausible((english_side, german_side), ("en", "de")) is fits
