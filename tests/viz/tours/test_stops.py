"""Every stop of every tour: its claim holds for the shipped models, agrees with its view, and fails at random."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache

import pytest
import torch

from attention_atlas.model import checkpoint
from attention_atlas.model.analysis.survey.run import find_survey
from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.why.attribution import Against
from attention_atlas.model.training import learned
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels.panel import Scene
from attention_atlas.viz.panels.scene import PageQuestion, Selection
from attention_atlas.viz.panels.why import heads as why_heads
from attention_atlas.viz.questions.panels import answer_why
from attention_atlas.viz.tours import guide
from attention_atlas.viz.tours.measures import MEASURES, share, sharper, uneven
from attention_atlas.viz.tours.tour import FIELD, Pair, Sentence, Stop, Tour, tours
from attention_atlas.viz.words import for_page
from tests.conftest import TINY_LIMITS

EVERY = tours()
# A plain run takes the first direction of each tour.
CASES = [
    pytest.param(
        tour,
        direction,
        marks=[pytest.mark.long] * (direction != tour.directions[0]),
        id=f"{tour.name} {direction}",
    )
    for tour in EVERY.values()
    for direction in tour.directions
]


@pytest.fixture(scope="module")
def random_translators(shipped_translators) -> dict[str, Translator]:
    """Return translators by direction, with the shipped shapes, tokenizers and surveys but random weights.

    Random weights would write up to the last position, so their limits are small.
    """
    measured = {}
    for shipped in (entry for entry in shipped_translators.all if isinstance(entry.model, Transformer)):
        read = checkpoint.load(shipped.folder)
        torch.manual_seed(5)
        model = Transformer(read.model.config).eval()
        made = Translator(
            dataclasses.replace(read, model=model, folder=None, digest="0" * 16),
            torch.device("cpu"),
            limits=TINY_LIMITS,
        )
        measured |= dict.fromkeys(read.directions, made)
    return measured


def stops_of(translator: Translator, tour: Tour, direction: str) -> list[dict]:
    return [for_page(guide.describe_stop(translator, direction, tour, stop)) for stop in tour.stops]


@pytest.fixture(scope="module")
def shipped_stops(shipped_translators) -> Callable[[str, str], list[dict]]:
    """Return the stops of a tour as the shipped model of a direction shows them, measured once."""
    return cache(lambda tour, direction: stops_of(shipped_translators[direction], EVERY[tour], direction))


@pytest.mark.parametrize(("tour", "direction"), CASES)
def test_every_claim_holds_for_the_shipped_model(shipped_translators, shipped_stops, tour, direction):
    translator = shipped_translators[direction]
    for stop, payload in zip(tour.stops, shipped_stops(tour.name, direction), strict=True):
        if payload["missing"]:  # allowed only if the stop needs a survey that the model lacks
            assert stop.head and translator.survey is None, payload["missing"]
            continue
        claim = payload["claim"]
        assert claim["holds"], (stop.title, claim["text"])
        assert "" not in {**payload["text"]["with"], **claim["text"]["with"]}.values(), stop.title  # a space is shown
        trace = translator.translate(payload["open"]["text"], direction)
        for name, size in (
            ("query", len(trace.target_ids)),
            ("key", len(trace.source_ids)),
            ("step", len(trace.target_ids)),
        ):
            assert 1 <= int(payload["open"].get(name, 1)) <= size, stop.title
        if stop.open.get("view") == "lines":  # a pin would leave only its own lines
            assert not {"query", "key"} & set(payload["open"]), stop.title
        if MEASURES[stop.claim.measure] in (
            uneven,
            sharper,
        ):  # the value is the difference of the two numbers in the text
            values = claim["text"]["with"]
            low, high = sorted(
                float(values[name].rstrip("%"))
                for name in ("least", "most", "before", "after")
                if name in values and "%" in values[name] and name in FIELD.findall(stop.claim.text)
            )
            assert high - low == pytest.approx(float(values["value"]), abs=1e-6) and high <= 100, stop.title
        if "{target}" in stop.text:
            assert payload["text"]["with"]["target"] in trace.translation, stop.title


def in_the_picture(translator: Translator, tour: Tour, direction: str, stop: Stop, view: dict) -> list[str]:
    """Return the numbers that the view of a stop shows about its claim, as the page formats them."""
    trace = translator.translate(view["text"], direction)
    if view.get("panel") == "heads-survey":
        kind, layer, head = AttentionKind(view["kind"]), int(view["layer"]) - 1, int(view["head"]) - 1
        return [
            share(
                float(find_survey(translator, direction).kinds[kind].statistics[view["statistic"]].value[layer, head])
            )
        ]
    if view["tab"] == "explorer":  # the pinned cell
        maps = trace.maps(AttentionKind(view["kind"])).weights[int(view["layer"]) - 1, int(view["head"]) - 1]
        return [share(float(maps[int(view["query"]) - 1, int(view["key"]) - 1]))]
    against = Against.NOTHING if view.get("alone") else Against.RUNNER_UP
    scene = Scene(trace, Selection(), translator, PageQuestion.of(trace, int(view["step"]) - 1, against))
    if view["panel"] == "why-tokens":
        return [text for words in answer_why(scene)["headline"] for text in words.values.values()]
    *_, blocks = why_heads.PANEL.content(scene, *(control.start for control in why_heads.PANEL.controls))
    (grid,) = (block for block in blocks if block["type"] == "heads")
    (kind,) = (kind for kind in grid["kinds"] if kind["kind"] == view["kind"])
    return [kind["rows"][int(view["layer"]) - 1][int(view["head"]) - 1]["name"].values["n"]]


# Measures whose number appears in the picture -> the names of these values. Other claims are about a whole picture.
SHOWN = {
    "on_average": ("value",),
    "weight": ("value",),
    "read_back": ("value",),
    "best_head": ("value",),
    "hidden": ("before", "after"),
    "matters_most": ("before", "after"),
    "without_head": ("nats",),
}


@pytest.mark.parametrize(("tour", "direction"), CASES)
def test_a_claim_and_its_picture_have_the_same_number(shipped_translators, shipped_stops, tour, direction):
    translator = shipped_translators[direction]
    for stop, payload in zip(tour.stops, shipped_stops(tour.name, direction), strict=True):
        claim, view = payload["claim"], payload["open"]
        if not claim or stop.claim.measure not in SHOWN or not stop.pinned:
            continue
        if stop.claim.measure == "without_head" and view["tab"] == "explorer":
            continue
        seen = in_the_picture(translator, tour, direction, stop, view)
        for name in SHOWN[stop.claim.measure]:
            assert claim["text"]["with"][name] in seen, (stop.title, name, seen)


@pytest.mark.long
@pytest.mark.parametrize(("tour", "direction"), CASES)
def test_claims_about_training_fail_for_random_weights(random_translators, tour, direction):
    for stop, payload in zip(tour.stops, stops_of(random_translators[direction], tour, direction), strict=True):
        if not payload["missing"]:
            assert payload["claim"]["holds"] is not stop.claim.learned, (stop.title, payload["claim"]["text"])


def test_the_stop_on_training_quotes_the_recorded_losses(shipped_translators):
    shipped = shipped_translators["de-en"]
    tour = EVERY["paper"]
    (stop,) = (stop for stop in tour.stops if stop.claim.measure == "trained")
    history = learned.read(shipped.folder)
    text = str(guide.describe_stop(shipped, "de-en", tour, stop)["text"])
    for update in (history.updates[0], history.updates[-1]):
        assert f"update {update:,}" in text
    for loss in history.loss.mean(1)[[0, -1]]:
        assert f"{loss:.2f}" in text
    assert "learned before" not in text and history.updates[0] == 0
    other = shipped_translators["en-de"]
    first = learned.read(other.folder).updates[0]
    text = str(guide.describe_stop(other, "en-de", tour, stop)["text"])
    assert "learned before" in text and f"update {first:,}" in text and first > 0


def test_a_tour_starts_in_the_pages_direction_if_it_can(shipped_translators):
    tour = next(iter(EVERY.values()))
    last = tour.directions[-1]
    assert guide.route_of(shipped_translators, tour, "", last).direction == last
    assert guide.route_of(shipped_translators, tour, "", "xx-yy").direction == tour.directions[0]
    assert guide.route_of(shipped_translators, tour, tour.directions[0], last).direction == tour.directions[0]


def test_requests_for_stops_are_answered_or_refused(shipped_translators):
    name = next(iter(EVERY))
    for stop in (None, 0, -1, 99, "2", 2.5, True):
        assert guide.stop_payload(shipped_translators, EVERY, {"tour": name, "stop": stop})["stop"] == 1
    for data in ({}, {"tour": "../order"}, {"tour": 3}):
        with pytest.raises(Refusal):
            guide.stop_payload(shipped_translators, EVERY, data)


def test_without_a_survey_a_stop_says_so(shipped_translators):
    shipped = shipped_translators["de-en"]
    bare = Translator(
        dataclasses.replace(checkpoint.load(shipped.folder), survey=None, digest="f" * 16), torch.device("cpu")
    )
    tour = EVERY["attention"]
    payloads = [
        payload for stop, payload in zip(tour.stops, stops_of(bare, tour, "de-en")) if stop.head == "previous_encoder"
    ]
    assert payloads and all(payload["missing"] and payload["claim"] is None for payload in payloads)


def test_no_tour_is_offered_for_other_languages(tiny_checkpoint):
    read = dataclasses.replace(checkpoint.load(tiny_checkpoint), directions=("en-xx",), examples={})
    other = Translators([Translator(read, torch.device("cpu"))])
    assert guide.available_tours(other, EVERY) == [] and guide.invitation(other) is None
    with pytest.raises(Refusal):
        guide.route_of(other, next(iter(EVERY.values())))


@pytest.mark.parametrize("direction", EVERY["failing"].directions)
def test_the_tour_on_failures_shows_wrong_translations(shipped_translators, direction):
    translator, tour = shipped_translators[direction], EVERY["failing"]
    for stop in tour.stops:
        sentence = guide.select_sentence(translator, direction, tour, stop)
        wrote = translator.translate(sentence.text, direction).translation
        assert not any(word in wrote for word in sentence.pairs["word"].targets), wrote


def test_a_stop_without_a_fitting_sentence_is_left_out(shipped_translators):
    right = Sentence("Der Hund schläft.", {"word": Pair("Hund", ("dog",)), "known": Pair("Hund", ("dog",))})
    tour = EVERY["failing"]
    tour = dataclasses.replace(tour, sentences={**tour.sentences, "name": {"de-en": (right, right)}})
    stop = guide.stop_payload(
        shipped_translators, {"failing": tour}, {"tour": "failing", "stop": 1, "direction": "de-en"}
    )
    assert stop["stops"] == len(tour.stops) - 1 and stop["title"].english == tour.stops[1].title
    with pytest.raises(Refusal, match="cannot show"):
        every = dataclasses.replace(tour, sentences={key: {"de-en": (right, right)} for key in tour.sentences})
        guide.stop_payload(shipped_translators, {"failing": every}, {"tour": "failing", "direction": "de-en"})
