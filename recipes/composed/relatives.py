"""Statements with a relative clause after the subject or the last object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from recipes.composed import german
from recipes.composed.clauses import WITHOUT, Clause
from recipes.composed.drawn import FIRST, Clauses
from recipes.composed.english_order import in_english
from recipes.composed.french_order import in_french, relative_pronoun
from recipes.composed.german_order import in_german
from recipes.composed.phrases import HUMAN, Kind, Phrase
from recipes.composed.texts import Texts, joined

TENSES = ("past", "told", "habit", "now", "future", "perfect", "had to", "want")
OWNED = (("animal",), ("vehicle",), ("family",), ("child",), ("device",))


class Relatives(Clauses):
    """Draws statements with relative clauses."""

    def related(self) -> Texts:
        while True:
            clause = self.clause(front="subject")
            nouns = [i for i, p in enumerate(clause.arguments) if p.kind is Kind.NOUN]
            if clause.subject.kind is Kind.NOUN and self.chance(0.6):
                if changed := self._with_relative(clause.subject):
                    return self.make_statement(replace(clause, subject=changed))
            elif nouns and clause.negation not in WITHOUT:
                changed = self._with_relative(clause.arguments[nouns[-1]])
                if changed:
                    # An adverbial of time would seem to belong to the relative clause.
                    front = "adverbial" if clause.adverbials and FIRST & clause.adverbials[0].kinds else "subject"
                    adverbials = clause.adverbials[:1] if front == "adverbial" else ()
                    arguments = tuple(changed if i == nouns[-1] else p for i, p in enumerate(clause.arguments))
                    return self.make_statement(replace(clause, arguments=arguments, adverbials=adverbials, front=front))

    def _with_relative(self, phrase: Phrase) -> Phrase | None:
        """Add a relative clause to a phrase; None if no verb fits."""
        made = self.pick((self._who, self._whom, self._whom, self._whose, self._where))(phrase)
        return made and replace(phrase, relative=made)

    def _who(self, phrase: Phrase) -> Texts:
        """ "der im Garten schläft": it is the clause's subject."""
        clause = self.clause(TENSES, subject=phrase, gap=-1, front="subject")
        return Texts(
            de=lambda: f"{german.ending(german.RELATIVES, 'nom', phrase.gender)} {in_german(clause, 'last')}",
            en=lambda: f"{'who' if phrase.human else 'that'} {in_english(clause, 'bare')}",
            fr=lambda: f"qui {in_french(clause, 'bare')}",
        )

    def _whom(self, phrase: Phrase) -> Texts | None:
        """ "den ich gesehen habe", "auf den ich warte": it is an object."""
        for _ in range(40):
            entry = self.entry(None)
            fitting = [i for i, c in enumerate(entry.complements) if phrase.classes & set(c.classes)]
            if not fitting or not HUMAN & set(entry.subjects) or "idiom" in entry.flags:
                continue
            gap = fitting[-1]
            clause = self.clause(TENSES, entry=entry, gap=gap, front="subject")
            if clause.subject.kind is not Kind.NOUN and clause.negation not in WITHOUT:
                complement = entry.complements[gap]
                pronoun = german.ending(german.RELATIVES, complement.case, phrase.gender)
                link = self.pick(("", "", "that ") if not phrase.human else ("", "who ", "that "))
                clause = replace(clause, arguments=(*clause.arguments[:gap], phrase, *clause.arguments[gap + 1 :]))
                return _relative(complement.preposition, pronoun, link, partial(relative_pronoun, clause), clause)
        return None

    def _whose(self, phrase: Phrase) -> Texts | None:
        """ "dessen Hund bellt"."""
        owned = self.phrases.noun_phrase(self.pick(OWNED), None, kind="")
        if not phrase.human or owned.person not in ((2, 2), (5, 5)):
            return None
        defined = owned.with_forms(fr=lambda: replace(owned.french, determiner="le"))
        clause = self.clause(("past", "habit", "told", "perfect"), subject=defined, front="subject")
        pronoun = german.ending(german.RELATIVES, "gen", phrase.gender)
        return _relative("", pronoun, "whose ", lambda: "dont", clause)

    def _where(self, phrase: Phrase) -> Texts | None:
        """ "in dem wir wohnen"."""
        if "building" not in phrase.classes:
            return None
        entries = [
            entry
            for entry in self.lexicon.verbs
            if "at" in entry.middle and HUMAN & set(entry.subjects) and "idiom" not in entry.flags
        ]
        clause = self.clause(("past", "habit", "told"), entry=self.pick(entries), plain=True)
        clause = replace(clause, place=("", "in", ""))
        pronoun = german.ending(german.RELATIVES, "dat", phrase.gender)
        return _relative("in", pronoun, self.pick(("", "that ")), lambda: "où", clause)


def _relative(preposition: str, pronoun: str, link: str, fr: Callable[[], str], clause: Clause) -> Texts:
    """Return a relative clause that begins with a German preposition and pronoun, an English link, a French pronoun."""
    return Texts(
        de=lambda: joined([preposition, pronoun, in_german(clause, "last")]),
        en=lambda: link + in_english(clause, "main"),
        fr=lambda: f"{fr()} {in_french(clause, 'main')}",
    )
