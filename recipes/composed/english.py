"""Forms of English words: articles, verbs by person and tense."""

from __future__ import annotations

import re
from dataclasses import dataclass

BE = {"present": ["am", "are", "is", "are", "are", "are"], "past": ["was", "were", "was", "were", "were", "were"]}
PERSONS = ("i", "you", "he", "we", "you", "they")  # as the German ones stand in their order
VOWEL_SOUND = re.compile(r"(?!(?:uni(?![mn])|us[eub]|euro|one))[aeiou]|hour|honest|8|11\b|18\b", re.IGNORECASE)


def article(word: str) -> str:
    return "an" if VOWEL_SOUND.match(word) else "a"


@dataclass(frozen=True)
class Verb:
    """Forms of an English verb."""

    base: str
    past: str
    participle: str

    @classmethod
    def of(cls, base: str, irregular: dict[str, tuple[str, str]]) -> Verb:
        if base in irregular:
            return cls(base, *irregular[base])
        if base.endswith("e"):
            past = base + "d"
        elif base.endswith("y") and base[-2] not in "aeiou":
            past = base[:-1] + "ied"
        else:
            past = base + "ed"
        return cls(base, past, past)

    def present(self, person: int) -> str:
        """person: 0 to 5 as in PERSONS."""
        if self.base == "be":
            return BE["present"][person]
        if person != 2:
            return self.base
        if self.base in ("have", "do", "go"):
            return {"have": "has", "do": "does", "go": "goes"}[self.base]
        if self.base.endswith(("s", "sh", "ch", "x", "z")):
            return self.base + "es"
        if self.base.endswith("y") and self.base[-2] not in "aeiou":
            return self.base[:-1] + "ies"
        return self.base + "s"

    def simple_past(self, person: int) -> str:
        return BE["past"][person] if self.base == "be" else self.past

    @property
    def ing(self) -> str:
        if self.base.endswith("ie"):
            return self.base[:-2] + "ying"
        if self.base.endswith("e") and not self.base.endswith(("ee", "oe", "ye")) and self.base != "be":
            return self.base[:-1] + "ing"
        doubled = re.fullmatch(r"(.*([bdgklmnprt]))\2ed", self.past)
        if doubled and doubled[1] == self.base:
            return self.base + self.base[-1] + "ing"
        if self.base in DOUBLED:
            return self.base + self.base[-1] + "ing"
        return self.base + "ing"


# Irregular verbs that double their last letter before -ing.
DOUBLED = frozenset(
    [
        "begin",
        "cut",
        "forget",
        "get",
        "hit",
        "let",
        "put",
        "quit",
        "run",
        "set",
        "shut",
        "sit",
        "spit",
        "split",
        "swim",
        "upset",
        "win",
        "dig",
    ]
)
