"""What a tour is: a file of viz/tours/. It holds texts, views and the names of measures, and nothing that is run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attention_atlas.viz import assets
from attention_atlas.viz.words import FOLDER as LANGUAGES

FOLDER = assets.WEB.parent / "tours"
WORDS = LANGUAGES / "tours"  # their words: a file a language, which is fetched when a tour is started
FIELD = re.compile(r"\{(\w+)\}")
MINUTE = 2  # stops that a reader takes in, in one minute


@dataclass(frozen=True)
class Pair:
    """A word of a sentence, and what may stand for it in the translation: the first of these that does is meant."""

    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """In one direction. pairs: by the names that stops use. other: its words in another order, for stops that ask what
    becomes of that."""

    text: str
    pairs: Mapping[str, Pair]
    other: str = ""


@dataclass(frozen=True)
class Claim:
    """text: with {value}, what was measured, and {bound}, at_least or at_most. measure, given: an entry of
    viz.tours.measures and what it is told. learned: whether only a trained model can be expected to fulfil it; the
    others follow from how the network is built."""

    text: str
    measure: str
    given: Mapping[str, object] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    learned: bool = True


@dataclass(frozen=True)
class Stop:
    """open: the fields of a link, without what says which sentence, head and token. look: the element of the page that
    it is about, as a selector. pair: of the sentence. pinned: whether the pair is chosen in the view, which of a map of
    lines then shows this one alone. head: an entry of viz.tours.scene.HEADS. ask: an entry of viz.tours.asks,
    which is answered before the view and the claim are shown."""

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
    """sentences: name -> direction -> candidates, of which the first that the model gets wrong is shown; a single one
    is shown whatever becomes of it. Each has the same directions, the first of which is preferred. takes: minutes;
    None: as long as it takes to read."""

    name: str
    title: str
    sentences: Mapping[str, Mapping[str, tuple[Sentence, ...]]]
    stops: tuple[Stop, ...]
    takes: int | None = None

    @property
    def directions(self) -> tuple[str, ...]:
        """Those that it is for."""
        return tuple(next(iter(self.sentences.values())))

    @property
    def minutes(self) -> int:
        """About how long it takes."""
        return self.takes or max(1, round(len(self.stops) / MINUTE))

    @property
    def asks(self) -> int:
        """How many of its stops ask something."""
        return sum(stop.ask is not None for stop in self.stops)

    def texts(self) -> tuple[str, ...]:
        """All its English, the key of its words in other languages (viz/web/words/tours/)."""
        said = [text for stop in self.stops for text in (stop.title, stop.text, stop.claim.text)]
        return tuple(dict.fromkeys([self.title, *said]))


def read(path: Path) -> Tour:
    """A tour's file. TypeError or KeyError for a field that is missing or that there is not: it is our own."""
    found = json.loads(path.read_text(encoding="utf-8"))
    sentences = {
        name: {
            direction: tuple(
                Sentence(
                    one["text"],
                    {pair: Pair(source, tuple(targets)) for pair, (source, *targets) in one.get("pairs", {}).items()},
                    one.get("other", ""),
                )
                for one in (found if isinstance(found, list) else [found])
            )
            for direction, found in directions.items()
        }
        for name, directions in found.pop("sentences").items()
    }
    stops = tuple(Stop(**{**stop, "claim": Claim(**stop["claim"])}) for stop in found.pop("stops"))
    return Tour(path.stem, sentences=sentences, stops=stops, **found)


def tours() -> dict[str, Tour]:
    """Return all tours by name, in the order of order.json."""
    order = json.loads((FOLDER / "order.json").read_text(encoding="utf-8"))
    return {name: read(FOLDER / f"{name}.json") for name in order}
