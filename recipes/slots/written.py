"""Numbers, dates and times as English, German and French write them, and how they are drawn for training.

Each value has the forms of a language; a model should write the first and may read all of them.
"""

from __future__ import annotations

import dataclasses
import datetime
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from recipes.slots.fillers import held_out

MONTHS = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "de": [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ],
    "fr": [
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ],
}
READ_THOUSANDS = {"en": (",",), "de": (".", " "), "fr": ("\u202f", "\u00a0", " ", ".")}
DECIMAL = {"en": ".", "de": ",", "fr": ","}


class Value(Protocol):
    @property
    def key(self) -> str:
        """The text whose hash determines the part."""

    def forms(self, language: str) -> tuple[str, ...]:
        """Return the forms of a language, the usual one first."""


@dataclass(frozen=True)
class Number:
    """A whole number of at least 0, with the digits after the decimal mark as text, such as Number(3, "5")."""

    whole: int
    decimals: str = ""

    @property
    def key(self) -> str:
        return f"{self.whole}.{self.decimals}" if self.decimals else str(self.whole)

    def forms(self, language: str) -> tuple[str, ...]:
        """With a mark between thousands from 10,000 on, without one below; both may be read."""
        tail = DECIMAL[language] + self.decimals if self.decimals else ""
        plain = f"{self.whole}{tail}"
        if self.whole < 1000:
            return (plain,)
        # Tokenizers learnt from common text know no narrow space, so the usual French form has a common one.
        marks = (" ", *READ_THOUSANDS[language]) if language == "fr" else READ_THOUSANDS[language]
        marked = tuple(dict.fromkeys(f"{self.whole:,}".replace(",", mark) + tail for mark in marks))
        return (plain, *marked) if self.whole < 10_000 else (*marked, plain)


@dataclass(frozen=True)
class Year:
    year: int

    @property
    def key(self) -> str:
        return str(self.year)

    def forms(self, language: str) -> tuple[str, ...]:
        return (str(self.year),)


@dataclass(frozen=True)
class Date:
    """A day of a month, perhaps of a year."""

    day: int
    month: int
    year: int | None = None

    @property
    def key(self) -> str:
        return (f"{self.year:04d}-" if self.year else "") + f"{self.month:02d}-{self.day:02d}"

    def forms(self, language: str) -> tuple[str, ...]:
        name = MONTHS[language][self.month - 1]
        if language == "en":
            year, comma = (f" {self.year}", ",") if self.year else ("", "")
            nth = f"{self.day}{ordinal_ending(self.day)}"
            return (
                f"{name} {self.day}{comma}{year}",
                f"{self.day} {name}{year}",
                f"{name} {nth}{comma}{year}",
                f"{nth} {name}{year}",
                f"the {nth} of {name}{year}",
            )
        year = f" {self.year}" if self.year else ""
        if language == "de":
            return (f"{self.day}. {name}{year}",)
        first = ("1er",) if self.day == 1 else ()
        return tuple(f"{day} {name}{year}" for day in (*first, str(self.day)))


@dataclass(frozen=True)
class Time:
    """A time of day on a clock of 24 hours."""

    hour: int
    minute: int

    @property
    def key(self) -> str:
        return f"{self.hour:02d}:{self.minute:02d}"

    def forms(self, language: str) -> tuple[str, ...]:
        """English keeps the clock of the others, so that it can be copied; "2:30 p.m." may be read."""
        minute = f"{self.minute:02d}"
        if language == "en":
            half, hour = "p.m." if self.hour >= 12 else "a.m.", (self.hour - 1) % 12 + 1
            return (f"{self.hour}:{minute}", f"{hour}:{minute} {half}", f"{hour}:{minute} {half[0]}m")
        if language == "de":
            return (f"{self.hour}:{minute} Uhr", f"{self.hour}.{minute} Uhr", f"{self.hour:02d}:{minute} Uhr")
        return (f"{self.hour} h {minute}", f"{self.hour}h{minute}", f"{self.hour}:{minute}")


def ordinal_ending(day: int) -> str:
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def draw(kind: str, random: np.random.Generator, *, training: bool = True) -> Value:
    """Draw a value of a kind in DRAWN, from the parts for training or from the held-out one."""
    while held_out((value := DRAWN[kind](random)).key) == training:
        pass
    return value


def _number(random: np.random.Generator) -> Number:
    """2 to 999,999, small ones more often: each number of digits as likely as the next up to four, then rarer."""
    digits = random.choice((1, 2, 3, 4, 5, 6), p=(0.1, 0.3, 0.25, 0.2, 0.1, 0.05))
    return Number(int(random.integers(max(2, 10 ** (digits - 1)), 10**digits)))


def _small(random: np.random.Generator) -> Number:
    """2 to 99, as ages and counts of things are."""
    return Number(int(random.integers(2, 100)))


def _decimal(random: np.random.Generator) -> Number:
    digits = str(random.integers(1, 100)).rjust(int(random.integers(1, 3)), "0")
    return Number(int(random.integers(0, 200)), digits)


def _year(random: np.random.Generator) -> Year:
    first, last = ((1900, 2031), (1000, 1900))[int(random.random() < 0.2)]
    return Year(int(random.integers(first, last)))


def _date(random: np.random.Generator) -> Date:
    day = datetime.date(2024, 1, 1) + datetime.timedelta(days=int(random.integers(366)))
    return Date(day.day, day.month)


def _full_date(random: np.random.Generator) -> Date:
    return dataclasses.replace(_date(random), year=_year(random).year)


def _time(random: np.random.Generator) -> Time:
    # Three in four at full five minutes, as people say times.
    step = 5 if random.random() < 0.75 else 1
    return Time(int(random.integers(24)), int(random.integers(60 // step)) * step)


DRAWN = {
    "number": _number,
    "small": _small,
    "decimal": _decimal,
    "year": _year,
    "date": _date,
    "full_date": _full_date,
    "time": _time,
}
