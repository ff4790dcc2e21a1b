"""Whole sentences in two languages: statements, questions and joined clauses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from recipes.composed.being import Being
from recipes.composed.clauses import WITHOUT, Clause
from recipes.composed.drawn import NoVerb
from recipes.composed.english_order import in_english
from recipes.composed.french import inflect_all, spell
from recipes.composed.french_order import ON, in_french
from recipes.composed.german_order import in_german
from recipes.composed.lexicon import Entry, Lexicon, NotInFrench
from recipes.composed.phrases import Kind, Phrase
from recipes.composed.questions import Questions
from recipes.composed.relatives import Relatives
from recipes.composed.texts import Texts, joined
from recipes.slots.fillers import Fillers

DIRECTIONS = ("de-en", "en-de", "en-fr", "fr-en")
# Tenses that go with one another in two main clauses.
PAIRED = (
    (("past",), ("past",)),
    (("told",), ("told",)),
    (("future", "will"), ("future",)),
    (("habit",), ("habit",)),
    (("past",), ("could", "had to")),
)
LISTED = ("can", "must", "want", "will", "could then", "would like", "ought", "had to", "advised")
CONTRACTIONS = tuple(
    (re.compile(rf"\b{plain}\b"), short)
    for plain, short in (
        (r"(do|does|did|have|has|had|could|would|should|is|are|was|were) not", r"\1n't"),
        ("will not", "won't"),
        ("can not", "can't"),
        ("I am", "I'm"),
        ("(I|you|we|they|he|she) will", r"\1'll"),
        ("(you|we|they) are", r"\1're"),
        ("(I|you|we|they) have(?= (?:been|just|already|never|finally|[a-z]+ed))", r"\1've"),
    )
)


class Composer(Relatives, Questions, Being):
    """Composes sentence pairs. The same random numbers give the same pairs."""

    def __init__(self, fillers: Fillers, random: np.random.Generator, lexicon: Lexicon) -> None:
        super().__init__(fillers, random, lexicon)
        self.kinds = {
            self.statement: 28, self.subordinate: 14, self.related: 14, self.yes_or_no: 7, self.question: 7,
            self.request: 5, self.indirect_statement: 6, self.reported_speech: 5, self.infinitive: 5,
            self.evaluation: 2, self.purpose: 3, self.enumeration: 4, self.coordination: 5, self.description: 5,
            self.occupation: 2, self.there_is: 3, self.comparison: 2, self.weather: 2,
        }  # fmt: skip

    def pair(self, direction: str = "de-en") -> tuple[str, str]:
        """Compose a (source, target) pair of one of DIRECTIONS."""
        source, target = direction.split("-")
        self.phrases.masculine_nouns = direction == "en-fr"
        self.phrases.feminine_pronouns = direction == "fr-en" and self.chance(0.3)
        while True:
            try:
                texts = self.pick(self.kinds, self.kinds.values())()
                return self._finished(texts, source), self._finished(texts, target)
            except (NoVerb, NotInFrench):
                continue

    def _finished(self, texts: Texts, language: str) -> str:
        text = texts[language]
        if language == "en":
            text = self._contracted(_polished(text))
        return _polished(spell(text) if language == "fr" else text)

    def statement(self) -> Texts:
        clause = self.clause()
        if self.chance(0.12):
            clause = self._passive(clause)
        elif clause.tense in ("past", "told", "future", "will", "had to") and self.chance(0.12):
            comment = self.pick(self.lexicon.when["mood"])
            first = self.chance(0.4)
            adverbials = (comment, *clause.adverbials) if first else (*clause.adverbials, comment)
            clause = replace(clause, adverbials=adverbials, front="adverbial" if first else clause.front)
        return self.make_statement(clause)

    def subordinate(self) -> Texts:
        """Draw a main clause with a subordinate clause before or after it."""
        conjunction = self.pick(self.lexicon.conjunctions)
        main = self.clause(conjunction.main_tenses)
        same = main.subject.human and self.chance(0.45)
        subject = self._again(main.subject) if same else None
        other = self.clause(conjunction.tenses, subject=subject, front="subject")
        de, en = conjunction.german, conjunction.english

        def subordinate_in_french(first: bool) -> str:
            if conjunction.french_infinitive and (same or _are_same(main.subject, other.subject)):
                return f"{conjunction.french_infinitive} {in_french(other, 'infinitive')}"
            link = conjunction.french_first if first else conjunction.french
            return f"{link} {in_french(other, 'main', conjunction.mood)}"

        if self.chance(0.4) and (not same or main.subject.kind is Kind.PRONOUN):
            main = replace(main, front="subject")
            return Texts(
                de=lambda: f"{de} {in_german(other, 'last')}, {in_german(main, 'question')}.",
                en=lambda: f"{en} {in_english(other, 'main')}, {in_english(main, 'main')}.",
                fr=lambda: f"{subordinate_in_french(True)}, {in_french(main, 'main')}.",
            )
        return Texts(
            de=lambda: f"{in_german(main, 'main')}, {de} {in_german(other, 'last')}.",
            en=lambda: f"{in_english(main, 'main')} {en} {in_english(other, 'main')}.",
            fr=lambda: f"{in_french(main, 'main')} {subordinate_in_french(False)}.",
        )

    def indirect_statement(self) -> Texts:
        """ "Ich glaube, dass ...", "Weißt du, ob ..."."""
        de, en, conjunction, link, fr, mood = self.pick(self.lexicon.openings["thought"])
        link = "" if link == "that" and self.chance(0.5) else link + " "
        clause = self.clause(("past", "future", "habit", "must", "can", "want", "perfect"), front="subject")
        mark = "?" if en.startswith(("Do ", "Can ", "Did ")) else "."
        return Texts(
            de=lambda: f"{de}, {conjunction} {in_german(clause, 'last')}{mark}",
            en=lambda: f"{en} {link}{in_english(clause, 'main')}{mark}",
            fr=lambda: f"{fr} {in_french(clause, 'main', mood)}{mark.replace('?', ' ?')}",
        )

    def reported_speech(self) -> Texts:
        """ "Der Arzt meinte, ich solle ...", "Sie hat gesagt, dass ..."."""
        teller = self.phrases.name()
        while (teller.kind is Kind.NAME and self.chance(0.6)) or teller.person[0] != 2:
            teller = self.phrases.noun_phrase(("job", "family"), None)
        conjunction, order, link, mood = "", "main", "", "indicative"
        if self.chance(0.25):
            clause = self.clause(("advised",), front="subject")
            de, en, fr = self.pick(
                (
                    ("meinte", "said", "a dit que"),
                    ("hat gesagt", "said", "a dit que"),
                    ("findet", "thinks", "trouve que"),
                )
            )
        else:
            conjunction, order = "dass ", "last"
            de, en, fr, mood = self.pick(self.lexicon.openings["told"])
            clause = self.clause(("past", "would", "pluperfect", "had to", "wanted", "could"), front="subject")
            link = self.pick(("that ", ""))
        return Texts(
            de=lambda: f"{teller.german['nom']} {de}, {conjunction}{in_german(clause, order)}.",
            en=lambda: f"{teller.english[0]} {en} {link}{in_english(clause, 'main')}.",
            fr=lambda: f"{teller.french.subject} {inflect_all(fr, teller.french)} {in_french(clause, 'main', mood)}.",
        )

    def infinitive(self) -> Texts:
        """ "Ich habe versucht, ... zu ..."."""
        de, en, form, fr, flags = self.pick(self.lexicon.openings["zu"])
        subject = self.phrases.subject(("person",))
        tenses = ("past", "told", "future", "habit", "want", "perfect")
        clause = self.clause(tenses, subject=subject, entry=self.lexicon.simple(de, en, fr, "noneg", flags))
        clause = replace(clause, place=None, adverbials=clause.adverbials[:1], front="adverbial")
        return self._with_infinitive(clause, "", "", form, "")

    def purpose(self) -> Texts:
        de, en, form, fr = self.pick(
            (("um", "", "to", "pour"), ("um", "in order", "to", "afin de"), ("ohne", "without", "ing", "sans"))
        )
        tenses = ("past", "future", "had to", "want", "told")
        clause = self.clause(tenses, subject=self.phrases.subject(("person",)))
        return self._with_infinitive(clause, de, en, form, fr)

    def evaluation(self) -> Texts:
        """ "Es ist schwer, ... zu ..."."""
        de, en, fr = self.pick(self.lexicon.openings["judged"])
        inner = self._inner(self.phrases.pronoun(self.pick(("du", "wir"))))
        tense = self.pick((("ist", "is", "est"), ("war", "was", "était"), ("wäre", "would be", "serait")))
        anybody = inner if "POSS" in inner.entry.pattern else replace(inner, subject=ON)
        ne = "ne " if fr.startswith("pas ") else ""
        return Texts(
            de=lambda: f"es {tense[0]} {de}, {in_german(inner, 'zu')}.",
            en=lambda: f"it {tense[1]} {en} {in_english(inner, 'to')}.",
            fr=lambda: f"il {ne}{tense[2]} {fr} {in_french(anybody, 'infinitive')}.",
        )

    def enumeration(self) -> Texts:
        """Draw two or three actions that somebody can, must or will do."""
        subject, tense = self.phrases.subject(("person",)), self.pick(LISTED)
        entries = [self._active(subject) for _ in range(self.pick((2, 3, 3)))]
        clauses = [self.clause((tense,), subject=subject, entry=entry, plain=True) for entry in entries]
        de, en, fr = self.pick((("und", "and", "et"), ("und", "and", "et"), ("oder", "or", "ou")))

        def listed(in_language: Callable[[Clause, str], str], link: str, clauses=clauses) -> str:
            *first, last = map(in_language, clauses, ("main", *["open"] * (len(clauses) - 1)))
            return f"{', '.join(first)}{link} {last}."

        # A French future has no helping verb that the clauses could share.
        near = [replace(clause, tense="future") if tense == "will" else clause for clause in clauses]
        comma = "," if len(clauses) > 2 else ""
        return Texts(
            de=lambda: listed(in_german, f" {de}"),
            en=lambda: listed(in_english, f"{comma} {en}"),
            fr=lambda: listed(in_french, f" {fr}", near),
        )

    def coordination(self) -> Texts:
        """Draw two coordinated main clauses, with one or two subjects."""
        tenses, later = self.pick(PAIRED)
        first = self.clause(tenses)
        if first.subject.human and self.chance(0.5):
            second = self.clause(later, subject=first.subject, plain=True, front="subject")
            de, en, fr = self.pick(
                (("und", " and", " et"), ("und", " and then", ", puis"), (", aber", ", but", ", mais"))
            )
            first = replace(first, front="subject")
            order = "main" if first.subject.kind is Kind.PRONOUN else "bare"  # "je mange et je bois"

            def second_in_german() -> str:
                verb, _, rest = in_german(second, "bare").partition(" ")
                return f"{verb} dann {rest}" if "then" in en else f"{verb} {rest}"

            return Texts(
                de=lambda: f"{in_german(first, 'main')} {de} {second_in_german()}.",
                en=lambda: f"{in_english(first, 'main')}{en} {in_english(second, 'bare')}.",
                fr=lambda: f"{in_french(first, 'main')}{fr} {in_french(second, order)}.",
            )
        second = self.clause(later, front="subject")
        de, en, fr = self.pick(
            (
                ("und", ", and", " et"),
                ("aber", ", but", ", mais"),
                ("denn", " because", ", car"),
                ("deshalb", ", so", ", donc"),
            )
        )
        order = "question" if de == "deshalb" else "main"
        return Texts(
            de=lambda: f"{in_german(first, 'main')}, {de} {in_german(second, order)}.",
            en=lambda: f"{in_english(first, 'main')}{en} {in_english(second, 'main')}.",
            fr=lambda: f"{in_french(first, 'main')}{fr} {in_french(second, 'main')}.",
        )

    def _with_infinitive(self, clause: Clause, de: str, en: str, form: str, fr: str) -> Texts:
        clause = replace(clause, mid=None)
        inner = self._inner(clause.subject)
        return Texts(
            de=lambda: f"{in_german(clause, 'main')}, {de} {in_german(inner, 'zu')}.",
            en=lambda: f"{in_english(clause, 'main')} {en} {in_english(inner, form)}.",
            fr=lambda: joined([in_french(clause, "main"), fr, in_french(inner, "infinitive")]) + ".",
        )

    def _inner(self, subject: Phrase) -> Clause:
        """Draw an infinitive clause with the same subject."""
        return self.clause(("future",), subject=subject, entry=self._active(subject), plain=True)

    def _active(self, subject: Phrase) -> Entry:
        """Draw a verb of action."""
        while True:
            entry = self.entry(subject)
            if entry.english.base != "be" and "stative" not in entry.flags:
                return entry

    def _again(self, phrase: Phrase) -> Phrase:
        """Return the pronoun for a phrase that was named before."""
        if phrase.kind is Kind.PRONOUN:
            return phrase
        pronoun = self.phrases.pronoun({"f": "sie", "p": "sie alle"}.get(phrase.gender, "er"))
        return pronoun.with_forms(fr=lambda: replace(pronoun.french, feminine=phrase.french.feminine))

    def _passive(self, clause: Clause) -> Clause:
        """Return the clause in the passive, where that is usual."""
        number = clause.entry.object_number
        tenses = ("past", "told", "will", "must", "had to", "can", "future", "habit")
        if (
            "passive" not in clause.entry.flags
            or clause.tense not in tenses
            or clause.negation in WITHOUT
            or {"SELF", "POSS"} & set(clause.entry.pattern)
            or number is None
            or clause.arguments[number].kind is Kind.PRONOUN
        ):
            return clause
        adverbials = tuple(a for a in clause.adverbials if not {"company", "means"} & a.kinds)
        front = clause.front if clause.front == "adverbial" and adverbials[:1] == clause.adverbials[:1] else "subject"
        return replace(clause, subject=clause.arguments[number], passive=True, adverbials=adverbials, front=front)

    def _contracted(self, text: str) -> str:
        """Contract most auxiliaries: "don't", "we're"."""
        for plain, short in CONTRACTIONS:
            if self.chance(0.75):
                text = plain.sub(short, text)
        return text


def _are_same(subject: Phrase, other: Phrase) -> bool:
    """Return whether both are the same person in French: "je", "tu", "nous" or "vous"."""
    first, second = subject.french, other.french
    return first.is_pronoun and second.is_pronoun and first.person == second.person and first.person not in (2, 5)


def _polished(text: str) -> str:
    """Remove doubled commas and spaces, and capitalise the first letter. French keeps its space before "?" and "!"."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s+([,.])", r"\1", text)
    text = re.sub(r",+(?=\s*[,.?!])", "", text)
    return text[:1].upper() + text[1:]
