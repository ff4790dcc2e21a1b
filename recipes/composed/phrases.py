"""Noun phrases and pronouns in all languages, drawn at random."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import accumulate

import numpy as np

from recipes.composed import french, german
from recipes.composed.english import article
from recipes.composed.lexicon import Adjective, Lexicon, NotInFrench, Noun
from recipes.composed.texts import Texts, joined
from recipes.slots.fillers import Fillers

# German and English forms by case, possessives and the reflexive; the person in German, English and French (0 to 5: I,
# you, he, we, you all, they).
PRONOUNS = {
    "ich": ("ich mich mir", "I me", "mein my myself", (0, 0, 0)),
    "du": ("du dich dir", "you you", "dein your yourself", (1, 1, 1)),
    "er": ("er ihn ihm", "he him", "sein his himself", (2, 2, 2)),
    "sie": ("sie sie ihr", "she her", "ihr her herself", (2, 2, 2)),
    "wir": ("wir uns uns", "we us", "unser our ourselves", (3, 3, 3)),
    "ihr": ("ihr euch euch", "you you", "euer your yourselves", (4, 4, 4)),
    "sie alle": ("sie sie ihnen", "they them", "ihr their themselves", (5, 5, 5)),
    "Sie": ("Sie Sie Ihnen", "you you", "Ihr your yourself", (5, 1, 4)),
}
NUMBERS = (
    ("zwei ", "two", "deux"), ("drei ", "three", "trois"), ("vier ", "four", "quatre"), ("fünf ", "five", "cinq"),
    ("zehn ", "ten", "dix"),
)  # fmt: skip
DETERMINERS = {"def": "the", "": "", "jed": "every", "all": "all the"}
FRENCH_DETERMINERS = {
    "def": "le", "dies": "ce", "jed": "chaque", "all": "tout", "ein": "un", "kein": "un", "": "du",
}  # fmt: skip
ABSTRACT = frozenset({"event", "idea", "illness", "sport", "weather"})  # "avoir la grippe", but "boire du lait"
TITLES = {"male": ("Herr ", "Herrn ", "Mr. ", "M."), "female": ("Frau ", "Frau ", "Mrs. ", "Mme")}
UNOWNED = frozenset({"Mann", "Frau", "Freund", "Freundin", "Junge", "Mädchen"})  # "meine Frau" is no woman but a wife
HUMAN = frozenset({"person", "job", "family", "child"})


class Kind(Enum):
    """The kinds of phrases."""

    PRONOUN, NAME, NOUN = range(3)


@dataclass(frozen=True)
class Phrase:
    """A noun phrase or pronoun. forms: in German by case, in English as subject and as object, in French a Nominal;
    gender: m, f, n, p in German; person: 0 to 5 in German and English; own: its possessive in both and its English
    reflexive pronoun; relative: a clause behind it."""

    forms: Texts
    gender: str
    person: tuple[int, int]
    own: tuple[str, str, str]
    kind: Kind = Kind.NOUN
    definite: bool = True
    human: bool = False
    classes: frozenset[str] = frozenset()
    relative: Texts | None = None

    @cached_property
    def german(self) -> dict[str, str]:
        return self.forms.de()

    @cached_property
    def english(self) -> tuple[str, str]:
        return self.forms.en()

    @cached_property
    def french(self) -> french.Nominal:
        return self.forms.fr()

    @property
    def no_longer(self) -> Phrase:
        """ "kein Brot mehr": of a phrase with "kein"."""
        return self.with_forms(de=lambda: {case: f"{form} mehr" for case, form in self.german.items()})

    @property
    def possessive(self) -> str:
        """ "the neighbor's": English, before what belongs to it."""
        text = self.english[0]
        return text + ("'" if text.endswith("s") and self.person[1] == 5 else "'s")

    def with_forms(self, **forms: Callable) -> Phrase:
        """Return the phrase with other forms in some languages."""
        return replace(self, forms=replace(self.forms, **forms))


class Phrases:
    """Draws phrases from a lexicon."""

    def __init__(self, lexicon: Lexicon, fillers: Fillers, random: np.random.Generator) -> None:
        self.lexicon, self.fillers, self.random = lexicon, fillers, random
        # English does not tell the gender of these. masculine_nouns: nouns such as "doctor" are mostly masculine in
        # French; feminine_pronouns: pronouns are feminine where they can be ("je suis contente", "elles").
        self.masculine_nouns = self.feminine_pronouns = False

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
        forms, english, own, person = PRONOUNS[key]
        feminine, plural = key == "sie" or (self.feminine_pronouns and key != "er"), key in ("wir", "ihr", "sie alle")
        return Phrase(
            Texts(
                de=lambda: dict(zip(("nom", "acc", "dat"), forms.split())),
                en=lambda: tuple(english.split()),
                fr=lambda: french.Nominal(person=person[2], feminine=feminine, plural=plural),
            ),
            {"er": "m", "sie": "f"}.get(key, "p"),
            person[:2],
            tuple(own.split()),
            kind=Kind.PRONOUN,
            human=True,
        )

    def name(self) -> Phrase:
        kind = self.pick(("male", "female"))
        filler, titles = self.fillers.sample(kind, self.random), ("",) * 4
        if self.chance(0.15):
            filler, titles = self.fillers.sample("family", self.random), TITLES[kind]
        subject, oblique, mister, monsieur = titles
        return Phrase(
            Texts(
                de=lambda: {"nom": subject + filler["de"]} | dict.fromkeys(("acc", "dat"), oblique + filler["de"]),
                en=lambda: (mister + filler["en"],) * 2,
                fr=lambda: french.Nominal(french.name(filler["fr"]), kind == "female", determiner=monsieur),
            ),
            kind[0],
            (2, 2),
            ("sein", "his", "himself") if kind == "male" else ("ihr", "her", "herself"),
            kind=Kind.NAME,
            human=True,
        )

    def object(self, classes: tuple[str, ...], subject: Phrase) -> Phrase:
        """Draw an object, which may belong to the subject."""
        if HUMAN & set(classes) and self.chance(0.35):
            if self.chance(0.4):
                return self.name()
            others = [key for key in PRONOUNS if PRONOUNS[key][3][0] != subject.person[0] and key not in ("Sie", "sie")]
            return self.pronoun(self.pick(others))
        return self.noun_phrase(classes, subject)

    def noun(self, classes: tuple[str, ...]) -> Noun:
        known = [name for name in classes if self.lexicon.by_class.get(name)]
        if not known:
            raise LookupError(f"no noun of the classes {classes}")
        return self.prefer_masculine(self.pick(self.lexicon.by_class[self.pick(known)]))

    def prefer_masculine(self, noun: Noun) -> Noun:
        """Return a noun, or mostly the masculine one with the same English word: "médecin"."""
        if self.masculine_nouns and noun.gender == "f" and self.chance(0.75):
            return self.lexicon.masculine.get(noun.english, noun)
        return noun

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
        made = self.build(noun, plural, kind, possessor, adjective)
        if kind == "def" and "person" not in noun.classes and not adjective and self.chance(0.06):
            return self._belonging(made)
        return made

    def build(
        self, noun: Noun, plural: bool, kind: str, possessor: Phrase | None, adjective: Adjective | None
    ) -> Phrase:
        gender = "p" if plural else noun.gender
        many = (plural and bool(noun.english_plural)) or not noun.english
        human = "person" in noun.classes
        own = {"m": ("sein", "his", "himself"), "f": ("ihr", "her", "herself"), "p": ("ihr", "their", "themselves")}
        own["n"] = ("sein", "its", "itself")
        if gender in "mf" and not human:
            own[gender] = (own[gender][0], "its", "itself")
        number = self.pick(NUMBERS) if kind == "number" else None
        return Phrase(
            Texts(
                de=lambda: _german(noun, gender, number[0] if number else kind, possessor, adjective),
                en=lambda: (_english(noun, many, number[1] if number else kind, possessor, adjective),) * 2,
                fr=lambda: _french(noun, plural, number[2] if number else kind, possessor, adjective),
            ),
            gender,
            (5 if gender == "p" else 2, 5 if many else 2),
            own["p"] if many else own[gender],
            definite=kind not in ("", "ein", "kein", "number"),
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
        return owned.with_forms(
            de=lambda: {case: f"{form} {owner.german['gen']}" for case, form in owned.german.items()},
            en=lambda: (f"{owner.possessive} {owned.english[0].partition(' ')[2]}",) * 2,
            fr=lambda: replace(owned.french, words=f"{owned.french.words} {owner.french.after('de')}"),
        )


def _german(
    noun: Noun, gender: str, kind: str, possessor: Phrase | None, adjective: Adjective | None
) -> dict[str, str]:
    """Return the forms of a noun phrase by case. kind: as for german.determiner, or "own"."""
    kind = possessor.own[0] if possessor else kind
    return {
        case: joined(
            [
                german.determiner(kind, case, gender),
                german.adjective(adjective.stem, kind, case, gender) if adjective else "",
                german.noun(noun.singular, noun.plural, noun.weak, case, gender),
            ]
        )
        for case in german.DEFINITE
    }


def _english(noun: Noun, many: bool, kind: str, possessor: Phrase | None, adjective: Adjective | None) -> str:
    described = joined([adjective.english if adjective else "", noun.english_plural if many else noun.english])
    if possessor:
        kind = possessor.own[1]
    elif kind == "dies":
        kind = "these" if many else "this"
    elif kind in ("ein", "kein"):
        mass = {"ein": "some", "kein": "any"}[kind]
        kind = mass if many or not noun.english_plural else article(described)
    return joined([DETERMINERS.get(kind, kind), described])


def _french(
    noun: Noun, plural: bool, kind: str, possessor: Phrase | None, adjective: Adjective | None
) -> french.Nominal:
    if not noun.french:
        raise NotInFrench(noun.english or noun.english_plural)
    singular, many = noun.french.singular, noun.french.plural
    # Where English has one number only, its word says nothing of the number.
    plural = not singular or (plural and bool(many and noun.english_plural))
    words, feminine = many if plural else singular, noun.french.feminine
    if adjective:
        words = french.with_adjective(words, adjective.french, feminine, plural)
    if possessor:
        kind = french.POSSESSIVES[possessor.french.person]
    elif not kind and not plural and ABSTRACT & noun.classes:
        kind = "def"
    return french.Nominal(
        words,
        feminine,
        plural,
        5 if plural else 2,
        FRENCH_DETERMINERS.get(kind, kind),
        mass=not many,
        described=adjective is not None and adjective.french.precedes,
    )
