"""A clause before it is put into words: a verb with its arguments, tense and negation."""

from __future__ import annotations

from dataclasses import dataclass

from recipes.composed.lexicon import Adverbial, Entry
from recipes.composed.phrases import Phrase

MODALS = {
    "can": ("können", ("can",)),
    "must": ("müssen", ("have", "to")),
    "want": ("wollen", ("want", "to")),
    "should": ("sollen", ("should",)),
    "may": ("dürfen", ("be", "allowed", "to")),
    "would like": ("möchten", ("would", "like", "to")),
}
PAST_MODALS = {
    "could": ("können", ("be", "able", "to")),
    "had to": ("müssen", ("have", "to")),
    "wanted": ("wollen", ("want", "to")),
    "was to": ("sollen", ("be", "supposed", "to")),
    "was allowed": ("dürfen", ("be", "allowed", "to")),
}
SUBJUNCTIVES = {
    "would": ("würden", "would"),
    "could then": ("könnten", "could"),
    "ought": ("sollten", "should"),
    "advised": ("solle", "should"),
}
# German; English, before the verb and at the end; French, after the finite verb.
NEGATIONS = {
    "": ("", "", "", ""),
    "not": ("nicht", "not", "", "pas"),
    "never": ("nie", "never", "", "jamais"),
    "never yet": ("noch nie", "never", "", "encore jamais"),
    "no more": ("nicht mehr", "not", "anymore", "plus"),
    "not yet": ("noch nicht", "not", "yet", "pas encore"),
    "kein": ("", "not", "", "pas"),
    "kein mehr": ("", "not", "anymore", "plus"),
}
WITHOUT = ("kein", "kein mehr")  # negations whose German word stands with the object


@dataclass(frozen=True)
class Clause:
    """A clause before it is put into words.

    tense: "past" (German perfect), "told" (preterite), "perfect" (English perfect as well), "pluperfect", "habit" (the
    present), "now", "since", "future" (German present), "will", or a key of the tables of modal verbs above.
    negation: a key of NEGATIONS. place: in all languages. front: the first element of a German main clause: "subject",
    "adverbial" (also in English and French) or "object". gap: the number of the complement that the pronoun of a
    relative clause or question replaces, -1 for the subject; its argument is what the pronoun stands for, with which a
    French participle agrees. mid: a word such as "already" in the middle of the sentence, in all languages.
    """

    subject: Phrase
    entry: Entry
    arguments: tuple[Phrase, ...]
    tense: str
    negation: str = ""
    adverbials: tuple[Adverbial, ...] = ()
    place: tuple[str, str, str] | None = None
    front: str = "subject"
    gap: int | None = None
    passive: bool = False
    mid: tuple[str, str, str] | None = None

    @property
    def opening(self) -> Adverbial | None:
        """The adverbial at the start of a main clause in English: the one in front, or a comment."""
        if self.front == "adverbial" and self.adverbials and not self.adverbials[0].is_frequency:
            return self.adverbials[0]
        return next((adverbial for adverbial in self.adverbials if "mood" in adverbial.kinds), None)
