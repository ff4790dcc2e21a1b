"""The test set of everyday sentences: correct translations pass, wrong ones fail, its structure is as documented."""

from __future__ import annotations

import json
from collections import Counter
from statistics import median

import pytest

from recipes.everyday import DIRECTIONS, Everyday, Point, compiled, read_everyday, score, uniform
from recipes.everyday.__main__ import failures, main, record

GROUPS = (
    "relative clauses",
    "subordinate clauses",
    "separable verbs",
    "negation",
    "questions",
    "modal verbs and requests",
    "idioms",
    "weather, food, work",
    "numbers and dates",
    "pronouns and cases",
    "long sentences",
    "small talk",
)
WRONG = {  # the start of a source, a wrong translation, and the point that it misses
    "de-en": [
        ("Die kleine Katze", "The small cat fell asleep in the garden yesterday, Minka.", "who slept"),
        ("Die kleine Katze", "The little cat that is called Minka likes the garden yesterday.", "who slept"),
        ("Der Mann, der", "The man called in the office yesterday is my new boss.", "who called"),
        ("Nachdem wir", "After we had packed the suitcases, we went straight to the beach.", "what came first"),
        ("Nicht alle", "All my friends don't like food as spicy as I do.", "who likes it"),
        ("Du musst deine", "You must not take off your shoes in the hallway, the floor is dirty.", "no duty"),
        ("Den Hund hat", "The dog fed the little boy, not the cat.", "who fed whom"),
        ("Wir haben euch", "You saw us at the market yesterday, but we didn't notice you.", "who saw whom"),
        ("Meine Großmutter", "My grandmother was born in 1983 and has seven grandchildren.", "who was born when"),
        ("Unser Termin", "Our appointment at the dentist is on March 14 at half past four.", "when"),
        ("Ich arbeite seit", "I worked as a nurse in a big hospital three years ago.", "since when"),
        ("Ich drücke dir", "I'll press your thumbs for your exam tomorrow.", "the wish"),
        ("Wir haben leider", "Unfortunately, we have milk in the fridge.", "what is gone"),
    ],
    "en-de": [
        ("The man who", "Der Mann rief gestern im Büro an, mein neuer Chef.", "who called"),
        ("You'd better", "Nimm lieber einen Schirm, es regnet Katzen und Hunde.", "what the rain does"),
        ("You don't have to", "Du darfst deine Schuhe im Flur nicht ausziehen, der Boden ist schmutzig.", "no duty"),
        ("My train arrives", "Mein Zug kommt um halb acht in Leipzig an.", "when"),
        ("His sister gave", "Seine Schwester hat ihm seine alte Gitarre zum Geburtstag geschenkt.", "whose what when"),
        ("It was the dog", "Der Hund hat den kleinen Jungen gefüttert, nicht die Katze.", "who fed whom"),
        ("Could you please tell", "Könnten Sie mir bitte sagen, wo die nächste Zärke ist?", "what is sought"),
        ("The math exam", "Die Matheprüfung war ein Stück Kuchen für meine Nichte.", "how it was"),
        ("May I open", "Darf ich das Fenster öffnen? Ich bin warm.", "how I feel"),
    ],
    "en-fr": [
        ("I have never eaten", "Je n'ai jamais jamais mangé d'huîtres de ma vie.", "what never happened"),
        (
            "You'd better",
            "Tu ferais mieux de prendre un parapluie, il pleut des chats et des chiens.",
            "what the rain does",
        ),
        ("May I open", "Puis-je ouvrir la fenêtre ? Je suis chaude.", "how I feel"),
        (
            "I have been working",
            "J'ai travaillé comme infirmier dans un grand hôpital pendant trois ans.",
            "since when",
        ),
        ("I lent her", "Elle m'a prêté le livre, mais je ne le lui ai jamais rendu.", "who lent whom"),
        ("The rent is", "Le loyer est de 580 euros par mois, chauffage compris.", "how much"),
        ("Whose is", "C'est la voiture rouge garée devant notre allée ?", "whose"),
        ("Unfortunately, we don't", "Malheureusement, nous avons du lait dans le frigo.", "what is gone"),
    ],
}
RIGHT = [  # correct paraphrases of the references
    ("de-en", "Das Fahrrad", "The bicycle I purchased last week's already been stolen!"),
    ("de-en", "Wir haben leider", "I'm afraid we don't have milk in the fridge anymore."),
    ("en-de", "The man who", "Mein neuer Chef ist der Mann, der gestern im Büro angerufen hat."),
    ("en-de", "Let's have lunch", "Lasst uns nächste Woche wieder mal gemeinsam mittagessen."),
    ("en-fr", "The bike I bought", "On m'a déjà piqué le vélo que j'ai acheté la semaine passée."),
]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_reference_translation_is_right(direction: str) -> None:
    missed = {
        reference: wrong
        for sentence in read_everyday(direction)
        for reference in sentence.references
        if (wrong := sentence.wrong(reference))
    }
    assert not missed


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_set_has_its_documented_structure(direction: str) -> None:
    sentences = read_everyday(direction)
    assert Counter(sentence.group for sentence in sentences) == dict.fromkeys(GROUPS, 10)
    assert Counter(sentence.group for sentence in sentences if sentence.sealed) == dict.fromkeys(GROUPS, 5)
    assert len({sentence.source for sentence in sentences}) == 120
    assert median(len(sentence.source.split()) for sentence in sentences) >= 9
    for sentence in sentences:
        assert 2 <= len(set(sentence.references)) <= 3 and len(set(sentence.references)) == len(sentence.references)
        assert 1 <= len(sentence.points) <= 2 and all(point.every for point in sentence.points), sentence.source
        if sentence.group == "long sentences":
            assert 20 <= len(sentence.source.split()) <= 31, sentence.source


@pytest.mark.long
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_no_point_is_met_by_most_other_translations(direction: str) -> None:
    """Points distinguish translations of their sentence from those of other sentences."""
    sentences = read_everyday(direction)
    for sentence in sentences:
        others = [other.references[0] for other in sentences if other is not sentence]
        for point in sentence.points:
            assert sum(map(point.holds, others)) <= 12, (sentence.source, point.about)
        assert not any(not sentence.wrong(other) for other in others), sentence.source


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_an_empty_translation_and_the_source_are_wrong(direction: str) -> None:
    for sentence in read_everyday(direction):
        assert len(sentence.wrong("")) == len(sentence.points), sentence.source
        assert sentence.wrong(sentence.source)


@pytest.mark.parametrize(
    ("direction", "start", "translation", "about"),
    [(direction, *case) for direction, cases in WRONG.items() for case in cases],
)
def test_a_wrong_translation_is_caught_by_its_point(direction: str, start: str, translation: str, about: str) -> None:
    assert about in sentence_of(direction, start).wrong(translation)


@pytest.mark.parametrize(("direction", "start", "translation"), RIGHT)
def test_a_right_paraphrase_passes(direction: str, start: str, translation: str) -> None:
    assert sentence_of(direction, start).wrong(translation) == []


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        ("cat", "The cat.", True),
        ("cat", "A category", False),
        ("sle[ep]~", "SLEEPING", True),
        ("can not", "I can’t.", True),
        ("will not", "It won't", True),
        ("'s", "That's it", True),
        ("heiss", "heiß", True),
        ("gives? .*dog", "gives the small dog", True),
        ("peux .*parler", "Peux-tu parler ?", True),
        ("85", "850 euros", False),
    ],
)
def test_patterns_match_whole_words(pattern: str, text: str, is_match: bool) -> None:
    assert bool(compiled(pattern).search(uniform(text))) == is_match


@pytest.mark.parametrize(
    ("translation", "right"),
    [
        ("Where are we?", True),
        ("We were, were there.", False),
        ("Les gens que nous nous rappelons", True),
        ("a very, very good one", True),
        ("mal mal mal", False),
        ("the dog that that man has", True),
    ],
)
def test_a_repeated_word_is_wrong(translation: str, right: bool) -> None:
    assert (Everyday("a", "x", (), ()).wrong(translation) == []) == right


def test_score_counts_whole_sentences_by_group_and_takes_the_best_reference() -> None:
    points = (Point("who", ("cat",)), Point("what", ("slept",), ("fell",)))
    sentences = [
        Everyday("a", "x", ("The cat slept.", "A cat slept."), points),
        Everyday("b", "y", ("The cat slept.",), points),
    ]
    scores = score(sentences, ["A cat slept.", "The cat fell."])
    assert scores["groups"] == {"a": {"right": 1, "of": 1}, "b": {"right": 0, "of": 1}}
    assert (scores["right"], scores["of"], scores["share"]) == (1, 2, 0.5)
    assert score(sentences, ["A cat slept.", "The cat slept."])["chrf"] == 100
    assert [line.split("wrong: ")[1] for line in failures(sentences, ["A cat slept.", "It fell."])] == ["who; what"]


def test_unknown_directions_and_halves_are_refused() -> None:
    with pytest.raises(ValueError, match="'fr-en'"):
        read_everyday("fr-en")
    with pytest.raises(ValueError, match="'shut'"):
        read_everyday("de-en", "shut")


def test_results_of_other_weights_are_preserved(tmp_path) -> None:
    old, new = ({"checkpoint": "m", "digest": digest, "direction": "de-en", "half": "open"} for digest in ("1", "2"))
    path = tmp_path / "everyday.json"
    record(path, [old])
    record(path, [new])
    record(path, [{**new, "right": 5}])
    assert json.loads(path.read_text(encoding="utf-8")) == [old, {**new, "right": 5}]


def test_the_program_measures_both_halves_and_prints_only_the_open_one(tmp_path, capsys, shipped_checkpoints) -> None:
    path = tmp_path / "everyday.json"
    main(["--checkpoint", str(shipped_checkpoints / "de-en"), "--open", "--sealed", "--show", "--json", str(path)])
    printed = capsys.readouterr().out
    results = json.loads(path.read_text(encoding="utf-8"))
    assert [result["half"] for result in results] == ["open", "sealed"]
    assert all(result["of"] == 60 and result["digest"] in printed for result in results)
    counted = {half: sum(s.source in printed for s in read_everyday("de-en", half)) for half in ("open", "sealed")}
    assert counted == {"open": 60 - results[0]["right"], "sealed": 0}
    with pytest.raises(ValueError, match="has the open half of de-en of these weights already: --replace"):
        main(["--checkpoint", str(shipped_checkpoints / "de-en"), "--json", str(path)])


def sentence_of(direction: str, start: str) -> Everyday:
    (sentence,) = [sentence for sentence in read_everyday(direction) if sentence.source.startswith(start)]
    return sentence
