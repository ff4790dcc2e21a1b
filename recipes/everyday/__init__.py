"""A test of everyday sentences: 120 for each direction, with conditions that their translations must meet.

The sentences are in DIRECTION.json beside this file, twelve groups of ten. The first five of each group are open, for
use during development; the last five are sealed, for a final report. A meaning is open or sealed in all directions
alike.

The conditions are called points. A point is a question ("who slept") with patterns: all of "all" must occur in the
translation, and none of "none" may. Patterns are regular expressions without backslashes, matched from the
beginning of a word to the end of one, over a normalized text (see `uniform`). "~" stands for any rest of a word, so
that "sleep~" finds "sleeping", and " .*" for any words between.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
DIRECTIONS = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
HALVES = ("open", "sealed")
# A word of four letters or more twice in a row, or any three times, but for those that grammar or emphasis repeats.
STUTTER = re.compile(r"\b(?!(?:nous|vous|that|very|sehr|très)\b)(\w{4,})\W+\1\b|\b(\w+)\W+\2\W+\2\b")
CONTRACTIONS = tuple(
    (rf"{contracted}\b", written)
    for contracted, written in (
        (r"\bcan't", "can not"),
        (r"\bcannot", "can not"),
        (r"\bwon't", "will not"),
        (r"n't", " not"),
        (r"\b(i|you|he|she|it|we|they|that|there)'ll", r"\1 will"),
        (r"\b(you|we|they)'re", r"\1 are"),
        (r"\b(i|you|we|they)'ve", r"\1 have"),
        (r"\bi'm", "i am"),
        (r"(?<=\w)'(s|d)", r" '\1"),
    )
)


@dataclass(frozen=True)
class Point:
    """A condition: every pattern of `every` occurs and none of `no` does."""

    about: str
    every: tuple[str, ...]
    no: tuple[str, ...] = ()

    def holds(self, translation: str) -> bool:
        text = uniform(translation)
        return all(compiled(p).search(text) for p in self.every) and not any(compiled(p).search(text) for p in self.no)


@dataclass(frozen=True)
class Everyday:
    """A sentence as a visitor would type it, with two or more good translations and its points."""

    group: str
    source: str
    references: tuple[str, ...]
    points: tuple[Point, ...]
    sealed: bool = False

    def wrong(self, translation: str) -> list[str]:
        """Return the questions of the missed points, and "stutters" for a stuttering translation; empty if it is
        right."""
        wrong = [point.about for point in self.points if not point.holds(translation)]
        return wrong + ["said again"] * bool(STUTTER.search(uniform(translation)))


def read_everyday(direction: str, half: str | None = None) -> list[Everyday]:
    """Return the sentences of a direction, all or those of one half. Raises ValueError for an unknown direction or
    half."""
    if direction not in DIRECTIONS:
        raise ValueError(f"there are no everyday sentences for {direction!r}, only for {', '.join(DIRECTIONS)}")
    if half not in (None, *HALVES):
        raise ValueError(f"there is no half {half!r} of the everyday sentences, only {' and '.join(HALVES)}")
    rows = json.loads((FOLDER / f"{direction}.json").read_text(encoding="utf-8"))
    sentences = [
        Everyday(
            row["group"],
            row["source"],
            tuple(row["references"]),
            tuple(Point(p["about"], tuple(p["all"]), tuple(p.get("none", ()))) for p in row["points"]),
            row.get("sealed", False),
        )
        for row in rows
    ]
    return [sentence for sentence in sentences if half is None or sentence.sealed == (half == "sealed")]


def score(sentences: Sequence[Everyday], translations: Sequence[str]) -> dict:
    """Count the sentences that are right, in total and by group, and compute chrF with all references.

    {"right": count, "of": count, "share": 0 to 1, "chrf": 0 to 100, "groups": {group: {"right": count, "of": count}}}
    """
    of = Counter(sentence.group for sentence in sentences)
    right: Counter[str] = Counter()
    for sentence, translation in zip(sentences, translations, strict=True):
        right[sentence.group] += not sentence.wrong(translation)
    return {
        "right": right.total(),
        "of": of.total(),
        "share": round(right.total() / of.total(), 3),
        "chrf": chrf(sentences, translations),
        "groups": {group: {"right": right[group], "of": of[group]} for group in of},
    }


def chrf(sentences: Iterable[Everyday], translations: Sequence[str]) -> float:
    """Return sacreBLEU's chrF, 0 to 100, with the best of each sentence's references (Popovic 2015; Post 2018)."""
    from sacrebleu.metrics import CHRF  # of the extra "train"

    references = [sentence.references for sentence in sentences]
    # sacreBLEU wants the first references of all sentences, then the second ones; where one has fewer, None.
    columns = [
        [each[i] if i < len(each) else None for each in references] for i in range(max(map(len, references), default=0))
    ]
    return round(CHRF().corpus_score(list(translations), columns).score, 2)


def uniform(text: str) -> str:
    """Return a text in the form that patterns are matched with: no case, ss for ß, one kind of apostrophe and of space,
    and English contractions apart ("can't": "can not", "I'll": "i will", "it's": "it 's")."""
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("ʼ", "'").split())
    for contracted, written in CONTRACTIONS:
        text = re.sub(contracted, written, text)
    return text


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of a point to a regular expression over uniform text, at word boundaries."""
    anywhere = uniform(pattern).replace(" .*", r"\b.*\b").replace("~", r"\w*")
    return re.compile(rf"(?<!\w)(?:{anywhere})(?!\w)")
