"""The names in the files of tours exist: views, elements, measures and words."""

from __future__ import annotations

import inspect

from attention_atlas.viz import shell
from attention_atlas.viz.panels import registry
from attention_atlas.viz.tours.asks import ASKS
from attention_atlas.viz.tours.measures import MEASURES
from attention_atlas.viz.tours.scene import HEADS
from attention_atlas.viz.tours.tour import FOLDER, tours

EVERY = tours()
STOPS = [(tour, stop) for tour in EVERY.values() for stop in tour.stops]


def test_every_tour_is_in_the_order_file():
    assert sorted(EVERY) == sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "order")
    assert len(EVERY["attention"].stops) == 8


def test_every_stop_names_existing_parts():
    titles = {name for _, name, _ in shell.TABS}
    for tour, stop in STOPS:
        for direction in tour.directions:
            for sentence in tour.sentences[stop.sentence][direction]:
                if stop.pair:
                    pair = sentence.pairs[stop.pair]
                    assert pair.source in sentence.text and pair.targets, stop.title
        tab, panel = stop.open["tab"], stop.open.get("panel")
        assert tab in titles and stop.look, stop.title
        if panel:
            (shown,) = (described for described in registry.TABS if described.name == tab)
            assert panel in [panel.name for panel in shown.panels], stop.title
        assert stop.head is None or stop.head in HEADS, stop.title
        assert stop.ask is None or stop.ask in ASKS, stop.title
        assert {"text", "direction", "checkpoint", "query", "step"}.isdisjoint(stop.open), stop.title


def test_every_claim_is_bounded_on_one_side():
    """test_stops.py measures all of them, and would accept a float for an int."""
    kinds = {"str": str, "int": int, "float": float}
    for _, stop in STOPS:
        parameters = inspect.signature(MEASURES[stop.claim.measure]).parameters
        for name, value in stop.claim.given.items():
            assert isinstance(value, kinds[parameters[name].annotation]), stop.title
        assert (stop.claim.at_least is None) != (stop.claim.at_most is None), stop.title
        assert "{value}" in stop.claim.text, stop.title


def test_sentences_are_in_the_same_directions():
    for tour in EVERY.values():
        assert {tuple(directions) for directions in tour.sentences.values()} == {tour.directions}, tour.name
