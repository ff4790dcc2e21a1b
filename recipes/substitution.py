"""Replace names, towns, numbers, dates and times that occur on both sides of a sentence pair."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recipes.slots.fillers import Fillers, read_towns
from recipes.slots.frames import elided, usual_form
from recipes.slots.written import DECIMAL, MONTHS, READ_THOUSANDS, Date, Number, Time, Value, draw

# Names that one language's corpus writes in another way than English.
OTHER_FORMS = {"Mary": ("Maria", "Marie"), "John": ("Johannes", "Jean"), "Marie": ("Maria",), "Alice": ("Alicia",)}
CAPITALISED = re.compile(r"(?<![\w'’-])[A-ZÀ-ÖØ-ÞŁŠŽČ][^\W\d_]+(?:-[A-Z][^\W\d_]+)*")
# Capitals that German, French and English share without their being names.
NO_NAMES = frozenset(
    (
        "Internet",
        "Computer",
        "Restaurant",
        "Hotel",
        "Park",
        "Bus",
        "Radio",
        "Baby",
        "Pizza",
        "Sport",
        "Film",
        "Tennis",
        "Professor",
        "Taxi",
        "Person",
        "Problem",
        "Hand",
        "Ball",
        "Name",
        "Ring",
        "Bank",
        "Golf",
        "Jazz",
        "Winter",
        "August",
        "September",
        "November",
        "April",
        "Monsieur",
        "Madame",
        "Champagne",
        "God",
        "Mama",
        "Papa",
        "Euro",
        "Yen",
        "Dollar",
    )
)
_DATES = {
    "en": re.compile(
        rf"\b(?:(?P<m>{'|'.join(MONTHS['en'])}) (?P<d>\d\d?)(?:st|nd|rd|th)?(?:,? (?P<y>\d{{4}}))?"
        rf"|(?P<d2>\d\d?)(?:st|nd|rd|th)? (?:of )?(?P<m2>{'|'.join(MONTHS['en'])})"
        r"(?:,? (?P<y2>\d{4}))?)\b"
    ),
    "de": re.compile(rf"\b(?P<d>\d\d?)\. (?P<m>{'|'.join(MONTHS['de'])})(?: (?P<y>\d{{4}}))?\b"),
    "fr": re.compile(rf"\b(?P<d>\d\d?)(?:er)? (?P<m>{'|'.join(MONTHS['fr'])})(?: (?P<y>\d{{4}}))?\b"),
}
_TIMES = {
    "en": re.compile(r"\b(?P<h>\d\d?):(?P<m>\d\d)(?: ?(?P<half>[ap])\.?m\b\.?)?"),
    "de": re.compile(r"\b(?P<h>\d\d?)[.:](?P<m>\d\d) Uhr\b"),
    "fr": re.compile(r"\b(?P<h>\d\d?) ?(?:h|H|:) ?(?P<m>\d\d)\b"),
}
_NUMBERS = {
    language: re.compile(
        rf"(?<![\w.,:/-])(?P<whole>\d{{1,3}}(?:[{''.join(marks)}]\d{{3}})+|\d+)(?:{re.escape(DECIMAL[language])}"
        rf"(?P<decimals>\d{{1,2}}))?(?![\w:/]|[.,-]\d)"
    )
    for language, marks in READ_THOUSANDS.items()
}


@dataclass(frozen=True)
class Slot:
    """A replaceable value on both sides: its kind and the (start, end) of each occurrence."""

    kind: str
    spans: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


class Substituter:
    """Finds slots in a pair and fills them. languages: of the pair's two sides, in the order of its texts."""

    def __init__(self, fillers: Fillers, languages: tuple[str, str]) -> None:
        self.fillers, self.languages = fillers, languages
        self.male = frozenset(Fillers(training=False).male) | frozenset(fillers.male) | {"Tom", "Ken", "Bob", "John"}
        self.female = frozenset(Fillers(training=False).female) | frozenset(fillers.female) | {"Mary", "Maria", "Marie"}
        self.towns = {town["en"]: town for town in read_towns()}

    def slots(self, pair: tuple[str, str]) -> tuple[Slot, ...]:
        """Return the replaceable slots of a pair, without overlaps."""
        if not any(c.isdigit() or c.isupper() for c in pair[0][1:] + pair[0][:1]):
            return ()
        slots: list[Slot] = []
        occupied: tuple[list, list] = ([], [])
        for slot in (
            *self._both(pair, "date", _read_date),
            *self._both(pair, "time", _read_time),
            *self._both(pair, "number", _read_number),
            *self._names(pair),
        ):
            if not any(
                _overlap(span, other) for spans, used in zip(slot.spans, occupied) for span in spans for other in used
            ):
                slots.append(slot)
                for spans, used in zip(slot.spans, occupied):
                    used.extend(spans)
        return tuple(slots)

    def replace(self, pair: tuple[str, str], slots: tuple[Slot, ...], random: np.random.Generator) -> tuple[str, str]:
        """Return the pair with other values in its slots."""
        edits: tuple[list, list] = ([], [])
        for slot in slots:
            filler = self._draw(slot, pair, random)
            for side, language in enumerate(self.languages):
                edits[side].extend((span, usual_form(filler, language)) for span in slot.spans[side])
        return tuple(_edited(text, sorted(edit), language) for text, edit, language in zip(pair, edits, self.languages))

    def _draw(self, slot: Slot, pair: tuple[str, str], random: np.random.Generator):
        if slot.kind in self.fillers.kinds:
            return self.fillers.sample(slot.kind, random)
        start, end = slot.spans[0][0]
        return _redrawn(slot.kind, pair[0][start:end], random)

    def _both(self, pair: tuple[str, str], kind: str, read: Callable) -> list[Slot]:
        """Return the slots of the values that occur equally often on both sides."""
        sides = [read(text, language) for text, language in zip(pair, self.languages)]
        return [
            Slot(
                "full_date" if kind == "date" and value.year else kind, (tuple(sides[0][value]), tuple(sides[1][value]))
            )
            for value in sides[0]
            if len(sides[0][value]) == len(sides[1].get(value, ()))
        ]

    def _names(self, pair: tuple[str, str]) -> list[Slot]:
        english = self.languages.index("en")
        text, other = pair[english], pair[1 - english]
        slots = []
        for name in dict.fromkeys(match[0] for match in CAPITALISED.finditer(text)):
            kind, forms = self._kind(name, text)
            if kind is None:
                continue
            here = _occurrences(text, name)
            german = self.languages[1 - english] == "de"
            there = next(
                (spans for form in forms if len(spans := _occurrences(other, form, genitive=german)) == len(here)), ()
            )
            if here and there:
                slots.append(Slot(kind, (tuple(here), tuple(there)) if english == 0 else (tuple(there), tuple(here))))
        return slots

    def _kind(self, name: str, text: str) -> tuple[str | None, tuple[str, ...]]:
        """Return the kind of a capitalised English word and its names on the other side; None if it is not a name."""
        other = next(language for language in self.languages if language != "en")
        if name in self.towns:
            return "town", (self.towns[name][other],)
        forms = (name, *OTHER_FORMS.get(name, ()))
        if name in self.male and name not in NO_NAMES:
            return "male", forms
        if name in self.female and name not in NO_NAMES:
            return "female", forms
        # Any capital within an English sentence that stands on the other side, too, is some name.
        within = any(text[start - 2 : start - 1].isalnum() for start, _ in _occurrences(text, name) if start > 1)
        return ("family", forms) if within and len(name) > 3 and name not in NO_NAMES else (None, ())


def _read_date(text: str, language: str) -> dict[Date, list[tuple[int, int]]]:
    dates: dict[Date, list] = {}
    for match in _DATES[language].finditer(text):
        groups = {name.rstrip("2"): value for name, value in match.groupdict().items() if value}
        year = int(groups["y"]) if "y" in groups else None
        value = Date(int(groups["d"]), MONTHS[language].index(groups["m"]) + 1, year)
        dates.setdefault(value, []).append(match.span())
    return dates


def _read_time(text: str, language: str) -> dict[Time, list[tuple[int, int]]]:
    """Times by what their two numbers are on a clock of twelve hours: "2:30" may stand for 14 h 30."""
    times: dict[Time, list] = {}
    for match in _TIMES[language].finditer(text):
        times.setdefault(Time(int(match["h"]) % 12, int(match["m"])), []).append(match.span())
    return times


def _read_number(text: str, language: str) -> dict[Number, list[tuple[int, int]]]:
    numbers: dict[Number, list] = {}
    for match in _NUMBERS[language].finditer(text):
        whole = re.sub(r"\D", "", match["whole"])
        if len(whole) <= 9:
            numbers.setdefault(Number(int(whole), match["decimals"] or ""), []).append(match.span())
    return numbers


def _redrawn(kind: str, old: str, random: np.random.Generator) -> Value:
    """Draw a value of the same sort; numbers with decimals, years, small and other numbers are different sorts."""
    if kind == "number":
        digits = re.sub(r"\D", "", old)
        year = old == digits and len(digits) == 4 and digits[0] in "12"
        kind = (
            "decimal"
            if re.search(r"[.,]\d{1,2}$", old)
            else "year"
            if year
            else "small"
            if len(digits) < 3
            else "number"
        )
    return draw(kind, random)


def _occurrences(text: str, word: str, *, genitive: bool = False) -> list[tuple[int, int]]:
    """Return the positions of a whole word. genitive: also before a German genitive s, which stays."""
    ending = r"(?=s?(?![\w]))" if genitive else r"(?!\w)"
    return [match.span() for match in re.finditer(rf"(?<![\w-]){re.escape(word)}{ending}(?!-)", text)]


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _edited(text: str, edits: list[tuple[tuple[int, int], str]], language: str) -> str:
    result, end = "", 0
    for (start, stop), word in edits:
        result += text[end:start]
        if language == "fr":
            result = elided(result, word)
        result, end = result + word, stop
        if language == "de" and text[stop : stop + 1] == "s" and word[-1:] in "sßxz":
            result, end = result + "’", stop + 1  # "Hans’ Haus", not "Hanss"
    return result + text[end:]
