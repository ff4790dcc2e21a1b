"""The tours on the page: which stop is shown, its view, and its claim measured now, on the model that is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from attention_atlas.model.nets.transformer import Transformer
from attention_atlas.model.trace import is_integer
from attention_atlas.model.trace.directions import Route
from attention_atlas.model.trace.kinds import Side
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import assets, directions
from attention_atlas.viz.component import add_component
from attention_atlas.viz.tours.asks import ASKS, asked
from attention_atlas.viz.tours.measures import MEASURES, NOTHING, WRITTEN, Measured
from attention_atlas.viz.tours.scene import HEADS, StopScene
from attention_atlas.viz.tours.tour import FIELD, WORDS, Claim, Pair, Sentence, Stop, Tour, tours
from attention_atlas.viz.wire import fields
from attention_atlas.viz.words import Words, say

CANDIDATE = "word"  # the pair of a candidate sentence whose translation the model may get wrong


def build() -> None:
    """Lay out the tours: nothing is seen of them before one is started."""
    options = {"words": {path.stem: f"{assets.address()}{assets.name(path)}" for path in sorted(WORDS.glob("*.json"))}}
    add_component("guide", None, options=options, elem_id="tours")


def sheets(translators: Translators, every: Mapping[str, Tour]) -> dict:
    """What a worksheet can be made of: tours that ask, directions, and questions."""
    return {
        "tours": [
            {"name": tour.name, "title": Words(tour.title, {}), "stops": [i + 1 for i, stop in enumerate(tour.stops)]}
            for tour in offered(translators, every)
            if tour.asks
        ],
        "directions": [
            {
                "direction": route.direction,
                "checkpoint": route.checkpoint,
                "title": directions.name_of(translators, route),
            }
            for route in translators.routes
            if not translators[route.label].languages
        ],
        "asks": [{"name": name, "title": ask.title} for name, ask in ASKS.items()],
    }


def task(translators: Translators, data: Mapping[str, object]) -> dict:
    """One question of a worksheet, {text, direction, checkpoint, ask, word}: word, of the translation, may be "". A
    Refusal for a sentence that cannot be translated."""
    name, word = (
        fields.read_entry(data, "ask", {name: name for name in ASKS}),
        fields.read_text(data, "word", "").strip(),
    )
    route = translators.find(fields.read_text(data, "direction"), fields.read_text(data, "checkpoint", ""))
    if route is None:
        raise Refusal("No model that is served here translates in this direction.")
    translator = translators[route.label]
    trace = translator.translate(fields.read_text(data, "text"), route.direction)
    scene = StopScene(trace, made_by=translator, pair=Pair("", (word,)) if word else None)
    return {"read": trace.source_text, "wrote": trace.translation, "ask": asked(scene, name)}


def offered(translators: Translators, every: Mapping[str, Tour]) -> list[Tour]:
    """The tours that a model that is served can give."""
    return [tour for tour in every.values() if any(_route(translators, direction) for direction in tour.directions)]


def invitation(translators: Translators) -> dict | None:
    """What stands beside the examples: the first of the tours; None where no model here can give one."""
    first = next(iter(offered(translators, tours())), None)
    return first and {"name": first.name, "minutes": first.minutes}


def answered(
    translators: Translators, every: Mapping[str, Tour], data: Mapping[str, object], shown: str | None = None
) -> dict:
    """What the page draws of the stop that it asks for with {tour, stop, direction}; stop counts from 1, shown: the
    direction that the page is at. A Refusal for a tour that cannot be given here."""
    tour = every.get(str(data.get("tour")))
    if tour is None:
        raise Refusal("There is no tour of this name.")
    route = route_of(translators, tour, str(data.get("direction") or ""), shown)
    translator, number = translators[route.label], data.get("stop")
    stops = [stop for stop in tour.stops if chosen(translator, route.direction, tour, stop)]
    if not stops:
        raise Refusal("This model shows nothing of what this tour is about.")
    number = number if is_integer(number, 1, len(stops)) else 1
    stop = stops[number - 1]
    listed = [
        {"name": one.name, "title": Words(one.title, {}), "minutes": one.minutes} for one in offered(translators, every)
    ]
    return {
        "tour": tour.name,
        "stop": number,
        "stops": len(stops),
        "direction": route.direction,
        "tours": listed,
        "look": stop.look,
        "asks": tour.asks,
        **at(translator, route.direction, tour, stop),
    }


def route_of(translators: Translators, tour: Tour, *wanted: str | None) -> Route:
    """Where the tour is given: in the first of the directions that are wanted and that it is for, else in its own
    first one that is served. A Refusal where none is."""
    for direction in (*wanted, *tour.directions):
        if direction in tour.directions and (found := _route(translators, direction)):
            return found
    raise Refusal(
        "No model that is served here translates in a direction that this tour is for: {directions}.",
        directions=", ".join(tour.directions),
    )


def _route(translators: Translators, direction: str) -> Route | None:
    """The first route of this direction whose model is a Transformer."""
    for route in translators.routes:
        if route.direction == direction and isinstance(translators[route.label].model, Transformer):
            return route
    return None


def chosen(translator: Translator, direction: str, tour: Tour, stop: Stop) -> Sentence | None:
    """The sentence that a stop is shown on: of several candidates, the first in whose translation none of its pair's
    words occurs. None where all of them are translated right."""
    candidates = tour.sentences[stop.sentence][direction]
    if len(candidates) == 1:
        return candidates[0]
    for one in candidates:
        wrote = translator.translate(one.text, direction).translation.casefold()
        if not any(word.casefold() in wrote for word in one.pairs[CANDIDATE].targets):
            return one
    return None


def at(translator: Translator, direction: str, tour: Tour, stop: Stop) -> dict:
    """A stop's text, its view, its claim, and what it asks. Where no head has the property that it asks for, `missing`
    says so, and there is no claim and no question."""
    sentence = chosen(translator, direction, tour, stop)
    assert sentence is not None, "a stop that this model does not show"
    trace = translator.translate(sentence.text, direction)
    pair = sentence.pairs[stop.pair] if stop.pair else None
    scene = StopScene(trace, made_by=translator, pair=pair, other=sentence.other)
    try:
        scene = replace(scene, head=HEADS[stop.head](scene) if stop.head else None)
        missing, measured = None, measure(scene, stop.claim)
    except Refusal as error:
        missing, measured = error.words, NOTHING
    values = _values(scene)
    found = {
        "title": Words(stop.title, values),
        "open": {**scene.link(pinned=stop.pinned, row=measured.row), **stop.open},
        "missing": missing,
        "read": trace.source_text,
        "wrote": trace.translation,
    }
    if missing:
        return found | {"ask": None, "text": None, "claim": None}
    found["ask"] = asked(scene, stop.ask) if stop.ask else None
    values |= measured.also
    blank = dict.fromkeys(FIELD.findall(stop.text), "–")  # what could not be measured cannot be named either
    return found | {"text": Words(stop.text, blank | values), "claim": claimed(scene, stop.claim, measured, values)}


def _values(scene: StopScene) -> dict[str, object]:
    """What a stop's text may name."""
    config, trace = scene.translator.config, scene.trace
    decoder = config.of(Side.DECODER)
    found = {
        "read": trace.source_text,
        "wrote": trace.translation,
        "vocabulary": config.num_target_tokens,
        "layers": config.num_decoder_layers,
        "heads": decoder.num_heads,
        "size": config.d_model,
        "each": decoder.d_head,
        "inner": decoder.d_feedforward,
        "encoder": config.num_encoder_layers,
        "grid": config.num_decoder_layers * decoder.num_heads,
    }
    if scene.pair:
        found |= {"source": scene.pair.source, "target": scene.written}
    if scene.head:
        found |= {"layer": scene.head[1] + 1, "head": scene.head[2] + 1}
    return found


def measure(scene: StopScene, claim: Claim) -> Measured:
    """What a claim is about, measured now. Of what cannot be asked, such as a place in a code of positions that has no
    waves, nothing is."""
    try:
        return MEASURES[claim.measure](scene, **claim.given)
    except ValueError:
        return NOTHING


def claimed(scene: StopScene, claim: Claim, measured: Measured, values: Mapping[str, object]) -> dict:
    """A claim with what was measured: whether it holds, and the number. values: what its text may name besides."""
    found, write = measured.value, WRITTEN[measured.unit]
    if found is None:
        said = say("There is nothing to measure: this model wrote “{wrote}”.", wrote=scene.trace.translation)
        return {"text": said, "holds": False, "learned": claim.learned}
    bound, holds = (
        (claim.at_most, found <= claim.at_most) if claim.at_least is None else (claim.at_least, found >= claim.at_least)
    )
    said = Words(claim.text, {**values, "value": write(found), "bound": write(bound)})
    return {"text": said, "holds": holds, "learned": claim.learned}
