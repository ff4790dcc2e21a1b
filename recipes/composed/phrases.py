"""Noun phrases and pronouns in both languages, drawn at random."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate

import numpy as np

from recipes.composed import german
from recipes.composed.english import article
from recipes.composed.lexicon import Adjective, Lexicon, Noun
from recipes.slots.fillers import Fillers

# German and English forms by case; the person in each language (0 to 5: I, you, he, we, you all, they).
PRONOUNS = {
    "ich": (0, "ich mich mir", "I me", "mein my myself"),
    "du": (1, "du dich dir", "you you", "dein your yourself"),
    "er": (2, "er ihn ihm", "he him", "sein his himself"),
    "sie": (2, "sie sie ihr", "she her", "ihr her herself"),
    "wir": (3, "wir uns uns", "we us", "unser our ourselves"),
    "ihr": (4, "ihr euch euch", "you you", "euer your yourselves"),
    "sie alle": (5, "sie sie ihnen", "they them", "ihr their themselves"),
    "Sie": (5, "Sie Sie Ihnen", "you you", "Ihr your yourself"),
}
NUMBERS = (("zwei ", "two"), ("drei ", "three"), ("vier ", "four"), ("fünf ", "five"), ("zehn ", "ten"))
DETERMINERS = {"def": "the", "": "", "jed": "every", "all": "all the"}
UNOWNED = frozenset({"Mann", "Frau", "Freund", "Freundin", "Junge", "Mädchen"})  # "meine Frau" is no woman but a wife
HUMAN = frozenset({"person", "job", "family", "child"})


class Kind(Enum):
    """The kinds of phrases."""

    PRONOUN, NAME, NOUN = range(3)


@dataclass(frozen=True)
class Phrase:
    """A noun phrase or pronoun. german: by case; english: as subject and as object; gender m, f, n, p; person: 0 to 5
    in each language; own: its possessive in both and its English reflexive pronoun; relative: a clause behind it."""

    german: dict[str, str]
    english: tuple[str, str]
    gender: str
    person: tuple[int, int]
    own: tuple[str, str, str]
    kind: Kind = Kind.NOUN
    definite: bool = True
    human: bool = False
    classes: frozenset[str] = frozenset()
    relative: tuple[str, str] | None = None

    @property
    def no_longer(self) -> Phrase:
        """ "kein Brot mehr": of a phrase with "kein"."""
        return replace(self, german={case: f"{form} mehr" for case, form in self.german.items()})

    @property
    def possessive(self) -> str:
        """ "the neighbor's": English, before what belongs to it."""
        text = self.english[0]
        return text + ("'" if text.endswith("s") and self.person[1] == 5 else "'s")


class Phrases:
    """Draws phrases from a lexicon."""

    def __init__(self, lexicon: Lexicon, fillers: Fillers, random: np.random.Generator) -> None:
        self.lexicon, self.fillers, self.random = lexicon, fillers, random

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, items: Iterable, weights: Iterable[float] | None = None):
        """Draw one of the items."""
        items = items if isinstance(items, (list, tuple)) else list(items)
        if weights is None:
            return items[self.random.integers(len(items))]
        total = list(accumulate(weights))
        return items[bisect(total, self.random.random() * total[-1])]

    def subject(self, classes: tuple[str, ...]) -> Phrase:
        """Draw a subject; a person is often a pronoun or a name."""
        if HUMAN & set(classes):
            draw = self.random.random()
            if draw < 0.4:
                weights = [5, 3, 3, 3, 3, 1, 2, 2]
                return self.pronoun(self.pick(PRONOUNS, weights))
            if draw < 0.5:
                return self.name()
        return self.noun_phrase(classes, None)

    def pronoun(self, key: str) -> Phrase:
        person, forms, english, own = PRONOUNS[key]
        gender = {"er": "m", "sie": "f"}.get(key, "p")
        german_forms = dict(zip(("nom", "acc", "dat"), forms.split()))
        return Phrase(
            german_forms,
            tuple(english.split()),
            gender,
            (person, 1 if key == "Sie" else person),
            tuple(own.split()),
            kind=Kind.PRONOUN,
            human=True,
        )

    def name(self) -> Phrase:
        kind = self.pick(("male", "female"))
        filler = self.fillers.sample(kind, self.random)
        de, en = filler["de"], filler["en"]
        if self.chance(0.15):
            family = self.fillers.sample("family", self.random)
            title = ("Herr", "Herrn", "Mr.") if kind == "male" else ("Frau", "Frau", "Mrs.")
            forms = {"nom": f"{title[0]} {family['de']}"} | dict.fromkeys(("acc", "dat"), f"{title[1]} {family['de']}")
            en = f"{title[2]} {family['en']}"
        else:
            forms = dict.fromkeys(("nom", "acc", "dat"), de)
        own = ("sein", "his", "himself") if kind == "male" else ("ihr", "her", "herself")
        return Phrase(forms, (en, en), kind[0], (2, 2), own, kind=Kind.NAME, human=True)

    def object(self, classes: tuple[str, ...], subject: Phrase) -> Phrase:
        """Draw an object, which may belong to the subject."""
        if HUMAN & set(classes) and self.chance(0.35):
            if self.chance(0.4):
                return self.name()
            others = [key for key in PRONOUNS if PRONOUNS[key][0] != subject.person[0] and key not in ("Sie", "sie")]
            return self.pronoun(self.pick(others))
        return self.noun_phrase(classes, subject)

    def noun(self, classes: tuple[str, ...]) -> Noun:
        known = [name for name in classes if self.lexicon.by_class.get(name)]
        if not known:
            raise LookupError(f"no noun of the classes {classes}")
        return self.pick(self.lexicon.by_class[self.pick(known)])

    def noun_phrase(self, classes: tuple[str, ...], owner: Phrase | None, *, kind: str | None = None) -> Phrase:
        """Draw a noun with a determiner, sometimes with an adjective, a number or a possessor."""
        noun = self.noun(classes)
        plural = noun.gender == "p" or (bool(noun.plural and noun.english_plural) and self.chance(0.22))
        kind = kind if kind is not None else self._determiner(noun, plural)
        if kind == "ein" and (plural or not noun.plural or not noun.english_plural):
            kind = ""
        adjective = self._adjective(noun) if self.chance(0.25) else None
        possessor = None
        if kind == "own":
            possessor = (
                owner
                if owner is not None and owner.gender != "n" and self.chance(0.6)
                else self.pronoun(self.pick(("ich", "wir", "du")))
            )
        made = self.built(noun, plural, kind, possessor, adjective)
        if kind == "def" and "person" not in noun.classes and not adjective and self.chance(0.06):
            return self._belonging(made)
        return made

    def built(
        self, noun: Noun, plural: bool, kind: str, possessor: Phrase | None, adjective: Adjective | None
    ) -> Phrase:
        gender = "p" if plural else noun.gender
        many = (plural and bool(noun.english_plural)) or not noun.english
        mass = not noun.english_plural
        word = noun.english_plural if many else noun.english
        described = f"{adjective.english} {word}" if adjective else word
        number = ""
        if kind == "number":
            kind, number = self.pick(NUMBERS)
        if possessor is not None:
            before, kind = possessor.own[1], possessor.own[0]
        elif number:
            before = number
        elif kind == "dies":
            before = "these" if many else "this"
        elif kind == "ein":
            before = "some" if many or mass else article(described)
        elif kind == "kein":
            before = "any" if many or mass else article(described)
        else:
            before = DETERMINERS.get(kind, "")
        forms = {
            case: " ".join(
                part
                for part in (
                    german.determiner(kind, case, gender),
                    adjective and german.adjective(adjective.stem, kind, case, gender),
                    german.noun(noun.singular, noun.plural, noun.weak, case, gender),
                )
                if part
            )
            for case in german.DEFINITE
        }
        english = f"{before} {described}".strip()
        human = "person" in noun.classes
        own = {"m": ("sein", "his", "himself"), "f": ("ihr", "her", "herself"), "p": ("ihr", "their", "themselves")}
        own["n"] = ("sein", "its", "itself")
        if gender in "mf" and not human:
            own[gender] = (own[gender][0], "its", "itself")
        return Phrase(
            forms,
            (english, english),
            gender,
            (5 if gender == "p" else 2, 5 if many else 2),
            own["p"] if many else own[gender],
            definite=kind not in ("", "ein", "kein") and not number,
            human=human,
            classes=noun.classes,
        )

    def _determiner(self, noun: Noun, plural: bool) -> str:
        if "family" in noun.classes or "body" in noun.classes:
            return "own" if self.chance(0.85) else "def"
        kinds = {"def": 5.0, "own": 0 if noun.singular in UNOWNED else 2.5, "dies": 1.0}
        if plural and noun.english_plural:
            kinds |= {"": 1.5, "number": 1.5 if noun.plural and noun.english else 0, "all": 0.4}
        elif plural or not noun.english_plural or not noun.plural:
            kinds |= {"": 4.0}
        else:
            kinds |= {"ein": 4.0, "jed": 0.2}
        return self.pick(kinds, kinds.values())

    def adjectives(self, classes: frozenset[str]) -> list[Adjective]:
        """Return the adjectives that go with nouns of these classes."""
        return [adjective for name in sorted(classes) for adjective in self.lexicon.described.get(name, ())]

    def _adjective(self, noun: Noun) -> Adjective | None:
        fitting = self.adjectives(noun.classes)
        if not HUMAN & noun.classes and self.chance(0.3):
            fitting += self.lexicon.described.get("alle", [])
        return self.pick(fitting) if fitting else None

    def _belonging(self, owned: Phrase) -> Phrase:
        """ "das Auto meiner Nachbarin": "my neighbor's car"."""
        owner = self.noun_phrase(("family", "job"), None, kind="own")
        if owner.person[0] == 5:
            return owned
        forms = {case: f"{form} {owner.german['gen']}" for case, form in owned.german.items()}
        english = f"{owner.possessive} {owned.english[0].partition(' ')[2]}"
        return replace(owned, german=forms, english=(english, english))
