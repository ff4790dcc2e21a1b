"""Statements with a relative clause after the subject or the last object."""

from __future__ import annotations

from dataclasses import replace

from recipes.composed import german
from recipes.composed.clauses import WITHOUT, joined
from recipes.composed.drawn import FIRST, Clauses
from recipes.composed.english_order import in_english
from recipes.composed.german_order import in_german
from recipes.composed.phrases import HUMAN, Kind, Phrase

TENSES = ("past", "told", "habit", "now", "future", "perfect", "had to", "want")
OWNED = (("animal",), ("vehicle",), ("family",), ("child",), ("device",))


class Relatives(Clauses):
    """Draws statements with relative clauses."""

    def related(self) -> tuple[str, str]:
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

    def _who(self, phrase: Phrase) -> tuple[str, str]:
        """ "der im Garten schläft": it is the clause's subject."""
        clause = self.clause(TENSES, subject=phrase, gap=-1, front="subject")
        return (
            f"{german.ending(german.RELATIVES, 'nom', phrase.gender)} {in_german(clause, 'last')}",
            f"{'who' if phrase.human else 'that'} {in_english(clause, 'bare')}",
        )

    def _whom(self, phrase: Phrase) -> tuple[str, str] | None:
        """ "den ich gesehen habe", "auf den ich warte": it is an object."""
        for _ in range(40):
            entry = self.entry(None)
            fitting = [i for i, c in enumerate(entry.complements) if phrase.classes & set(c.classes)]
            if not fitting or not HUMAN & set(entry.subjects) or "idiom" in entry.flags:
                continue
            clause = self.clause(TENSES, entry=entry, gap=fitting[-1], front="subject")
            if clause.subject.kind is not Kind.NOUN and clause.negation not in WITHOUT:
                complement = entry.complements[fitting[-1]]
                pronoun = german.ending(german.RELATIVES, complement.case, phrase.gender)
                link = self.pick(("", "", "that ") if not phrase.human else ("", "who ", "that "))
                return (
                    joined([complement.preposition, pronoun, in_german(clause, "last")]),
                    link + in_english(clause, "main"),
                )
        return None

    def _whose(self, phrase: Phrase) -> tuple[str, str] | None:
        """ "dessen Hund bellt"."""
        owned = self.phrases.noun_phrase(self.pick(OWNED), None, kind="")
        if not phrase.human or owned.person not in ((2, 2), (5, 5)):
            return None
        clause = self.clause(("past", "habit", "told", "perfect"), subject=owned, front="subject")
        pronoun = german.ending(german.RELATIVES, "gen", phrase.gender)
        return f"{pronoun} {in_german(clause, 'last')}", f"whose {in_english(clause, 'main')}"

    def _where(self, phrase: Phrase) -> tuple[str, str] | None:
        """ "in dem wir wohnen"."""
        if "building" not in phrase.classes:
            return None
        entries = [
            entry
            for entry in self.lexicon.verbs
            if "at" in entry.middle and HUMAN & set(entry.subjects) and "idiom" not in entry.flags
        ]
        clause = self.clause(("past", "habit", "told"), entry=self.pick(entries), plain=True)
        clause = replace(clause, place=("", "in"))
        pronoun = german.ending(german.RELATIVES, "dat", phrase.gender)
        return f"in {pronoun} {in_german(clause, 'last')}", self.pick(("", "that ")) + in_english(clause, "main")
