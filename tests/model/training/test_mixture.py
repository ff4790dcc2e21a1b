"""What an epoch draws: other names in real pairs, filled frames, shares of corpora; the readers of news and tables."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from attention_atlas.model.text.slots.fillers import Fillers
from attention_atlas.model.training.config import TrainConfig
from attention_atlas.model.training.mixture import Mixture
from attention_atlas.model.training.sources.news import read_news
from attention_atlas.model.training.sources.readers import Corpus, normalised
from attention_atlas.model.training.sources.substitution import Substituter
from attention_atlas.model.training.sources.tables import read_table


@pytest.fixture(scope="module")
def german() -> Substituter:
    return Substituter(Fillers(), ("de", "en"))


@pytest.fixture(scope="module")
def french() -> Substituter:
    return Substituter(Fillers(), ("en", "fr"))


def replaced(substituter: Substituter, pair: tuple[str, str], seed: int = 1) -> tuple[str, str]:
    slots = substituter.slots(pair)
    assert slots, pair
    return substituter.replace(pair, slots, np.random.default_rng(seed))


def test_a_name_is_replaced_on_both_sides(german):
    for seed in range(20):
        source, target = replaced(german, ("Ich glaube, dass Tom schläft.", "I think that Tom is asleep."), seed)
        name = source.removeprefix("Ich glaube, dass ").removesuffix(" schläft.")
        assert name != "Tom" and target == f"I think that {name} is asleep."


def test_a_town_is_replaced_by_each_languages_name(german):
    seen = set()
    for seed in range(300):
        source, target = replaced(german, ("Er lebt in München.", "He lives in Munich."), seed)
        seen.add((source.removeprefix("Er lebt in ")[:-1], target.removeprefix("He lives in ")[:-1]))
    assert ("Mailand", "Milan") in seen and all(not (a == "Mailand" and b != "Milan") for a, b in seen)


def test_the_german_genitive_is_kept(german):
    endings = set()
    for seed in range(200):
        source, target = replaced(german, ("Toms Auto ist rot.", "Tom's car is red."), seed)
        name = target.removesuffix("'s car is red.")
        assert source in (f"{name}s Auto ist rot.", f"{name}’ Auto ist rot.")
        assert source.startswith(f"{name}’") == (name[-1] in "sßxz")
        endings.add(source.startswith(f"{name}’"))
    assert endings == {True, False}


def test_dates_times_and_numbers_take_the_form_of_their_language(french):
    kinds = {
        slot.kind: slot
        for slot in french.slots(
            (
                "On May 3rd, 1999 at 2:30 we sold 3,000 cars.",
                "Le 3 mai 1999 à 14 h 30, nous avons vendu 3 000 voitures.",
            )
        )
    }
    assert set(kinds) == {"full_date", "time", "number"}
    source, target = replaced(french, ("It costs 3.5 euros.", "Cela coûte 3,5 euros."))
    assert source.split()[2].replace(".", ",") == target.split()[2] and "," in target


@pytest.mark.parametrize(
    "pair",
    [
        ("Das Restaurant ist zu.", "The Restaurant is closed."),
        ("Tom schläft.", "He is asleep."),
        ("Ich bin 25.", "I am 26."),
        ("Er heißt Tommy.", "He is called Tom."),
    ],
)
def test_what_does_not_stand_on_both_sides_stays(german, pair):
    assert german.slots(pair) == ()


def mixture(tokenizer, corpora: list[Corpus], held_out: tuple[Corpus, ...] = (), **changes) -> Mixture:
    config = TrainConfig(**{"directions": ("de-en",), **changes})
    return Mixture(corpora, config, tokenizer, max_length=200, held_out=held_out)


def corpus(pairs, name: str = "own") -> Corpus:
    return Corpus(name, ("de", "en"), tuple(pairs))


def test_an_epoch_is_a_function_of_its_number(tokenizer):
    drawn = [
        mixture(tokenizer, [corpus([("Tom schläft.", "Tom is asleep.")] * 20)], substitution=0.5, frame_pairs=10).epoch(
            number
        )
        for number in (0, 0, 1)
    ]
    drawn = [(list(one.source), list(one.target)) for one in drawn]
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[2][0]


def test_a_share_of_a_corpus_is_drawn_by_chance_and_whole_times_hold_every_pair(tokenizer):
    pairs = [(f"Zahl {i}", f"number {i}") for i in range(20)]
    made = mixture(tokenizer, [corpus(pairs)], repeats=(("own", 1.5),))
    epochs = [made.epoch(number) for number in range(2)]
    for epoch in epochs:
        assert len(epoch.source) == len(made) == 30
        assert {tokenizer.decode(ids) for ids in epoch.target} == {b for _, b in pairs}
    assert sorted(epochs[0].source) != sorted(epochs[1].source)


def test_composed_sentences_are_added_in_both_directions_of_their_languages(tokenizer):
    one = [corpus([("Tom schläft.", "Tom is asleep.")])]
    for directions, expected in {("de-en",): 31, ("en-de",): 31, ("de-en", "en-de"): 62}.items():
        made = mixture(tokenizer, one, directions=directions, composed_pairs=30)
        epoch = made.epoch(0)
        assert len(epoch.source) == len(made) == expected
        assert len({tuple(ids) for ids in epoch.source}) > 0.8 * expected
    french = [Corpus("own", ("en", "fr"), (("Tom is asleep.", "Tom dort."),))]
    assert len(mixture(tokenizer, french, directions=("en-fr",), composed_pairs=30).epoch(0).source) == 1


def test_nothing_that_is_made_equals_a_held_out_sentence(tokenizer):
    pair = ("Wir sind in Rom.", "We are in Rome.")
    free = mixture(tokenizer, [corpus([pair] * 400)], substitution=1.0).epoch(0)
    made = {tokenizer.decode(ids) for ids in free.target} - {pair[1]}
    kept_out = corpus([("anders", sentence) for sentence in made], "dev")
    strict = mixture(tokenizer, [corpus([pair] * 400)], (kept_out,), substitution=1.0).epoch(0)
    forbidden = {normalised(sentence) for sentence in made}
    assert made and not forbidden & {normalised(tokenizer.decode(ids)) for ids in strict.target}


def test_a_corpus_that_a_model_wrote_keeps_its_names(tokenizer):
    made = Corpus("synthetic", ("de", "en"), (("Tom schläft.", "Tom is asleep."),) * 20, one_way=True)
    epoch = mixture(tokenizer, [made], substitution=1.0).epoch(0)
    assert {tokenizer.decode(ids) for ids in epoch.target} == {"Tom is asleep."}


def write(path, text: str) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def test_news_is_split_by_year(tmp_path):
    for name in ("newstest2012", "newstest2013", "newstest2018.deen", "newsdiscusstest2015.enfr"):
        write(tmp_path / f"{name}.de.gz", f"{name} de\n")
        write(tmp_path / f"{name}.en.gz", f"{name} en\n")
    write(tmp_path / "newstest2014.de.gz", "allein\n")  # its English side is missing
    parts = read_news(tmp_path, ("de", "en"))
    assert parts["train"].pairs == (("newstest2012 de", "newstest2012 en"),)
    assert parts["dev"].pairs == (("newstest2013 de", "newstest2013 en"),) and len(parts["test"].pairs) == 2
    assert read_news(tmp_path, ("fr", "en")) is None


def test_a_table_has_two_columns(tmp_path):
    write(tmp_path / "deu-eng.tsv.gz", "A dog.\tEin Hund.\n")
    assert read_table(tmp_path / "deu-eng.tsv.gz", "de", name="t").pairs == (("Ein Hund.", "A dog."),)
    write(tmp_path / "bad.tsv.gz", "A dog.\tEin Hund.\nA cat.\n")
    with pytest.raises(ValueError, match="line 2"):
        read_table(tmp_path / "bad.tsv.gz", "de", name="t")
