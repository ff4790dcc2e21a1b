"""Test sentences with names, towns, firms, numbers, dates and times, which a translation must keep.

The frames are in recipes/frames: open ones for development, sealed ones for a final report. Fillers that training never
samples (part 0, see recipes.slots.fillers) and the others are scored separately. A filler is kept if a translation
contains one of its forms in the target language as whole tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attention_atlas.model.trace.directions import parse_direction
from recipes.slots.fillers import Filler, Fillers
from recipes.slots.frames import choose, put, read_form, slots_of
from recipes.slots.written import Date, Number, Time, Value

FRAMES = Path(__file__).with_name("frames")
FRAME_SETS = ("open", "sealed")
FILLINGS = 5  # of each frame
WORDS = {  # for small numbers, a word is as right as a digit
    "en": "two three four five six seven eight nine ten eleven twelve",
    "de": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze",
}


@dataclass(frozen=True)
class Item:
    """A filler of a sentence: the kind of its slot, its form in the source, and the accepted forms in the
    translation."""

    kind: str
    shown: str
    accepted: tuple[str, ...]


@dataclass(frozen=True)
class TypedSentence:
    source: str
    items: tuple[Item, ...]


def read_typed_frames(which: str, language: str) -> tuple[str, ...]:
    """Return the frames of a set in a source language. Raises ValueError for an unknown set or language."""
    path = FRAMES / f"{which}.{language}.txt"
    if which not in FRAME_SETS or not path.is_file():
        raise ValueError(f"there are no {which!r} frames in the language {language!r}")
    return tuple(path.read_text(encoding="utf-8").splitlines())


def fill_typed(
    frames: Iterable[str], direction: str, *, training: bool, seed: int, fillings: int = FILLINGS
) -> list[TypedSentence]:
    """Fill every frame `fillings` times, with fillers that training samples or with held-out ones."""
    source, target = parse_direction(direction)
    fillers, random = Fillers(training=training, spliced=0.0), np.random.default_rng(seed)
    sentences = []
    for frame in frames:
        for _ in range(fillings):
            fillers_by_slot = choose(slots_of(frame), fillers, random)
            source_forms = {slot: read_form(filler, source, random) for slot, filler in fillers_by_slot.items()}
            items = tuple(
                Item(slot.rstrip("0123456789"), source_forms[slot], accepted(filler, target))
                for slot, filler in fillers_by_slot.items()
            )
            sentences.append(TypedSentence(put(frame, source_forms, source), items))
    return sentences


def accepted(filler: Filler | Value, language: str) -> tuple[str, ...]:
    """Return all accepted strings of a filler in a language."""
    if isinstance(filler, Filler):
        return (filler[language],)
    forms = list(filler.forms(language))
    if isinstance(filler, Number) and not filler.decimals and 2 <= filler.whole <= 12:
        forms.append(WORDS[language].split()[filler.whole - 2])
    if isinstance(filler, Time) and language == "en" and filler.minute == 0:
        forms += [
            f"{hour} {tail}"
            for hour in {filler.hour, (filler.hour - 1) % 12 + 1}
            for tail in ("o'clock", "a.m." if filler.hour < 12 else "p.m.")
        ]
    if isinstance(filler, Time) and language in ("de", "fr") and filler.minute == 0:
        forms.append(f"{filler.hour} Uhr" if language == "de" else f"{filler.hour} heures")
    if isinstance(filler, Date) and language == "en":
        forms += [form.replace(",", "") for form in forms]
    return tuple(dict.fromkeys(forms))


def is_kept(item: Item, translation: str) -> bool:
    """Return whether a translation contains one of the accepted strings as whole tokens. Case and accents count, the
    kind of space does not; a number inside a longer one does not count."""
    text = " ".join(translation.split())
    return any(
        re.search(
            rf"(?<![\w])(?<!\d[.,:])(?<!\d ){_loose(form)}(?![\w])(?![.,:]\d)(?! \d{{3}}\b)"
            if form[0].isdigit() and item.kind in ("number", "small", "decimal", "year")
            else rf"(?<![\w-]){_loose(form)}(?![\w-])",
            text,
        )
        for form in item.accepted
    )


def tally(sentences: list[TypedSentence], translations: list[str]) -> dict[str, dict[str, int]]:
    """Count the kept items and all items, by kind and under "all"."""
    kept_counts: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for sentence, translation in zip(sentences, translations, strict=True):
        for item in sentence.items:
            right = is_kept(item, translation)
            for kind in (item.kind, "all"):
                total[kind] += 1
                kept_counts[kind] += right
    return {kind: {"kept": kept_counts[kind], "of": total[kind]} for kind in sorted(total)}


def _loose(form: str) -> str:
    """Return a pattern for a form in which any space character matches a space."""
    return r"\s".join(re.escape(word) for word in form.split())
