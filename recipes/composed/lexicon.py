"""The lexicon of the composed sentences, read from the tables in this folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recipes.composed import english, german

FOLDER = Path(__file__).parent / "tables"


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; the singular or plural that a language lacks is "". gender: m, f, n, or p for a word
    that German has in the plural alone."""

    gender: str
    singular: str
    plural: str
    english: str
    english_plural: str
    classes: frozenset[str]
    weak: bool


@dataclass(frozen=True)
class Adjective:
    base: str
    stem: str
    comparative: str
    english: str
    english_comparative: str
    classes: frozenset[str]


@dataclass(frozen=True)
class Complement:
    """A complement of a verb: its case "acc" or "dat", the classes of its nouns, and a preposition or ""."""

    preposition: str
    case: str
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """A verb in both languages with its complements. middle: complements and fixed words, in German order; pattern: the
    words after the English verb, with 1, 2 for the complements, TO and AT for places, POSS and SELF for the subject;
    flags: "sein", "stative", "passive" (usual in German), "event" (punctual), "idiom", "noneg" (never negated)."""

    subjects: tuple[str, ...]
    middle: tuple[str | Complement, ...]
    german: german.Verb
    english: english.Verb
    pattern: tuple[str, ...]
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
    """An adverbial in both languages. kinds: the tenses it goes with, or other categories."""

    german: str
    english: str
    kinds: frozenset[str]


@dataclass(frozen=True)
class Place:
    """German and English ways to say "to it" and "at it"."""

    to: tuple[str, str]
    at: tuple[str, str]


class Lexicon:
    """All tables of the lexicon. Raises ValueError for a line that cannot be parsed."""

    def __init__(self) -> None:
        self.nouns = [_noun(row) for row in rows("nouns.tsv")]
        self.adjectives = [
            Adjective(row[0], row[1], row[2].replace("-", ""), row[3], row[4], _set(row[5]))
            for row in rows("adjectives.tsv")
        ]
        self.strong = {row[0]: (row[1], row[2], row[3]) for row in rows("strong.tsv")}
        self.irregular = {row[0]: (row[1], row[2]) for row in rows("irregular.tsv")}
        self.verbs = [_entry(row, self.strong, self.irregular) for row in rows("verbs.tsv")]
        self.adverbials = [Adverbial(row[0], row[1], _set(row[2])) for row in rows("adverbials.tsv")]
        self.places = [Place((row[0], row[2]), (row[1], row[3])) for row in rows("places.tsv")]
        self.weather = [self.simple(row[0], row[1]) for row in rows("weather.tsv")]
        self.conjunctions = [
            (row[0], row[1], tuple(row[2].split(",")), tuple(row[3].split(","))) for row in rows("conjunctions.tsv")
        ]
        self.openings: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for kind, *row in rows("openings.tsv"):
            self.openings[kind].append(tuple(row))
        self.by_class: dict[str, list[Noun]] = defaultdict(list)
        for noun in self.nouns:
            for name in noun.classes:
                self.by_class[name].append(noun)
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

    def simple(self, infinitive: str, meaning: str, *flags: str) -> Entry:
        """Return a verb with fixed words only, from its German and English infinitives."""
        sein = "sein" if infinitive.split()[-1] in ("sein", "werden", "bleiben") else ""
        return _entry(["person", infinitive, meaning, ",".join([sein, *flags])], self.strong, self.irregular)


def rows(name: str) -> Iterator[list[str]]:
    """Return the lines of a table, split at tabs; # begins a comment."""
    for number, line in enumerate((FOLDER / name).read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            row = [cell.strip() for cell in line.split("\t")]
            if len(row) < 2:
                raise ValueError(f"{name}, line {number}: no tab in {line!r}")
            yield row


def _noun(row: list[str]) -> Noun:
    first, plural, one, many, classes, *rest = row
    article, _, singular = first.rpartition(" ")
    plural = "" if plural == "-" else plural
    gender = {"der": "m", "die": "f", "das": "n", "": "p"}[article]
    return Noun(
        gender,
        "" if gender == "p" else singular,
        plural,
        "" if one == "-" else one,
        "" if many == "-" else many,
        _set(classes),
        "weak" in rest,
    )


def _entry(row: list[str], strong: dict, irregular: dict) -> Entry:
    subjects, pattern, meaning, flags = row[:4]
    *middle, infinitive = pattern.split()
    base, *rest = meaning.split()
    marks = _set(flags) - {"-"}
    return Entry(
        tuple(subjects.split(",")),
        tuple(_complement(word) for word in middle),
        german.Verb.of(infinitive, strong, "sein" if "sein" in marks else "haben"),
        english.Verb.of(base, irregular),
        tuple(rest),
        marks,
    )


def _complement(word: str) -> str | Complement:
    head, colon, classes = word.partition(":")
    if not colon:
        return word
    preposition, _, case = head.rpartition("+")
    return Complement(preposition, {"a": "acc", "d": "dat"}[case], tuple(classes.split(",")))


def _set(cell: str) -> frozenset[str]:
    return frozenset(part.strip() for part in cell.split(",") if part.strip())
