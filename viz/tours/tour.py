"""Tours as data: the classes that viz/tours/*.json are read into.

A file holds texts, views, and names of measures and questions. It holds no code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from attention_atlas.viz import assets
from attention_atlas.viz.words import FOLDER as LANGUAGES

FOLDER = assets.WEB.parent / "tours"
WORDS = LANGUAGES / "tours"  # translations, a file for each language, fetched when a tour is started
FIELD = re.compile(r"\{(\w+)\}")
MINUTE = 2  # stops per minute of reading


@dataclass(frozen=True)
class Pair:
    """A source word and its possible translations. The first one that was written counts."""

    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence in one direction. pairs: by the names that stops use. other: the words in another order, or ""."""

    text: str
    pairs: Mapping[str, Pair]
    other: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim that is measured each time it is shown.

    text               with the fields {value}, the measured number, and {bound}
    measure, given     a function of viz.tours.measures, and its keyword arguments
    at_least, at_most  the bound; one of the two
    learned            whether it holds only for trained models, and not by the network's construction
    """

    text: str
    measure: str
    given: Mapping[str, object] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    learned: bool = True


@dataclass(frozen=True)
class Stop:
    """A stop of a tour.

    open    fields of a link, without sentence, head and token
    look    a CSS selector of the element that the stop is about
    pair    the name of a pair of the sentence
    pinned  whether the view pins the pair
    head    a key of viz.tours.scene.HEADS
    ask     a key of viz.tours.asks.ASKS; the learner answers it before the view and the claim are shown
    """

    title: str
    text: str
    sentence: str
    open: Mapping[str, str]
    look: str
    claim: Claim
    pair: str | None = None
    pinned: bool = True
    head: str | None = None
    ask: str | None = None


@dataclass(frozen=True)
class Tour:
    """A tour.

    sentences  name -> direction -> candidates. Of several candidates the first that the model translates wrong is
               shown. All names have the same directions; the first is preferred
    takes      duration in minutes; None to estimate it from the number of stops
    """

    name: str
    title: str
    sentences: Mapping[str, Mapping[str, tuple[Sentence, ...]]]
    stops: tuple[Stop, ...]
    takes: int | None = None

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that it can be given in."""
        return tuple(next(iter(self.sentences.values())))

    @property
    def minutes(self) -> int:
        """The approximate duration."""
        return self.takes or max(1, round(len(self.stops) / MINUTE))

    @property
    def asks(self) -> int:
        """The number of stops with a question."""
        return sum(stop.ask is not None for stop in self.stops)

    def texts(self) -> tuple[str, ...]:
        """Return all English texts, which are the keys of the translations in viz/web/words/tours/."""
        texts = [text for stop in self.stops for text in (stop.title, stop.text, stop.claim.text)]
        return tuple(dict.fromkeys([self.title, *texts]))


def read(path: Path) -> Tour:
    """Read the file of a tour. TypeError or KeyError for a missing or unknown field."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    sentences = {
        name: {
            direction: tuple(
                Sentence(
                    entry["text"],
                    {pair: Pair(source, tuple(targets)) for pair, (source, *targets) in entry.get("pairs", {}).items()},
                    entry.get("other", ""),
                )
                for entry in (entries if isinstance(entries, list) else [entries])
            )
            for direction, entries in directions.items()
        }
        for name, directions in fields.pop("sentences").items()
    }
    stops = tuple(Stop(**{**stop, "claim": Claim(**stop["claim"])}) for stop in fields.pop("stops"))
    return Tour(path.stem, sentences=sentences, stops=stops, **fields)


@cache
def tours() -> Mapping[str, Tour]:
    """Return all tours by name, in the order of order.json."""
    order = json.loads((FOLDER / "order.json").read_text(encoding="utf-8"))
    return {name: read(FOLDER / f"{name}.json") for name in order}
