"""Composed sentences: forms of words and word order in German and English."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recipes.composed import english, german
from recipes.composed.clauses import Clause
from recipes.composed.english_order import in_english
from recipes.composed.german_order import in_german
from recipes.composed.lexicon import Lexicon, rows
from recipes.composed.phrases import Phrases
from recipes.composed.sentences import Composer
from recipes.slots.fillers import Fillers


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon()


@pytest.fixture
def phrases(lexicon) -> Phrases:
    return Phrases(lexicon, Fillers(), np.random.default_rng(1))


def verb(lexicon: Lexicon, written: str, auxiliary: str = "haben") -> german.Verb:
    return german.Verb.of(written, lexicon.strong, auxiliary)


@pytest.mark.parametrize(
    ("written", "forms"),
    [
        ("ab|holen", "hole holst holt holen holt holen"),
        ("warten", "warte wartest wartet warten wartet warten"),
        ("nehmen", "nehme nimmst nimmt nehmen nehmt nehmen"),
        ("lesen", "lese liest liest lesen lest lesen"),
        ("halten", "halte hältst hält halten haltet halten"),
        ("ein|laden", "lade lädst lädt laden ladet laden"),
        ("sammeln", "sammle sammelst sammelt sammeln sammelt sammeln"),
        ("rechnen", "rechne rechnest rechnet rechnen rechnet rechnen"),
        ("wissen", "weiß weißt weiß wissen wisst wissen"),
    ],
)
def test_german_verbs_by_person(lexicon, written, forms):
    assert " ".join(verb(lexicon, written).present(person) for person in german.PERSONS) == forms


def test_german_principal_parts(lexicon):
    parts = {
        "ab|holen": ("holte", "abgeholt", "abzuholen"),
        "besuchen": ("besuchte", "besucht", "zu besuchen"),
        "telefonieren": ("telefonierte", "telefoniert", "zu telefonieren"),
        "öffnen": ("öffnete", "geöffnet", "zu öffnen"),
        "mit|bringen": ("brachte", "mitgebracht", "mitzubringen"),
        "vergessen": ("vergaß", "vergessen", "zu vergessen"),
    }
    for written, expected in parts.items():
        verb_forms = verb(lexicon, written)
        assert (verb_forms.simple_past("er"), verb_forms.past_participle, verb_forms.with_zu) == expected
    assert verb(lexicon, "finden").simple_past("ihr") == "fandet"
    assert [verb(lexicon, "nehmen").imperative(p) for p in ("du", "ihr", "sie")] == ["nimm", "nehmt", "nehmen Sie"]
    assert verb(lexicon, "warten").imperative("du") == "warte" and verb(lexicon, "fahren").imperative("du") == "fahr"


def test_german_phrases_by_case(lexicon, phrases):
    neighbour = next(noun for noun in lexicon.nouns if noun.singular == "Nachbar")
    nice = next(adjective for adjective in lexicon.adjectives if adjective.base == "nett")
    cases = ("nom", "acc", "dat", "gen")

    def forms(*args) -> list[str]:
        phrase = phrases.built(*args).german
        return [phrase[case] for case in cases]

    singular = ["der nette Nachbar", "den netten Nachbarn", "dem netten Nachbarn", "des netten Nachbarn"]
    assert forms(neighbour, False, "def", None, nice) == singular
    plural = ["nette Nachbarn", "nette Nachbarn", "netten Nachbarn", "netter Nachbarn"]
    assert forms(neighbour, True, "", None, nice) == plural
    assert forms(neighbour, False, "ein", None, nice)[0] == "ein netter Nachbar"
    child = next(noun for noun in lexicon.nouns if noun.singular == "Kind")
    assert forms(child, True, "def", None, None)[2] == "den Kindern"
    assert forms(child, False, "def", None, None)[3] == "des Kindes"
    assert phrases.built(child, False, "ein", None, None).english[0] == "a child"


def test_english_forms(lexicon):
    def form(base: str) -> tuple[str, str, str]:
        verb_forms = english.Verb.of(base, lexicon.irregular)
        return verb_forms.present(2), verb_forms.simple_past(2), verb_forms.ing

    assert form("pick") == ("picks", "picked", "picking")
    assert form("try") == ("tries", "tried", "trying")
    assert form("catch") == ("catches", "caught", "catching")
    assert form("take") == ("takes", "took", "taking")
    assert form("stop") == ("stops", "stopped", "stopping")
    assert form("get") == ("gets", "got", "getting")
    assert form("be") == ("is", "was", "being")
    words = ("apple", "hour", "university", "umbrella", "uncle", "USB stick", "honest man", "unimportant one")
    assert [english.article(word) for word in words] == ["an", "an", "a", "an", "an", "a", "an", "an"]


def clause(lexicon: Lexicon, phrases: Phrases, **changes) -> Clause:
    """Return the clause of "Ich hole das Kind ab.", with changes."""
    entry = next(e for e in lexicon.verbs if e.german.whole == "abholen" and len(e.complements) == 1)
    child = next(noun for noun in lexicon.nouns if noun.singular == "Kind")
    phrase = phrases.built(child, False, "def", None, None)
    return Clause(phrases.pronoun("ich"), entry, (phrase,), **{"tense": "habit", **changes})


def test_word_order_of_a_clause(lexicon, phrases):
    now, past = clause(lexicon, phrases), clause(lexicon, phrases, tense="past", negation="not")
    assert in_german(now, "main") == "ich hole das Kind ab"
    assert in_german(now, "last") == "ich das Kind abhole"
    assert in_german(now, "question") == "hole ich das Kind ab"
    assert in_german(now, "zu") == "das Kind abzuholen"
    assert in_german(past, "main") == "ich habe das Kind nicht abgeholt"
    assert in_german(past, "last") == "ich das Kind nicht abgeholt habe"
    assert in_english(now, "main") == "I pick the child up"
    assert in_english(past, "main") == "I did not pick the child up"
    assert in_english(past, "question") == "didn't I pick the child up"
    assert in_english(now, "to") == "to pick the child up"
    must = clause(lexicon, phrases, tense="must", negation="not")
    assert in_english(must, "question") == "don't I have to pick the child up"
    leaving = clause(lexicon, phrases, tense="now", negation="not")
    assert in_english(leaving, "question") == "aren't I picking the child up"


def test_tenses_of_both_languages(lexicon, phrases):
    sentences = {
        "told": ("ich holte das Kind ab", "I picked the child up"),
        "perfect": ("ich habe das Kind abgeholt", "I have picked the child up"),
        "pluperfect": ("ich hatte das Kind abgeholt", "I had picked the child up"),
        "will": ("ich werde das Kind abholen", "I will pick the child up"),
        "must": ("ich muss das Kind abholen", "I have to pick the child up"),
        "was allowed": ("ich durfte das Kind abholen", "I was allowed to pick the child up"),
        "would": ("ich würde das Kind abholen", "I would pick the child up"),
        "now": ("ich hole das Kind ab", "I am picking the child up"),
    }
    for tense, expected in sentences.items():
        sentence = clause(lexicon, phrases, tense=tense)
        assert (in_german(sentence, "main"), in_english(sentence, "main")) == expected


def test_after_an_initial_adverbial_the_german_verb_precedes_its_subject(lexicon, phrases):
    yesterday = next(a for a in lexicon.adverbials if a.german == "gestern")
    sentence = clause(lexicon, phrases, tense="past", adverbials=(yesterday,), front="adverbial")
    assert in_german(sentence, "main") == "gestern habe ich das Kind abgeholt"
    assert in_english(sentence, "main") == "yesterday, I picked the child up"


def test_pairs_depend_on_the_seed_only_and_are_well_formed(lexicon):
    composers = [Composer(Fillers(), np.random.default_rng(3), lexicon) for _ in range(2)]
    first, second = ([composer.pair() for _ in range(300)] for composer in composers)
    assert first == second and len(set(first)) > 280
    for de, en in first:
        assert de[0].isupper() or not de[0].isalpha()
        assert de[-1] in ".?!" and en[-1] in ".?!" and "  " not in de + en and ",," not in de + en
        assert (de[-1] == "?") == (en[-1] == "?")
    for kind in composers[0].kinds:
        de, en = kind()
        assert de and en


def test_every_class_of_nouns_that_a_verb_names_exists(lexicon):
    classes = {name for entry in lexicon.verbs for c in entry.complements for name in c.classes}
    assert classes | {name for entry in lexicon.verbs for name in entry.subjects} <= set(lexicon.by_class)


def test_the_opposite_direction_swaps_the_sides_of_a_pair(lexicon):
    forward, backward = (Composer(Fillers(), np.random.default_rng(5), lexicon).pair(d) for d in ("de-en", "en-de"))
    assert forward == backward[::-1]


def test_tables_have_no_duplicate_lines():
    for name in ("nouns.tsv", "verbs.tsv", "adverbials.tsv"):
        lines = [tuple(row) for row in rows(name)]
        assert len(set(lines)) == len(lines) > 100


def test_tenses_of_the_passive(lexicon, phrases):
    sentences = {
        "habit": ("das Kind wird abgeholt", "the child is picked up"),
        "future": ("das Kind wird abgeholt", "the child will be picked up"),
        "past": ("das Kind wurde abgeholt", "the child was picked up"),
        "will": ("das Kind wird abgeholt werden", "the child will be picked up"),
        "must": ("das Kind muss abgeholt werden", "the child has to be picked up"),
        "perfect": ("das Kind ist abgeholt worden", "the child has been picked up"),
    }
    for tense, expected in sentences.items():
        active = clause(lexicon, phrases, tense=tense)
        passive = replace(active, subject=active.arguments[0], passive=True)
        assert (in_german(passive, "main"), in_english(passive, "main")) == expected
