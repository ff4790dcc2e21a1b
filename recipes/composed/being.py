"""Sentences with "to be": descriptions, occupations, comparisons, "there is", and the weather."""

from __future__ import annotations

from dataclasses import replace

from recipes.composed import english, french
from recipes.composed.clauses import Clause
from recipes.composed.drawn import Clauses
from recipes.composed.german_order import in_german
from recipes.composed.phrases import Kind, Phrase
from recipes.composed.texts import Texts, joined

IT = Phrase(
    Texts(de=lambda: {"nom": "es"}, en=lambda: ("it", "it"), fr=french.Nominal),
    "n",
    (2, 2),
    ("sein", "its", "itself"),
    kind=Kind.PRONOUN,
)
DESCRIBED = (
    ("person",), ("person",), ("food", "drink"), ("clothes", "thing"), ("building", "vehicle"),
    ("event", "text", "media"), ("animal", "child"),
)  # fmt: skip
COMPARED = (("family",), ("building",), ("vehicle",), ("animal",), ("clothes",), ("device",))
FOUND = (("food", "drink"), ("building",), ("thing", "furniture"), ("event",), ("animal",), ("plant",))


class Being(Clauses):
    """Draws sentences with to be, and of the weather."""

    def description(self) -> Texts:
        subject = self.phrases.subject(self.pick(DESCRIBED))
        adjective = self.pick(self.phrases.adjectives(subject.classes) or self.lexicon.described["person"])
        de, en, fr = self.pick((("", "", ""), *self.lexicon.openings["degree"]))
        entry = self.lexicon.simple(
            joined([de, adjective.base, "sein"]),
            joined(["be", en, adjective.english]),
            joined(["être", fr, adjective.french.pattern]),
            "stative",
        )
        return self.make_statement(
            self.clause(("habit", "told", "told", "will"), subject=subject, entry=entry, plain=True)
        )

    def occupation(self) -> Texts:
        """ "Mein Bruder ist Krankenpfleger.", "Sie arbeitet seit Montag als Köchin."."""
        subject = self.phrases.subject(("person",))
        while subject.person[0] > 2 or "job" in subject.classes:
            subject = self.phrases.subject(("person",))
        jobs = [n for n in self.lexicon.by_class["job"] if subject.gender not in "mf" or n.gender == subject.gender]
        noun = self.pick(jobs) if subject.gender in "mf" else self.phrases.prefer_masculine(self.pick(jobs))
        job = f"{english.article(noun.english)} {noun.english}"
        if self.chance(0.5):
            place = self.pick(self.lexicon.places).at if self.chance(0.3) else ("", "", "")
            entry = self.lexicon.simple(
                joined(["als", noun.singular, place[0], "arbeiten"]),
                joined(["work as", job, place[1]]),
                joined(["travailler comme", noun.french.singular, place[2]]),
            )
            return self.make_statement(
                replace(self.clause(("habit", "since", "told"), subject=subject, entry=entry), place=None)
            )
        entry = self.lexicon.simple(f"{noun.singular} sein", f"be {job}", f"être {noun.french.singular}", "stative")
        return self.make_statement(self.clause(("habit", "told", "since"), subject=subject, entry=entry, plain=True))

    def comparison(self) -> Texts:
        classes = self.pick(COMPARED)
        while True:
            first, second = (
                self.phrases.noun_phrase(classes, None, kind=self.pick(("own", "dies", "def"))) for _ in range(2)
            )
            if known := [adjective for adjective in self.phrases.adjectives(first.classes) if adjective.comparative]:
                break
        adjective = self.pick(known)
        if self.chance(0.35):
            denied = self.pick((("genauso", "as", "aussi"), ("nicht so", "not as", "pas aussi")))
            de, en = f"{denied[0]} {adjective.base} wie", f"{denied[1]} {adjective.english} as"
            fr = f"{denied[2]} {adjective.french.pattern}"
        else:
            much = self.pick((("", "", ""), ("viel", "much", "bien"), ("etwas", "a bit", "un peu")))
            de = joined([much[0], adjective.comparative, "als"])
            en = joined([much[1], adjective.english_comparative, "than"])
            fr = joined([much[2], adjective.french_comparative])
        entry = self.lexicon.simple(
            f"{de.replace(' ', '_')}+n:{classes[0]} sein", f"be {en} 1", f"être {fr} que:1", "stative"
        )
        return self.make_statement(Clause(first, entry, (second,), self.pick_tense(entry, ("habit", "told"))))

    def there_is(self) -> Texts:
        classes = self.pick(FOUND)
        kind = self.pick(("ein", "kein", "ein"))
        phrase = replace(self.phrases.noun_phrase(classes, None, kind=kind), definite=False)
        negation = "" if kind != "kein" else self.pick(("kein", "kein mehr"))
        if negation == "kein mehr":
            phrase = phrase.no_longer
        subject = replace(IT.with_forms(en=lambda: ("there", "there")), person=(2, phrase.person[1]))
        entry = self.lexicon.simple(f"a:{classes[0]} geben", "be 1", "y avoir 1", "stative")
        place = self.pick(self.lexicon.places).at
        clause = Clause(subject, entry, (phrase,), self.pick(("habit", "told", "will")), negation, place=place)
        bare = replace(clause, place=None)
        texts = self.make_statement(clause)
        if clause.tense == "will" or self.chance(0.5):
            return replace(texts, de=lambda: f"{place[0]} {in_german(bare, 'question')}.")
        return replace(texts, de=lambda: f"{in_german(bare, 'main')} {place[0]}.")

    def weather(self) -> Texts:
        entry = self.pick(self.lexicon.weather)
        tenses = (
            ("past", "told", "future", "will", "can") if entry.english.base == "be" else ("past", "told", "will", "now")
        )
        clause = self.clause(tenses, subject=IT, entry=entry)
        where = self.pick(self.lexicon.places).at if self.chance(0.3) else None
        return self.make_statement(replace(clause, place=where))
