"""A clause in both languages before it is put into words: a verb with its arguments, tense and negation."""

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
NEGATIONS = {
    "": ("", "", ""),
    "not": ("nicht", "not", ""),
    "never": ("nie", "never", ""),
    "never yet": ("noch nie", "never", ""),
    "no more": ("nicht mehr", "not", "anymore"),
    "not yet": ("noch nicht", "not", "yet"),
    "kein": ("", "not", ""),
    "kein mehr": ("", "not", "anymore"),
}
WITHOUT = ("kein", "kein mehr")  # negations whose German word stands with the object


@dataclass(frozen=True)
class Clause:
    """A clause before it is put into words.

    tense: "past" (German perfect), "told" (preterite), "perfect" (English perfect as well), "pluperfect", "habit" (the
    present), "now", "since", "future" (German present), "will", or a key of the tables of modal verbs above.
    negation: a key of NEGATIONS. place: in both languages. front: the first element of a German main clause: "subject",
    "adverbial" (also in English) or "object". gap: the number of the complement that the pronoun of a relative clause
    or question replaces, -1 for the subject. mid: a word such as "already" in the middle of both.
    """

    subject: Phrase
    entry: Entry
    arguments: tuple[Phrase, ...]
    tense: str
    negation: str = ""
    adverbials: tuple[Adverbial, ...] = ()
    place: tuple[str, str] | None = None
    front: str = "subject"
    gap: int | None = None
    passive: bool = False
    mid: tuple[str, str] | None = None


def joined(words: list[str]) -> str:
    return " ".join(word for word in words if word)
