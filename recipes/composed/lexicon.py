"""The lexicon of the composed sentences, read from the tables in this folder."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from recipes.composed import english, french, german
from recipes.composed.tables import rows

FRENCH_ENTRY = re.compile(r"((?:se |s'|y |en )*)(\S+)( pas(?= |$))?(.*)")
CASES = {"n": "nom", "a": "acc", "d": "dat"}


class NotInFrench(LookupError):
    """Raised when something that has no French is put into French."""


@dataclass(frozen=True)
class Noun:
    """A noun in all languages; the singular or plural that a language lacks is "". gender: m, f, n, or p for a word
    that German has in the plural alone."""

    gender: str
    singular: str
    plural: str
    english: str
    english_plural: str
    french: french.Noun | None
    classes: frozenset[str]
    weak: bool


@dataclass(frozen=True)
class Adjective:
    base: str
    stem: str
    comparative: str
    english: str
    english_comparative: str
    french: french.Adjective
    french_comparative: str
    classes: frozenset[str]


@dataclass(frozen=True)
class Complement:
    """A complement of a German verb: its case, the classes of its nouns, and a preposition or ""."""

    preposition: str
    case: str
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Slot:
    """The place of a complement in a French pattern. number: 0 for the first; preposition: "" before a direct object,
    "à" before an indirect one, "à@" before one whose pronoun stays behind the verb ("penser à elle")."""

    number: int
    preposition: str


@dataclass(frozen=True)
class FrenchEntry:
    """The French for an entry. clitics: "se", "y" or "en" before the infinitive; negation: "pas" if the entry has one;
    pattern: the words after the verb and the slots of complements; an adjective agrees with the subject; flags: as in
    verbs.tsv."""

    verb: french.Verb
    clitics: tuple[str, ...]
    negation: str
    pattern: tuple[str | Slot | french.Adjective, ...]
    flags: frozenset[str]

    def slot(self, number: int) -> Slot:
        """Return the slot of a complement. Raises NotInFrench if the verb has none."""
        for part in self.pattern:
            if isinstance(part, Slot) and part.number == number:
                return part
        raise NotInFrench(f"{self.verb.infinitive} has no complement {number}")


@dataclass(frozen=True)
class Entry:
    """A verb in all languages with its complements. middle: complements and fixed words, in German order; pattern: the
    words after the English verb, with 1, 2 for the complements, TO and AT for places, POSS and SELF for the subject;
    flags: "sein", "stative", "passive" (usual in German), "event" (punctual), "idiom", "noneg" (never negated)."""

    subjects: tuple[str, ...]
    middle: tuple[str | Complement, ...]
    german: german.Verb
    english: english.Verb
    pattern: tuple[str, ...]
    french: FrenchEntry | None
    flags: frozenset[str]

    @property
    def object_number(self) -> int | None:
        """The number of the complement that is the accusative object, or None."""
        numbers = [i for i, c in enumerate(self.complements) if c.case == "acc" and not c.preposition]
        return numbers[0] if numbers else None

    @property
    def complements(self) -> tuple[Complement, ...]:
        return tuple(part for part in self.middle if isinstance(part, Complement))


@dataclass(frozen=True)
class Adverbial:
    """An adverbial in all languages. kinds: the tenses it goes with, or other categories."""

    german: str
    english: str
    french: str
    kinds: frozenset[str]

    @property
    def is_frequency(self) -> bool:
        """Whether it stands before the English verb: "often"."""
        return "often" in self.kinds and self.english != "sometimes"


@dataclass(frozen=True)
class Place:
    """German, English and French ways to say "to it" and "at it"."""

    to: tuple[str, str, str]
    at: tuple[str, str, str]


@dataclass(frozen=True)
class Conjunction:
    """A conjunction in all languages, with the tenses of the main clause and of the subordinate clause.

    french_first: the French one at the start of a sentence; mood: a key of french_order.MOODS; french_infinitive: what
    stands in its place if the subjects are the same ("avant de"), or ""."""

    german: str
    english: str
    main_tenses: tuple[str, ...]
    tenses: tuple[str, ...]
    french: str
    french_first: str
    mood: str
    french_infinitive: str


class Lexicon:
    """All tables of the lexicon. Raises ValueError for a line that cannot be parsed."""

    def __init__(self) -> None:
        self.nouns = [_noun(row) for row in rows("nouns.tsv")]
        self.adjectives = [_adjective(row) for row in rows("adjectives.tsv")]
        self.strong = {row[0]: (row[1], row[2], row[3]) for row in rows("strong.tsv")}
        self.irregular = {row[0]: (row[1], row[2]) for row in rows("irregular.tsv")}
        self.french_adjectives = {adjective.french.masculine: adjective.french for adjective in self.adjectives}
        self.verbs = [self._entry(*row) for row in rows("verbs.tsv")]
        self.adverbials = [Adverbial(*row[:3], _set(row[3])) for row in rows("adverbials.tsv")]
        self.places = [Place((row[0], row[2], row[4]), (row[1], row[3], row[5])) for row in rows("places.tsv")]
        self.weather = [self.simple(*row) for row in rows("weather.tsv")]
        self.conjunctions = [_conjunction(row) for row in rows("conjunctions.tsv")]
        self.openings: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for kind, *row in rows("openings.tsv"):
            self.openings[kind].append(tuple(row))
        self.by_class: dict[str, list[Noun]] = defaultdict(list)
        for noun in self.nouns:
            for name in noun.classes:
                self.by_class[name].append(noun)
        self.masculine = {noun.english: noun for noun in self.by_class["person"] if noun.gender == "m"}
        self.verbs_of: dict[str, list[Entry]] = {}
        for entry in self.verbs:
            for name in entry.subjects:
                self.verbs_of.setdefault(name, []).append(entry)
        self.described: dict[str, list[Adjective]] = defaultdict(list)
        for adjective in self.adjectives:
            for name in adjective.classes:
                self.described[name].append(adjective)
        self.when: dict[str, list[Adverbial]] = defaultdict(list)
        for adverbial in self.adverbials:
            for kind in adverbial.kinds:
                self.when[kind].append(adverbial)

    def simple(
        self, german_text: str, english_text: str, french_text: str, flags: str = "", french_flags: str = ""
    ) -> Entry:
        """Return a verb with its infinitives and flags written as in verbs.tsv."""
        sein = ",sein" if german_text.split()[-1] in ("sein", "werden", "bleiben") else ""
        return self._entry("person", german_text, english_text, french_text, flags + sein, french_flags)

    def _entry(
        self, subjects: str, german_text: str, english_text: str, french_text: str, flags: str, french_flags: str
    ) -> Entry:
        *middle, infinitive = german_text.split()
        base, *pattern = english_text.split()
        marks = _set(flags)
        return Entry(
            tuple(subjects.split(",")),
            tuple(_complement(word) for word in middle),
            german.Verb.of(infinitive, self.strong, "sein" if "sein" in marks else "haben"),
            english.Verb.of(base, self.irregular),
            tuple(pattern),
            self._french_entry(french_text, _set(french_flags)),
            marks,
        )

    def _french_entry(self, written: str, flags: frozenset[str]) -> FrenchEntry | None:
        if "skip" in flags:
            return None
        clitics, infinitive, negation, pattern = re.fullmatch(FRENCH_ENTRY, written).groups()
        return FrenchEntry(
            french.Verb.of(infinitive),
            tuple(clitics.replace("s'", "se ").split()),
            (negation or "").strip(),
            tuple(self._french_part(word) for word in pattern.split()),
            flags,
        )

    def _french_part(self, word: str) -> str | Slot | french.Adjective:
        preposition, _, number = word.rpartition(":")
        if number.isdigit():
            return Slot(int(number) - 1, preposition.replace("_", " "))
        if word.endswith("~"):
            masculine = word[:-1].replace("_", " ")
            return self.french_adjectives.get(masculine) or french.Adjective.of(masculine)
        return word


def _noun(row: list[str]) -> Noun:
    first, plural, one, many, french_gender, singular, french_plural, classes, *rest = row
    article, _, german_singular = first.rpartition(" ")
    gender = {"der": "m", "die": "f", "das": "n", "": "p"}[article]
    h = "*" if "h" in french_gender else ""
    french_forms = [h + form if form != "-" else "" for form in (singular, french_plural)]
    return Noun(
        gender,
        "" if gender == "p" else german_singular,
        plural.removeprefix("-"),
        one.removeprefix("-"),
        many.removeprefix("-"),
        french.Noun("f" in french_gender, *french_forms) if any(french_forms) else None,
        _set(classes),
        "weak" in rest,
    )


def _adjective(row: list[str]) -> Adjective:
    base, stem, comparative, one, english_comparative, written, place, french_comparative, classes = row[:9]
    french_adjective = french.Adjective.of(written, place == "before")
    return Adjective(
        base,
        stem,
        comparative.removeprefix("-"),
        one,
        english_comparative,
        french_adjective,
        french_comparative if french_comparative != "-" else f"plus {french_adjective.pattern}",
        _set(classes),
    )


def _conjunction(row: list[str]) -> Conjunction:
    german_one, english_one, main_tenses, tenses, french_one, mood, *infinitive = row
    french_one, _, first = french_one.partition("/")
    return Conjunction(
        german_one,
        english_one,
        tuple(main_tenses.split(",")),
        tuple(tenses.split(",")),
        french_one,
        first or french_one,
        mood,
        "".join(infinitive),
    )


def _complement(word: str) -> str | Complement:
    head, colon, classes = word.partition(":")
    if not colon:
        return word
    preposition, _, case = head.rpartition("+")
    return Complement(preposition.replace("_", " "), CASES[case], tuple(classes.split(",")))


def _set(cell: str) -> frozenset[str]:
    return frozenset(part.strip() for part in cell.split(",") if part.strip() not in ("", "-"))
