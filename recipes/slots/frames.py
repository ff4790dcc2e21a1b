"""Short sentences of our own with slots, such as "Ich heiße {name}.", and what fills the slots in each language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recipes.slots import written
from recipes.slots.fillers import LANGUAGES, Filler, Fillers
from recipes.slots.written import Value

FRAMES = Path(__file__).with_name("frames.tsv")
SLOT = re.compile(r"\{([a-z_]+?)(\d?)\}")
USUAL = 0.5  # share of source slots in the usual form; the others take any form that may be read
# "de" and the like before a vowel; h stays apart, since it depends on the word.
_ELIDES = re.compile(r"\b([dD]|[qQ]u|[jJ]usqu|[lL]orsqu|[pP]uisqu)e $")
_VOWELS = "aeiouyàâäéèêëîïôöùûüáíóúAEIOUYÀÂÄÉÈÊËÎÏÔÖÙÛÜÁÍÓÚ"


@dataclass(frozen=True)
class Frame:
    """One sentence with slots, as each of LANGUAGES says it."""

    texts: tuple[str, str, str]

    def __getitem__(self, language: str) -> str:
        return self.texts[LANGUAGES.index(language)]

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots' names, such as "town2", in the order of the first language."""
        return slots_of(self.texts[0])


def slots_of(text: str) -> tuple[str, ...]:
    """Return the names of the slots in a text, in order, each once."""
    return tuple(dict.fromkeys(match[0][1:-1] for match in SLOT.finditer(text)))


def read_frames(path: Path = FRAMES) -> tuple[Frame, ...]:
    """English TAB German TAB French; # begins a comment. ValueError where the languages' slots differ."""
    frames = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        texts = tuple(line.split("\t"))
        if len(texts) != len(LANGUAGES) or len({frozenset(SLOT.findall(text)) for text in texts}) != 1:
            raise ValueError(f"{path}: a frame is one sentence in three languages with the same slots, found {line!r}")
        frames.append(Frame(texts))
    return tuple(frames)


def draw(kind: str, fillers: Fillers, random: np.random.Generator) -> Filler | Value:
    """Draw a value of written.DRAWN or a filler for a slot; a name is male or female. Raises ValueError for another
    kind."""
    if kind in written.DRAWN:
        return written.draw(kind, random, training=fillers.training)
    if kind == "name":
        kind = ("male", "female")[random.integers(2)]
    return fillers.sample(kind, random)


def fill(frame: Frame, languages: tuple[str, str], fillers: Fillers, random: np.random.Generator) -> tuple[str, str]:
    """Return (source, target) of a frame with random fillers: the target in the usual forms, the source in any form."""
    source, target = languages
    fillers_by_slot = choose(frame.slots, fillers, random)
    source_forms = {slot: read_form(filler, source, random) for slot, filler in fillers_by_slot.items()}
    target_forms = {slot: usual_form(filler, target) for slot, filler in fillers_by_slot.items()}
    return put(frame[source], source_forms, source), put(frame[target], target_forms, target)


def choose(slots: tuple[str, ...], fillers: Fillers, random: np.random.Generator) -> dict[str, Filler | Value]:
    """Draw a different filler for every slot: "town2" never equals "town"."""
    fillers_by_slot: dict[str, Filler | Value] = {}
    for slot in slots:
        kind = slot.rstrip("0123456789")
        filler = draw(kind, fillers, random)
        while filler in fillers_by_slot.values():
            filler = draw(kind, fillers, random)
        fillers_by_slot[slot] = filler
    return fillers_by_slot


def usual_form(filler: Filler | Value, language: str) -> str:
    return filler[language] if isinstance(filler, Filler) else filler.forms(language)[0]


def read_form(filler: Filler | Value, language: str, random: np.random.Generator) -> str:
    """Draw one of the forms that a language allows, half of the time the usual one."""
    if isinstance(filler, Filler) or random.random() < USUAL:
        return usual_form(filler, language)
    forms = filler.forms(language)
    return forms[random.integers(len(forms))]


def put(text: str, words: dict[str, str], language: str) -> str:
    """Fill the slots of a text, with elision in French: "d'Anna", "qu'Anna"."""
    result, end = "", 0
    for match in SLOT.finditer(text):
        result += text[end : match.start()]
        word = words[match[0][1:-1]]
        result = elided(result, word) if language == "fr" else result
        result, end = result + word, match.end()
    return (result + text[end:]).replace("..", ".")  # "at 2:30 p.m." ends its sentence


def elided(before: str, word: str) -> str:
    """French text that ends before `word`, with its last "de " or "que " shortened if the word begins with a vowel."""
    return _ELIDES.sub(lambda match: match[1] + "'", before) if word[:1] in _VOWELS else before
