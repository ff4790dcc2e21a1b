"""Sentences with "to be": descriptions, occupations, comparisons, "there is", and the weather."""

from __future__ import annotations

from dataclasses import replace

from recipes.composed import english, german
from recipes.composed.clauses import Clause, joined
from recipes.composed.drawn import Clauses
from recipes.composed.english_order import in_english
from recipes.composed.german_order import in_german
from recipes.composed.lexicon import Complement, Entry
from recipes.composed.phrases import Kind, Phrase

IT = Phrase({"nom": "es"}, ("it", "it"), "n", (2, 2), ("sein", "its", "itself"), kind=Kind.PRONOUN)
DESCRIBED = (
    ("person",), ("person",), ("food", "drink"), ("clothes", "thing"), ("building", "vehicle"),
    ("event", "text", "media"), ("animal", "child"),
)  # fmt: skip
COMPARED = (("family",), ("building",), ("vehicle",), ("animal",), ("clothes",), ("device",))
FOUND = (("food", "drink"), ("building",), ("thing", "furniture"), ("event",), ("animal",), ("plant",))


class Being(Clauses):
    """Draws sentences with to be, and of the weather."""

    def description(self) -> tuple[str, str]:
        subject = self.phrases.subject(self.pick(DESCRIBED))
        adjective = self.pick(self.phrases.adjectives(subject.classes) or self.lexicon.described["person"])
        degree = self.pick((("", ""), *self.lexicon.openings["degree"]))
        entry = self.lexicon.simple(
            joined([degree[0], adjective.base, "sein"]), joined(["be", degree[1], adjective.english]), "stative"
        )
        return self.make_statement(
            self.clause(("habit", "told", "told", "will"), subject=subject, entry=entry, plain=True)
        )

    def occupation(self) -> tuple[str, str]:
        """ "Mein Bruder ist Krankenpfleger.", "Sie arbeitet seit Montag als Köchin."."""
        subject = self.phrases.subject(("person",))
        while subject.person[0] > 2 or "job" in subject.classes:
            subject = self.phrases.subject(("person",))
        jobs = [n for n in self.lexicon.by_class["job"] if subject.gender not in "mf" or n.gender == subject.gender]
        noun = self.pick(jobs)
        job = f"{english.article(noun.english)} {noun.english}"
        if self.chance(0.5):
            place = self.pick(self.lexicon.places).at if self.chance(0.3) else ("", "")
            entry = self.lexicon.simple(
                joined(["als", noun.singular, place[0], "arbeiten"]), joined(["work as", job, place[1]])
            )
            return self.make_statement(
                replace(self.clause(("habit", "since", "told"), subject=subject, entry=entry), place=None)
            )
        entry = self.lexicon.simple(f"{noun.singular} sein", f"be {job}", "stative")
        return self.make_statement(self.clause(("habit", "told", "since"), subject=subject, entry=entry, plain=True))

    def comparison(self) -> tuple[str, str]:
        classes = self.pick(COMPARED)
        while True:
            first, second = (
                self.phrases.noun_phrase(classes, None, kind=self.pick(("own", "dies", "def"))) for _ in range(2)
            )
            if known := [adjective for adjective in self.phrases.adjectives(first.classes) if adjective.comparative]:
                break
        adjective = self.pick(known)
        if self.chance(0.35):
            denied = self.pick((("genauso", "as"), ("nicht so", "not as")))
            de, en = f"{denied[0]} {adjective.base} wie", f"{denied[1]} {adjective.english} as"
        else:
            much = self.pick((("", ""), ("viel", "much"), ("etwas", "a bit")))
            de = joined([much[0], adjective.comparative, "als"])
            en = joined([much[1], adjective.english_comparative, "than"])
        entry = self.lexicon.simple(f"{de} {second.german['nom']} sein", f"be {en} {second.english[1]}", "stative")
        return self.make_statement(self.clause(("habit", "told"), subject=first, entry=entry, plain=True))

    def there_is(self) -> tuple[str, str]:
        classes = self.pick(FOUND)
        kind = self.pick(("ein", "kein", "ein"))
        phrase = replace(self.phrases.noun_phrase(classes, None, kind=kind), definite=False)
        negation = "" if kind != "kein" else self.pick(("kein", "kein mehr"))
        if negation == "kein mehr":
            phrase = phrase.no_longer
        subject = replace(IT, english=("there", "there"), person=(2, phrase.person[1]))
        verb = german.Verb("", "geben", "gibt", "gab", "gegeben", "haben")
        complement = Complement("", "acc", classes)
        entry = Entry(("it",), (complement,), verb, english.Verb("be", "was", "been"), ("1",), frozenset({"stative"}))
        place = self.pick(self.lexicon.places).at
        clause = Clause(subject, entry, (phrase,), self.pick(("habit", "told", "will")), negation, place=place)
        bare = replace(clause, place=None)
        if clause.tense == "will" or self.chance(0.5):
            return f"{place[0]} {in_german(bare, 'question')}.", in_english(clause, "main") + "."
        return f"{in_german(bare, 'main')} {place[0]}.", in_english(clause, "main") + "."

    def weather(self) -> tuple[str, str]:
        entry = self.pick(self.lexicon.weather)
        tenses = (
            ("past", "told", "future", "will", "can") if entry.english.base == "be" else ("past", "told", "will", "now")
        )
        clause = self.clause(tenses, subject=IT, entry=entry)
        where = self.pick(self.lexicon.places).at if self.chance(0.3) else None
        return self.make_statement(replace(clause, place=where))
