"""Questions and requests."""

from __future__ import annotations

from dataclasses import replace

from recipes.composed import german
from recipes.composed.clauses import WITHOUT, Clause, joined
from recipes.composed.drawn import Clauses
from recipes.composed.english_order import in_english
from recipes.composed.german_order import in_german
from recipes.composed.lexicon import Entry
from recipes.composed.phrases import HUMAN, Kind, Phrase

TENSES = (
    "past", "perfect", "will", "habit", "can", "must", "want", "would like", "may", "future", "could then",
)  # fmt: skip
WHO = Phrase(
    {"nom": "wer"}, ("who", "who"), "m", (2, 2), ("sein", "their", "themselves"), kind=Kind.PRONOUN, human=True
)  # fmt: skip


class Questions(Clauses):
    """Draws questions and requests."""

    def yes_or_no(self) -> tuple[str, str]:
        return self._question("", "", self._questionable(TENSES))

    def question(self) -> tuple[str, str]:
        """Draw a question with a question word for an object, the subject, the manner or the time."""
        draw = self.phrases.random.random()
        if draw < 0.35:
            entry = self.entry(None)
            if entry.complements and HUMAN & set(entry.subjects) and "idiom" not in entry.flags:
                return self._object(entry)
        if draw < 0.5:
            clause = self.clause(("past", "habit", "can", "will", "want", "future"), subject=WHO, front="subject")
            return in_german(clause, "main") + "?", in_english(clause, "main") + "?"
        de, en = self.pick(self.lexicon.openings["asked"])
        clause = self._questionable(("past", "told", "will", "can", "must", "want", "future", "habit"))
        if de != "warum":
            negation = clause.negation if clause.negation in WITHOUT else ""
            clause = replace(clause, adverbials=(), mid=None, negation=negation)
        de, en = self._question(de, en, clause)
        return de, en[:-1] + " with?" if de.startswith("mit wem") else en

    def request(self) -> tuple[str, str]:
        """Draw a request in the imperative."""
        key = self.pick(("du", "Sie", "ihr"), [5, 3, 1.5])
        subject = self.phrases.pronoun(key)
        while True:
            entry = self.entry(subject)
            if not {"stative", "idiom"} & entry.flags and entry.english.base not in ("be", "have", "get"):
                break
        please = self.pick(("bitte", "doch mal", "", ""))
        clause = self.clause(("future",), subject=subject, entry=entry, front="subject")
        clause = replace(
            clause,
            mid=(please, "") if please else None,
            negation="not" if clause.negation == "not" else "",
        )
        verb = entry.german
        clause_text = in_german(clause, "bare").removeprefix(verb.present(german.PERSONS[subject.person[0]]))
        de = verb.imperative("sie" if key == "Sie" else key) + clause_text
        en = joined(["don't" if clause.negation else "", in_english(replace(clause, negation=""), "open")])
        if please == "bitte":
            en = f"please {en}" if self.chance(0.6) else f"{en}, please"
        mark = self.pick((".", "!"), [3, 1])
        return de + mark, en + mark

    def _object(self, entry: Entry) -> tuple[str, str]:
        """Ask for the last complement of the verb."""
        gap = len(entry.complements) - 1
        complement = entry.complements[gap]
        clause = self._questionable(TENSES, entry, gap)
        if clause.negation in WITHOUT:
            clause = replace(clause, negation="")
        human = bool(HUMAN & set(complement.classes))
        if complement.preposition and not human:
            r = "r" if complement.preposition[0] in "aeiouäöü" else ""
            word = f"wo{r}{complement.preposition}"
        else:
            case = {"acc": "wen" if human else "was", "dat": "wem"}[complement.case]
            word = joined([complement.preposition, case])
        return self._question(word, "who" if human else "what", clause)

    def _questionable(self, tenses: tuple[str, ...], entry: Entry | None = None, gap: int | None = None) -> Clause:
        entry, subject = entry or self.entry(None), None
        if HUMAN & set(entry.subjects) and self.chance(0.75):
            subject = self.phrases.pronoun(self.pick(("du", "ihr", "Sie", "er", "sie", "wir"), [5, 2, 3, 1, 1, 1]))
        clause = self.clause(tenses, subject=subject, entry=entry, gap=gap, front="subject")
        return clause if clause.tense == "perfect" else replace(clause, mid=None)

    def _question(self, de: str, en: str, clause: Clause) -> tuple[str, str]:
        return f"{joined([de, in_german(clause, 'question')])}?", f"{joined([en, in_english(clause, 'question')])}?"
