"""The answers of the page's tours and worksheets: a stop's text and view, its claim as measured now, its question."""

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
from attention_atlas.viz.tours.asks import ASKS, task_payload
from attention_atlas.viz.tours.measures import MEASURES, NOTHING, Measured
from attention_atlas.viz.tours.scene import HEADS, StopScene
from attention_atlas.viz.tours.tour import FIELD, WORDS, Claim, Pair, Sentence, Stop, Tour, tours
from attention_atlas.viz.wire import fields
from attention_atlas.viz.words import Words, say

CANDIDATE = "word"  # the pair of a candidate sentence that the model may translate wrong


def build() -> None:
    """Add the component of the tours, which is hidden until one is started."""
    options = {"words": {path.stem: f"{assets.address()}{assets.name(path)}" for path in sorted(WORDS.glob("*.json"))}}
    add_component("guide", None, options=options, elem_id="tours")


def worksheet_options(translators: Translators, every: Mapping[str, Tour]) -> dict:
    """Return what a worksheet can contain: tours with questions, directions, and kinds of questions."""
    return {
        "tours": [
            {"name": tour.name, "title": Words(tour.title, {}), "stops": [i + 1 for i, stop in enumerate(tour.stops)]}
            for tour in available_tours(translators, every)
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


def workshop_options(translators: Translators, every: Mapping[str, Tour]) -> dict:
    """Return what a workshop link can name: models, each with the tours that it gives, and the titles of tours."""
    return {
        "models": [
            {
                "direction": route.direction,
                "checkpoint": route.checkpoint,
                "digest": translators[route.label].digest[: directions.DIGITS],
                "title": directions.name_of(translators, route),
                "tours": [
                    tour.name
                    for tour in every.values()
                    if route.direction in tour.directions and _route(translators, route.direction) == route
                ],
            }
            for route in translators.routes
        ],
        "tours": {tour.name: Words(tour.title, {}) for tour in every.values()},
    }


def task(translators: Translators, data: Mapping[str, object]) -> dict:
    """Return one question of a worksheet. data: {text, direction, checkpoint, ask, word}; word may be "".

    A Refusal if the sentence cannot be translated.
    """
    name, word = fields.read_entry(data, "ask", {name: name for name in ASKS}), fields.read_text(data, "word", "")
    route = translators.find(fields.read_text(data, "direction"), fields.read_text(data, "checkpoint", ""))
    if route is None:
        raise Refusal("No model on this server translates in this direction.")
    translator = translators[route.label]
    trace = translator.translate(fields.read_text(data, "text"), route.direction)
    pair = Pair("", (word.strip(),)) if word.strip() else None
    scene = StopScene(trace, made_by=translator, pair=pair)
    return {"read": trace.source_text, "wrote": trace.translation, "ask": task_payload(scene, name)}


def available_tours(translators: Translators, every: Mapping[str, Tour]) -> list[Tour]:
    """Return the tours that some served model can give."""
    return [tour for tour in every.values() if any(_route(translators, direction) for direction in tour.directions)]


def invitation(translators: Translators) -> dict | None:
    """Return the first available tour and its direction, for the link beside the examples, or None."""
    first = next(iter(available_tours(translators, tours())), None)
    return first and {
        "name": first.name,
        "minutes": first.minutes,
        "direction": route_of(translators, first, translators.routes[0].direction).direction,
    }


def stop_payload(
    translators: Translators, every: Mapping[str, Tour], data: Mapping[str, object], current: str | None = None
) -> dict:
    """Return the stop that data names by {tour, stop, direction}, stop from 1. A Refusal if no model can give the tour.

    current: the direction of the page's translation.
    """
    tour = every.get(str(data.get("tour")))
    if tour is None:
        raise Refusal("There is no tour with this name.")
    directions.with_digest(translators, data.get("digest"))
    route = route_of(translators, tour, str(data.get("direction") or ""), current)
    translator, number = translators[route.label], data.get("stop")
    stops = [stop for stop in tour.stops if select_sentence(translator, route.direction, tour, stop)]
    if not stops:
        raise Refusal("This model cannot show what this tour is about.")
    number = number if is_integer(number, 1, len(stops)) else 1
    stop = stops[number - 1]
    tours_payload = [
        {"name": listed.name, "title": Words(listed.title, {}), "minutes": listed.minutes}
        for listed in available_tours(translators, every)
    ]
    return {
        "tour": tour.name,
        "stop": number,
        "stops": len(stops),
        "direction": route.direction,
        "tours": tours_payload,
        "look": stop.look,
        "asks": tour.asks,
        **describe_stop(translator, route.direction, tour, stop),
    }


def route_of(translators: Translators, tour: Tour, *preferred: str | None) -> Route:
    """Return the route of a tour: the first preferred direction that it has, else its first served one.

    A Refusal if none of its directions is served.
    """
    for direction in (*preferred, *tour.directions):
        if direction in tour.directions and (route := _route(translators, direction)):
            return route
    raise Refusal(
        "No model on this server translates in a direction of this tour: {directions}.",
        directions=", ".join(tour.directions),
    )


def _route(translators: Translators, direction: str) -> Route | None:
    """Return the first route of this direction whose model is a Transformer, or None."""
    for route in translators.routes:
        if route.direction == direction and isinstance(translators[route.label].model, Transformer):
            return route
    return None


def select_sentence(translator: Translator, direction: str, tour: Tour, stop: Stop) -> Sentence | None:
    """Return the sentence of a stop. Of several candidates: the first that is translated wrong, or None.

    A candidate is wrong if none of its pair's words occurs in the translation.
    """
    candidates = tour.sentences[stop.sentence][direction]
    if len(candidates) == 1:
        return candidates[0]
    for sentence in candidates:
        translation = translator.translate(sentence.text, direction).translation.casefold()
        if not any(word.casefold() in translation for word in sentence.pairs[CANDIDATE].targets):
            return sentence
    return None


def describe_stop(translator: Translator, direction: str, tour: Tour, stop: Stop) -> dict:
    """Return text, view, claim and question of a stop. If no head has its property, only `missing` says so."""
    sentence = select_sentence(translator, direction, tour, stop)
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
    payload = {
        "title": Words(stop.title, values),
        "open": {**scene.link(pinned=stop.pinned, row=measured.row), **stop.open},
        "missing": missing,
        "read": trace.source_text,
        "wrote": trace.translation,
    }
    if missing:
        return payload | {"ask": None, "text": None, "claim": None}
    payload["ask"] = task_payload(scene, stop.ask) if stop.ask else None
    values |= measured.also
    blank = dict.fromkeys(FIELD.findall(stop.text), "–")  # fields that could not be measured
    return payload | {
        "text": Words(stop.text, blank | values),
        "claim": describe_claim(scene, stop.claim, measured, values),
    }


def _values(scene: StopScene) -> dict[str, object]:
    """Return the fields that a stop's text may have."""
    config, trace = scene.translator.config, scene.trace
    decoder = config.of(Side.DECODER)
    values = {
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
        values |= {"source": scene.pair.source, "target": scene.written}
    if scene.head:
        values |= {"layer": scene.head[1] + 1, "head": scene.head[2] + 1}
    return values


def measure(scene: StopScene, claim: Claim) -> Measured:
    """Measure a claim. NOTHING if it does not apply, such as rotation() of a position code without waves."""
    try:
        return MEASURES[claim.measure](scene, **claim.given)
    except ValueError:
        return NOTHING


def describe_claim(scene: StopScene, claim: Claim, measured: Measured, values: Mapping[str, object]) -> dict:
    """Return a claim with its measured value and whether it holds. values: further fields of its text."""
    value = measured.value
    if value is None:
        text = say("There is nothing to measure: this model wrote “{wrote}”.", wrote=scene.trace.translation)
        return {"text": text, "holds": False, "learned": claim.learned}
    bound = claim.at_most if claim.at_least is None else claim.at_least
    holds = value <= bound if claim.at_least is None else value >= bound
    text = Words(claim.text, {**values, "value": measured.format(value), "bound": measured.format(bound)})
    return {"text": text, "holds": holds, "learned": claim.learned}
