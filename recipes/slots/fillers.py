"""Names, towns and firms to fill slots, in ten parts by hash; training never sees the first part."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

PARTS, HELD_OUT_PART = 10, 0
PERSON_LOCALES = (
    "de_DE",
    "de_AT",
    "en_US",
    "en_GB",
    "fr_FR",
    "it_IT",
    "es_ES",
    "pl_PL",
    "nl_NL",
    "sv_SE",
    "da_DK",
    "cs_CZ",
    "pt_PT",
    "tr_TR",
    "hu_HU",
    "fi_FI",
)
TOWN_LOCALES = ("de_DE", "de_AT", "pl_PL", "cs_CZ", "nl_NL", "da_DK")
DRAWS = 1500  # from each locale's list; most lists are shorter
LANGUAGES = ("en", "de", "fr")
TOWNS = Path(__file__).with_name("towns.tsv")
FIRMS = Path(__file__).with_name("firms.txt")


@dataclass(frozen=True)
class Filler:
    """A filler with its form in each language: forms["de"] is its German name."""

    forms: tuple[str, str, str]  # as in LANGUAGES

    @classmethod
    def same(cls, text: str) -> Filler:
        return cls((text,) * len(LANGUAGES))

    def __getitem__(self, language: str) -> str:
        return self.forms[LANGUAGES.index(language)]


def part_of(text: str) -> int:
    """The part, 0 to 9, of a filler: SHA-1 of its NFKC lower case, modulo ten. Towns go by their English name,
    dates and times by their ISO form, numbers by their digits."""
    key = " ".join(unicodedata.normalize("NFKC", text).lower().split())
    return int(hashlib.sha1(key.encode()).hexdigest(), 16) % PARTS


def held_out(text: str) -> bool:
    return part_of(text) == HELD_OUT_PART


class Fillers:
    """The lists by kind: male, female, family, town, firm. training: those to sample while training, or the held-out.

    Names and towns beyond our own list come from `faker`, which only training needs: it is imported at first use.
    """

    kinds = ("male", "female", "family", "town", "firm")

    def __init__(self, *, training: bool = True, spliced: float = 0.2) -> None:
        """spliced: the share of names composed of two, which teach copying instead of a list of names."""
        self.training, self.spliced = training, spliced

    def sample(self, kind: str, random: np.random.Generator) -> Filler:
        """One filler of a kind. ValueError for an unknown kind."""
        if kind not in self.kinds:
            raise ValueError(f"a filler's kind is one of {', '.join(self.kinds)}, found {kind!r}")
        if kind == "town":  # every second one from the list of those that people type
            towns = self.towns if random.random() < 0.5 else self.more_towns
            return towns[random.integers(len(towns))]
        names = getattr(self, kind)
        if kind != "firm" and self.spliced and random.random() < self.spliced:
            return Filler.same(self._spliced(names, random))
        return Filler.same(names[random.integers(len(names))])

    def _spliced(self, names: tuple[str, ...], random: np.random.Generator) -> str:
        while True:
            first, second = (names[random.integers(len(names))] for _ in range(2))
            name = first[: max(2, len(first) // 2)] + second[len(second) // 2 :].lower()
            if held_out(name) != self.training and len(name) <= 14 and "-" not in name:
                return name

    @cached_property
    def male(self) -> tuple[str, ...]:
        return self._names("first_name_male")

    @cached_property
    def female(self) -> tuple[str, ...]:
        return self._names("first_name_female")

    @cached_property
    def family(self) -> tuple[str, ...]:
        return self._names("last_name")

    @cached_property
    def firm(self) -> tuple[str, ...]:
        return tuple(name for name in FIRMS.read_text(encoding="utf-8").split() if held_out(name) != self.training)

    @cached_property
    def towns(self) -> tuple[Filler, ...]:
        return tuple(town for town in read_towns() if held_out(town["en"]) != self.training)

    @cached_property
    def more_towns(self) -> tuple[Filler, ...]:
        """Towns with the same name in every language."""
        known = {form for town in read_towns() for form in town.forms}
        return tuple(Filler.same(name) for name in self._kept(_drawn("city", TOWN_LOCALES)) if name not in known)

    def _names(self, method: str) -> tuple[str, ...]:
        return self._kept(_drawn(method, PERSON_LOCALES))

    def _kept(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({name for name in names if _is_plain(name) and held_out(name) != self.training}))


def read_towns(path: Path = TOWNS) -> tuple[Filler, ...]:
    """The towns of a file: English TAB German TAB French; # begins a comment. ValueError for another shape."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    for row in rows:
        if len(row) != len(LANGUAGES):
            raise ValueError(f"{path}: a town has three names, found {row}")
    return tuple(Filler(tuple(row)) for row in rows)


@cache
def _drawn(method: str, locales: tuple[str, ...]) -> frozenset[str]:
    """Return faker's names with a fixed seed, so that the list is the same each time."""
    try:
        from faker import Faker
    except ImportError as error:
        raise ValueError("names and towns to substitute need faker: pip install -r requirements-dev.txt") from error
    drawn = set()
    for locale in locales:
        fake = Faker(locale)
        fake.seed_instance(1)
        drawn |= {getattr(fake, method)() for _ in range(DRAWS)}
    return frozenset(drawn)


def _is_plain(name: str) -> bool:
    """A single word of Latin letters, perhaps hyphenated, that begins with a capital."""
    parts = name.split("-")
    return (
        2 < len(name) <= 14
        and all(len(part) > 1 and part.isalpha() for part in parts)
        and name[0].isupper()
        and not name.isupper()
        and all("LATIN" in unicodedata.name(c, "") for c in name if c != "-")
    )
