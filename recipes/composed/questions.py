"""Questions and requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recipes.composed import french, german
from recipes.composed.clauses import WITHOUT, Clause
from recipes.composed.drawn import Clauses
from recipes.composed.english_order import in_english
from recipes.composed.french_order import in_french, question_in_french, question_word
from recipes.composed.german_order import in_german
from recipes.composed.lexicon import Entry
from recipes.composed.phrases import HUMAN, Kind, Phrase
from recipes.composed.texts import Texts, joined

TENSES = (
    "past", "perfect", "will", "habit", "can", "must", "want", "would like", "may", "future", "could then",
)  # fmt: skip
WHO = Phrase(
    Texts(de=lambda: {"nom": "wer"}, en=lambda: ("who", "who"), fr=lambda: french.Nominal("qui")),
    "m",
    (2, 2),
    ("sein", "their", "themselves"),
    kind=Kind.PRONOUN,
    human=True,
)


class Questions(Clauses):
    """Draws questions and requests."""

    def yes_or_no(self) -> Texts:
        return _question("", "", lambda: "", self._questionable(TENSES))

    def question(self) -> Texts:
        """Draw a question with a question word for an object, the subject, the manner or the time."""
        draw = self.phrases.random.random()
        if draw < 0.35:
            entry = self.entry(None)
            if entry.complements and HUMAN & set(entry.subjects) and "idiom" not in entry.flags:
                return self._object(entry)
        if draw < 0.5:
            clause = self.clause(("past", "habit", "can", "will", "want", "future"), subject=WHO, front="subject")
            return Texts(
                de=lambda: in_german(clause, "main") + "?",
                en=lambda: in_english(clause, "main") + "?",
                fr=lambda: in_french(clause, "main") + " ?",
            )
        de, en, fr = self.pick(self.lexicon.openings["asked"])
        clause = self._questionable(("past", "told", "will", "can", "must", "want", "future", "habit"))
        if de != "warum":
            negation = clause.negation if clause.negation in WITHOUT else ""
            clause = replace(clause, adverbials=(), mid=None, negation=negation)
        return _question(de, en, lambda: fr, clause, " with" if de.startswith("mit wem") else "")

    def request(self) -> Texts:
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
            mid=(please, "", "") if please else None,
            negation="not" if clause.negation == "not" else "",
        )
        courtesy = "{request}"
        if please == "bitte":
            courtesy = self.pick(("{please} {request}", "{request}, {please}"), [3, 2])
        mark = self.pick((".", "!"), [3, 1])

        def german_request() -> str:
            verb, person = entry.german, german.PERSONS[subject.person[0]]
            rest = in_german(clause, "bare").removeprefix(verb.present(person))
            return verb.imperative("sie" if key == "Sie" else key) + rest + mark

        def english_request() -> str:
            request = joined(["don't" if clause.negation else "", in_english(replace(clause, negation=""), "open")])
            return courtesy.format(please="please", request=request) + mark

        def french_request() -> str:
            please = "s'il te plaît" if key == "du" else "s'il vous plaît"
            order = courtesy.replace("} {", "}, {")
            return order.format(please=please, request=in_french(clause, "imperative")) + mark.replace("!", " !")

        return Texts(german_request, english_request, french_request)

    def _object(self, entry: Entry) -> Texts:
        """Ask for the last complement of the verb."""
        gap = len(entry.complements) - 1
        complement = entry.complements[gap]
        clause = self._questionable(TENSES, entry, gap)
        if clause.negation in WITHOUT:
            clause = replace(clause, negation="")
        # The question word is masculine and singular in French.
        clause = replace(clause, arguments=(*clause.arguments[:gap], WHO))
        human = bool(HUMAN & set(complement.classes))
        if complement.preposition and not human:
            r = "r" if complement.preposition[0] in "aeiouäöü" else ""
            word = f"wo{r}{complement.preposition}"
        else:
            case = {"acc": "wen" if human else "was", "dat": "wem"}[complement.case]
            word = joined([complement.preposition, case])
        return _question(word, "who" if human else "what", lambda: question_word(clause, human), clause)

    def _questionable(self, tenses: tuple[str, ...], entry: Entry | None = None, gap: int | None = None) -> Clause:
        entry, subject = entry or self.entry(None), None
        if HUMAN & set(entry.subjects) and self.chance(0.75):
            subject = self.phrases.pronoun(self.pick(("du", "ihr", "Sie", "er", "sie", "wir"), [5, 2, 3, 1, 1, 1]))
        clause = self.clause(tenses, subject=subject, entry=entry, gap=gap, front="subject")
        return clause if clause.tense == "perfect" else replace(clause, mid=None)


def _question(de: str, en: str, fr: Callable[[], str], clause: Clause, end: str = "") -> Texts:
    """Return a question with question words; end: what the English one ends with."""
    return Texts(
        de=lambda: joined([de, in_german(clause, "question")]) + "?",
        en=lambda: joined([en, in_english(clause, "question")]) + end + "?",
        fr=lambda: question_in_french(fr(), clause) + " ?",
    )
