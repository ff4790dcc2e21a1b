"""Random clauses: a verb with subject, objects, adverbials and perhaps a negation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recipes.composed.clauses import Clause
from recipes.composed.english_order import in_english
from recipes.composed.french_order import in_french
from recipes.composed.german_order import in_german
from recipes.composed.lexicon import Adverbial, Entry, Lexicon
from recipes.composed.phrases import HUMAN, Kind, Phrase, Phrases
from recipes.composed.texts import Texts
from recipes.slots.fillers import Fillers

# The adverbials of each tense, and the weight of each tense.
TIMES = {"past": "past", "told": "past", "future": "future", "will": "future", "habit": "habit", "since": "since"}
TENSES = {
    "past": 5, "told": 2, "future": 3, "will": 1.5, "habit": 2, "now": 1, "since": 1.2, "perfect": 1.5, "can": 1,
    "must": 1.2, "want": 1, "should": 0.7, "may": 0.4, "would like": 0.7, "could": 0.5, "had to": 0.8, "wanted": 0.5,
    "was to": 0.2, "was allowed": 0.2, "would": 0.3, "could then": 0.4, "ought": 0.4,
}  # fmt: skip
WILLED = ("want", "would like", "wanted", "may", "was allowed")  # only somebody does so, and something
FIRST = frozenset({"past", "future", "habit", "now", "since", "reason"})  # adverbials that often begin a sentence
FINISHED = ("past", "told", "perfect", "could", "had to")
MIDS = {
    "perfect": (
        ("schon", "already", "déjà"), ("bereits", "already", "déjà"), ("gerade", "just", "venir de"),
        ("endlich", "finally", "enfin"),
    ),
    "past": (("endlich", "finally", "enfin"), ("sogar", "even", "même"), ("fast", "almost", "presque")),
    "habit": (("auch", "also", "aussi"), ("nur", "only", "seulement")),
}  # fmt: skip


class NoVerb(LookupError):
    """Raised if no verb of the lexicon goes with a subject."""


class Clauses:
    """Draws clauses with a random generator."""

    def __init__(self, fillers: Fillers, random: np.random.Generator, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.phrases = Phrases(lexicon, fillers, random)
        self.chance, self.pick = self.phrases.chance, self.phrases.pick

    def clause(
        self,
        tenses=tuple(TENSES),
        *,
        subject: Phrase | None = None,
        entry: Entry | None = None,
        gap: int | None = None,
        plain: bool = False,
        front: str | None = None,
    ) -> Clause:
        """Draw a clause in one of the tenses; the other parameters fix parts of it.

        plain: without adverbials and negation; gap and front: as in Clause."""
        if entry is None:
            entry = self.entry(subject)
        subject = subject or self.phrases.subject(entry.subjects)
        tense = self.pick_tense(entry, tenses)
        arguments = tuple(self.phrases.object(c.classes, subject) for c in entry.complements)
        clause = Clause(subject, entry, arguments, tense, gap=gap)
        if {"to", "at"} & set(entry.middle):
            place = self.pick(self.lexicon.places)
            clause = replace(clause, place=place.to if "to" in entry.middle else place.at)
        if not plain:
            clause = self._adverbials(self._negated(clause) if self.chance(0.16) else clause)
        return replace(clause, front=front) if front else clause

    def make_statement(self, clause: Clause) -> Texts:
        return Texts(
            de=lambda: in_german(clause, "main") + ".",
            en=lambda: in_english(clause, "main") + ".",
            fr=lambda: in_french(clause, "main") + ".",
        )

    def entry(self, subject: Phrase | None) -> Entry:
        """Draw a verb that fits the subject. Raises NoVerb if there is none."""
        if subject is None:
            return self.pick(self.lexicon.verbs)
        classes = sorted(HUMAN if subject.human else subject.classes)
        known = [name for name in classes if name in self.lexicon.verbs_of]
        if not known:
            raise NoVerb(f"no verb for {subject.english[0]}")
        return self.pick(self.lexicon.verbs_of[self.pick(known, [len(self.lexicon.verbs_of[name]) for name in known])])

    def pick_tense(self, entry: Entry, tenses) -> str:
        allowed = [t for t in tenses if not (t in ("now", "since") and {"event", "idiom", "stative"} & entry.flags)]
        if not HUMAN & set(entry.subjects) or "stative" in entry.flags:
            allowed = [t for t in allowed if t not in WILLED] or ["told"]
        return self.pick(allowed, [TENSES.get(t, 1) for t in allowed])

    def _time(self, kind: str, entry: Entry) -> Adverbial:
        """An adverbial of the kind; what lasts is not at half past eight."""
        while True:
            drawn = self.pick(self.lexicon.when[kind])
            if "stative" not in entry.flags or "clock" not in drawn.kinds:
                return drawn

    def _adverbials(self, clause: Clause) -> Clause:
        tense, adverbials = clause.tense, []
        entry = clause.entry
        if clause.negation in ("no more", "not yet", "never", "never yet", "kein mehr"):
            return clause
        if tense == "now":
            adverbials = [self.pick(self.lexicon.when["now"])]
        elif tense == "habit" and "stative" in entry.flags:
            pass
        elif tense == "habit" and self.chance(0.5):
            adverbials = [self.pick(self.lexicon.when["often"])]
        elif tense in TIMES and (tense != "told" or self.chance(0.6)):
            adverbials = [self._time(TIMES[tense], entry)]
        elif tense in ("must", "want", "should", "could then", "ought", "would like", "can") and self.chance(0.5):
            adverbials = [self._time("future", entry)]
        elif tense in ("had to", "could", "wanted") and self.chance(0.6):
            adverbials = [self._time("past", entry)]
        if "food" in {name for c in entry.complements for name in c.classes} and "essen" in entry.german.infinitive:
            adverbials += [self.pick(self.lexicon.when["food"])] if self.chance(0.4) else []
        extra = self.phrases.random.random()
        human = clause.subject.human and tense != "since"
        if extra < 0.11 and tense in FINISHED and human:
            adverbials.append(self.pick(self.lexicon.when["reason"]))
        elif extra < 0.18 and human and "stative" not in entry.flags and "idiom" not in entry.flags:
            adverbials.append(self.pick(self.lexicon.when["company"]))
        elif extra < 0.5 and "to" in entry.middle and human:
            adverbials.append(self.pick(self.lexicon.when["means"]))
        elif extra < 0.25 and human and not clause.place and not {"stative", "idiom"} & entry.flags:
            clause = replace(clause, place=self.pick(self.lexicon.places).at)
        elif extra < 0.4 and tense in MIDS and not clause.negation:
            clause = replace(clause, mid=self.pick(MIDS[tense]))
        if tense == "perfect" and not clause.mid and not clause.negation:
            clause = replace(clause, mid=self.pick(MIDS["perfect"]))
        front = "subject"
        if adverbials and self.chance(0.4) and FIRST & adverbials[0].kinds:
            front = "adverbial"
        elif self.chance(0.25) and self._object_first(clause):
            front = "object"
        return replace(clause, adverbials=tuple(adverbials), front=front)

    def _object_first(self, clause: Clause) -> bool:
        """Return whether the object can come first without being mistaken for the subject."""
        bare = [i for i, c in enumerate(clause.entry.complements) if not c.preposition and i != clause.gap]
        if not bare or clause.gap is not None:
            return False
        phrase, complement = clause.arguments[bare[0]], clause.entry.complements[bare[0]]
        if phrase.kind is Kind.PRONOUN:
            return complement.case == "dat"
        if phrase.kind is Kind.NAME or not phrase.definite:
            return False
        return (
            complement.case == "dat"
            or phrase.gender == "m"
            or (clause.subject.kind is Kind.PRONOUN and clause.subject.person[0] != 2)
        )

    def _negated(self, clause: Clause) -> Clause:
        """Negate the clause, with "kein" if the object is indefinite."""
        index = clause.entry.object_number
        if clause.tense in ("since", "now") or "noneg" in clause.entry.flags:
            return clause
        if index is not None and clause.arguments[index].kind is Kind.NOUN and not clause.arguments[index].definite:
            none = self.phrases.noun_phrase(clause.entry.complements[index].classes, None, kind="kein")
            negation = "kein"
            if self.chance(0.3) and clause.tense in ("habit", "can"):
                none, negation = none.no_longer, "kein mehr"
            none = replace(none, definite=False)
            arguments = tuple(none if i == index else p for i, p in enumerate(clause.arguments))
            return self._all_definite(replace(clause, arguments=arguments, negation=negation), but=index)
        weights = {"not": 5.0, "never": 1.0 if clause.tense not in ("future", "told") else 0.2}
        if clause.tense == "perfect":
            weights = {"not yet": 2.0, "never yet": 2.0}
        elif clause.tense in ("habit", "can", "want", "may"):
            weights |= {"no more": 1.5}
        return self._all_definite(replace(clause, negation=self.pick(weights, weights.values())))

    def _all_definite(self, clause: Clause, but: int | None = None) -> Clause:
        """Make the indefinite phrases of a negated clause definite, except the object of "kein"."""
        if not clause.negation:
            return clause
        arguments = []
        for i, (complement, phrase) in enumerate(zip(clause.entry.complements, clause.arguments)):
            if i != but and phrase.kind is Kind.NOUN and not phrase.definite and not complement.preposition:
                phrase = self.phrases.noun_phrase(complement.classes, clause.subject, kind="def")
            arguments.append(phrase)
        return replace(clause, arguments=tuple(arguments))
