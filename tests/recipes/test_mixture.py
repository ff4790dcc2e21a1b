"""The examples of an epoch: pairs with replaced names, filled frames, composed sentences."""

from __future__ import annotations

import numpy as np
import pytest

from attention_atlas.model.training.sources.readers import Corpus, comparison_key
from recipes.mixture import Mixture, MixtureConfig
from recipes.slots.fillers import Fillers
from recipes.substitution import Substituter


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


def test_a_town_is_replaced_by_its_name_in_each_language(german):
    towns = set()
    for seed in range(300):
        source, target = replaced(german, ("Er lebt in München.", "He lives in Munich."), seed)
        towns.add((source.removeprefix("Er lebt in ")[:-1], target.removeprefix("He lives in ")[:-1]))
    assert ("Mailand", "Milan") in towns and all(not (a == "Mailand" and b != "Milan") for a, b in towns)


def test_the_german_genitive_agrees_with_the_new_name(german):
    endings = set()
    for seed in range(200):
        source, target = replaced(german, ("Toms Auto ist rot.", "Tom's car is red."), seed)
        name = target.removesuffix("'s car is red.")
        assert source in (f"{name}s Auto ist rot.", f"{name}’ Auto ist rot.")
        assert source.startswith(f"{name}’") == (name[-1] in "sßxz")
        endings.add(source.startswith(f"{name}’"))
    assert endings == {True, False}


def test_dates_times_and_numbers_have_the_form_of_their_language(french):
    english = "On May 3rd, 1999 at 2:30 we sold 3,000 cars."
    slots = french.slots((english, "Le 3 mai 1999 à 14 h 30, nous avons vendu 3 000 voitures."))
    assert {slot.kind for slot in slots} == {"full_date", "time", "number"}
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
def test_values_on_one_side_only_are_unchanged(german, pair):
    assert german.slots(pair) == ()


def mixture(tokenizer, corpora: list[Corpus], held_out: tuple[Corpus, ...] = (), **changes) -> Mixture:
    config = MixtureConfig(**{"directions": ("de-en",), **changes})
    return Mixture(corpora, config, tokenizer, max_length=200, held_out=held_out)


def corpus(pairs, name: str = "own") -> Corpus:
    return Corpus(name, ("de", "en"), tuple(pairs))


def test_an_epoch_depends_on_its_number_only(tokenizer):
    def examples(number: int) -> tuple[list, list]:
        pairs = [corpus([("Tom schläft.", "Tom is asleep.")] * 20)]
        epoch = mixture(tokenizer, pairs, substitution=0.5, frame_pairs=10).epoch(number)
        return list(epoch.source), list(epoch.target)

    assert examples(0) == examples(0)
    assert examples(0)[0] != examples(1)[0]


def test_composed_sentences_are_added_in_both_directions_of_their_languages(tokenizer):
    corpora = [corpus([("Tom schläft.", "Tom is asleep.")])]
    for directions, expected in {("de-en",): 31, ("en-de",): 31, ("de-en", "en-de"): 62}.items():
        mixed = mixture(tokenizer, corpora, directions=directions, composed_pairs=30)
        epoch = mixed.epoch(0)
        assert len(epoch.source) == len(mixed) == expected
        assert len({tuple(ids) for ids in epoch.source}) > 0.8 * expected
    for languages, expected in {("en", "fr"): 31, ("de", "fr"): 1}.items():
        french = [Corpus("own", languages, (("Tom is asleep.", "Tom dort."),))]
        mixed = mixture(tokenizer, french, directions=("-".join(languages),), composed_pairs=30)
        assert len(mixed.epoch(0).source) == expected


def test_no_generated_example_equals_a_held_out_sentence(tokenizer):
    pair = ("Wir sind in Rom.", "We are in Rome.")
    free = mixture(tokenizer, [corpus([pair] * 400)], substitution=1.0).epoch(0)
    generated = {tokenizer.decode(ids) for ids in free.target} - {pair[1]}
    dev = corpus([("anders", sentence) for sentence in generated], "dev")
    strict = mixture(tokenizer, [corpus([pair] * 400)], (dev,), substitution=1.0).epoch(0)
    forbidden = {comparison_key(sentence) for sentence in generated}
    assert generated and not forbidden & {comparison_key(tokenizer.decode(ids)) for ids in strict.target}


def test_names_in_synthetic_corpora_are_unchanged(tokenizer):
    synthetic = Corpus("synthetic", ("de", "en"), (("Tom schläft.", "Tom is asleep."),) * 20, one_way=True)
    epoch = mixture(tokenizer, [synthetic], substitution=1.0).epoch(0)
    assert {tokenizer.decode(ids) for ids in epoch.target} == {"Tom is asleep."}
