"""Whole sentences in German and English: statements, questions and joined clauses."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from recipes.composed.being import Being
from recipes.composed.clauses import WITHOUT, Clause
from recipes.composed.drawn import NoVerb
from recipes.composed.english_order import in_english
from recipes.composed.german_order import in_german
from recipes.composed.lexicon import Entry, Lexicon
from recipes.composed.phrases import Kind, Phrase
from recipes.composed.questions import Questions
from recipes.composed.relatives import Relatives
from recipes.slots.fillers import Fillers

DIRECTIONS = ("de-en", "en-de")
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
        de, en = self._drawn()
        pair = _polished(de), _polished(self._contracted(_polished(en)))
        return pair if direction == "de-en" else pair[::-1]

    def _drawn(self) -> tuple[str, str]:
        while True:
            try:
                return self.pick(self.kinds, self.kinds.values())()
            except NoVerb:
                continue

    def statement(self) -> tuple[str, str]:
        clause = self.clause()
        if self.chance(0.12):
            clause = self._passive(clause)
        elif clause.tense in ("past", "told", "future", "will", "had to") and self.chance(0.12):
            comment = self.pick(self.lexicon.when["mood"])
            first = self.chance(0.4)
            adverbials = (comment, *clause.adverbials) if first else (*clause.adverbials, comment)
            clause = replace(clause, adverbials=adverbials, front="adverbial" if first else clause.front)
        return self.make_statement(clause)

    def subordinate(self) -> tuple[str, str]:
        """Draw a main clause with a subordinate clause before or after it."""
        de, en, tenses, others = self.pick(self.lexicon.conjunctions)
        main = self.clause(tenses)
        same = main.subject.human and self.chance(0.45)
        other = self.clause(others, subject=self._again(main.subject) if same else None, front="subject")
        if self.chance(0.4) and (not same or main.subject.kind is Kind.PRONOUN):
            main = replace(main, front="subject")
            return (
                f"{de} {in_german(other, 'last')}, {in_german(main, 'question')}.",
                f"{en} {in_english(other, 'main')}, {in_english(main, 'main')}.",
            )
        return (
            f"{in_german(main, 'main')}, {de} {in_german(other, 'last')}.",
            f"{in_english(main, 'main')} {en} {in_english(other, 'main')}.",
        )

    def indirect_statement(self) -> tuple[str, str]:
        """ "Ich glaube, dass ...", "Weißt du, ob ..."."""
        de, en, conjunction, link = self.pick(self.lexicon.openings["thought"])
        link = "" if link == "that" and self.chance(0.5) else link + " "
        clause = self.clause(("past", "future", "habit", "must", "can", "want", "perfect"), front="subject")
        mark = "?" if en.startswith(("Do ", "Can ", "Did ")) else "."
        return (
            f"{de}, {conjunction} {in_german(clause, 'last')}{mark}",
            f"{en} {link}{in_english(clause, 'main')}{mark}",
        )

    def reported_speech(self) -> tuple[str, str]:
        """ "Der Arzt meinte, ich solle ...", "Sie hat gesagt, dass ..."."""
        teller = self.phrases.name()
        while (teller.kind is Kind.NAME and self.chance(0.6)) or teller.person[0] != 2:
            teller = self.phrases.noun_phrase(("job", "family"), None)
        who, whom = teller.german["nom"], teller.english[0]
        if self.chance(0.25):
            clause = self.clause(("advised",), front="subject")
            de, en = self.pick((("meinte", "said"), ("hat gesagt", "said"), ("findet", "thinks")))
            return f"{who} {de}, {in_german(clause, 'main')}.", f"{whom} {en} {in_english(clause, 'main')}."
        de, en = self.pick(self.lexicon.openings["told"])
        clause = self.clause(("past", "would", "pluperfect", "had to", "wanted", "could"), front="subject")
        link = self.pick(("that ", ""))
        return f"{who} {de}, dass {in_german(clause, 'last')}.", f"{whom} {en} {link}{in_english(clause, 'main')}."

    def infinitive(self) -> tuple[str, str]:
        """ "Ich habe versucht, ... zu ..."."""
        de, en, form = self.pick(self.lexicon.openings["zu"])
        subject = self.phrases.subject(("person",))
        tenses = ("past", "told", "future", "habit", "want", "perfect")
        clause = self.clause(tenses, subject=subject, entry=self.lexicon.simple(de, en, "noneg"))
        clause = replace(clause, place=None, adverbials=clause.adverbials[:1], front="adverbial")
        return self._with_infinitive(clause, "", "", form)

    def purpose(self) -> tuple[str, str]:
        de, en, form = self.pick((("um", "", "to"), ("um", "in order", "to"), ("ohne", "without", "ing")))
        tenses = ("past", "future", "had to", "want", "told")
        return self._with_infinitive(self.clause(tenses, subject=self.phrases.subject(("person",))), de, en, form)

    def evaluation(self) -> tuple[str, str]:
        """ "Es ist schwer, ... zu ..."."""
        de, en = self.pick(self.lexicon.openings["judged"])
        inner = self._inner(self.phrases.pronoun(self.pick(("du", "wir"))))
        tense = self.pick((("ist", "is"), ("war", "was"), ("wäre", "would be")))
        return f"es {tense[0]} {de}, {in_german(inner, 'zu')}.", f"it {tense[1]} {en} {in_english(inner, 'to')}."

    def enumeration(self) -> tuple[str, str]:
        """Draw two or three actions that somebody can, must or will do."""
        subject, tense = self.phrases.subject(("person",)), self.pick(LISTED)
        entries = [self._active(subject) for _ in range(self.pick((2, 3, 3)))]
        clauses = [self.clause((tense,), subject=subject, entry=entry, plain=True) for entry in entries]
        de, en = self.pick((("und", "and"), ("und", "and"), ("oder", "or")))
        comma = "," if len(clauses) > 2 else ""
        orders = ("main", *["open"] * (len(clauses) - 1))
        *german, last = map(in_german, clauses, orders)
        *english, final = map(in_english, clauses, orders)
        return f"{', '.join(german)} {de} {last}.", f"{', '.join(english)}{comma} {en} {final}."

    def coordination(self) -> tuple[str, str]:
        """Draw two coordinated main clauses, with one or two subjects."""
        tenses, later = self.pick(PAIRED)
        first = self.clause(tenses)
        if first.subject.human and self.chance(0.5):
            second = self.clause(later, subject=first.subject, plain=True, front="subject")
            de, en = self.pick((("und", " and"), ("und", " and then"), (", aber", ", but")))
            infinitive_text = in_german(second, "bare")
            if "then" in en:
                verb, _, rest = infinitive_text.partition(" ")
                infinitive_text = f"{verb} dann {rest}"
            first = replace(first, front="subject")
            return (
                f"{in_german(first, 'main')} {de} {infinitive_text}.",
                f"{in_english(first, 'main')}{en} {in_english(second, 'bare')}.",
            )
        second = self.clause(later, front="subject")
        de, en = self.pick((("und", "and"), ("aber", "but"), ("denn", "because"), ("deshalb", "so")))
        order = "question" if de == "deshalb" else "main"
        comma = "" if en == "because" else ","
        return (
            f"{in_german(first, 'main')}, {de} {in_german(second, order)}.",
            f"{in_english(first, 'main')}{comma} {en} {in_english(second, 'main')}.",
        )

    def _with_infinitive(self, clause: Clause, de: str, en: str, form: str) -> tuple[str, str]:
        clause = replace(clause, mid=None)
        inner = self._inner(clause.subject)
        return (
            f"{in_german(clause, 'main')}, {de} {in_german(inner, 'zu')}.",
            f"{in_english(clause, 'main')} {en} {in_english(inner, form)}.",
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
        return self.phrases.pronoun({"f": "sie", "p": "sie alle"}.get(phrase.gender, "er"))

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


def _polished(text: str) -> str:
    """Remove doubled commas and spaces, and capitalise the first letter."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s+([,.?!])", r"\1", text)
    text = re.sub(r",+(?=[,.?!])", "", text)
    return text[:1].upper() + text[1:]
