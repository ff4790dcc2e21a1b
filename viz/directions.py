"""The menus of the page's head: the translation direction and its model, with two more menus for multilingual models.

A route (model.trace.directions.Route) is a direction of one model. An entry is a line of the first menu.
"""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.nets.recurrent import Recurrent
from attention_atlas.model.serve.limits import FLOAT
from attention_atlas.model.text.language import other_language
from attention_atlas.model.trace.directions import Route, language_of, parse_direction
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.recipe import ToyRecipe
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.training.toy.run import normalise, parse
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.component import label
from attention_atlas.viz.words import Words, say

LANGUAGE_PAIRS = {
    ("de", "en"): say("German → English"),
    ("en", "de"): say("English → German"),
    ("en", "fr"): say("English → French"),
}
LOOKS_LIKE = {
    "de": say("This text looks like German, but the selected direction translates from another language."),
    "en": say("This text looks like English, but the selected direction translates from another language."),
    "fr": say("This text looks like French, but the selected direction translates from another language."),
}
RECURRENT_PAIRS = {("de", "en"): say("German → English (recurrent)")}
TOY = "toy"  # the menu's entry for the network that the visitor trained
YOURS = say("Your toy")
LABELS = (*LANGUAGE_PAIRS.values(), *RECURRENT_PAIRS.values(), YOURS)
LARGE = 50_000_000  # parameters from which the page says what a model costs
SHOWN = 6  # example sentences of a toy
DIGITS = 12  # of a digest in a workshop link
OFFERED = 4  # example sentences borrowed from another model


def entries(translators: Translators) -> list[tuple[object, str]]:
    """Return the lines of the menu: (text, label of a route). A multilingual model has one line.

    No label of a route may be a label of the page: Gradio 6.31 translates the values of a menu, and then rejects them.
    """
    names: dict[str, object] = {}
    for route in translators.routes:
        name, is_own = _name_of(translators, route)
        text = label(name) if is_own else f"{label(name)} ({route.checkpoint})"
        names.setdefault(entry_of(translators, route), text)
    return [(text, entry) for entry, text in names.items()]


def name_of(translators: Translators, route: Route) -> Words | str:
    """Return the name of a route, such as "German → English".

    A recurrent network is marked as such. The checkpoint's name follows in brackets if other models of its kind precede
    it. A multilingual model has its checkpoint's name.
    """
    name, is_own = _name_of(translators, route)
    return name if is_own else say("{name} ({checkpoint})", name=name, checkpoint=route.checkpoint)


def _name_of(translators: Translators, route: Route) -> tuple[Words | str, bool]:
    """Return the name of a route without a checkpoint in brackets, and whether it has that name alone."""
    if translators[route.label].languages:
        return route.checkpoint, True
    network = type(translators[route.label].model)
    alike = (
        candidate
        for candidate in translators.routes
        if candidate.direction == route.direction and type(translators[candidate.label].model) is network
    )
    if network is Recurrent and next(alike) is route and (route.source, route.target) in RECURRENT_PAIRS:
        return RECURRENT_PAIRS[route.source, route.target], True
    return LANGUAGE_PAIRS.get((route.source, route.target), f"{route.source} → {route.target}"), route.is_first


def with_digest(translators: Translators, digest: object) -> Translator | None:
    """Return the model whose digest begins like this; None if no digest is given. A Refusal if it is not served."""
    if not digest:
        return None
    for translator in translators.all:
        if translator.digest.startswith(str(digest)):
            return translator
    raise Refusal("This link is for a model that is not served here (digest {digest}).", digest=f"{digest!s:.40}")


def model_of(translators: Translators, trace: TranslationTrace) -> Words | str:
    """Return the name of the model that made a translation."""
    if trace.recipe is not None:
        return YOURS
    route = translators.find(trace.direction, trace.checkpoint)
    return name_of(translators, route) if route else trace.checkpoint


def entry_of(translators: Translators, route: Route) -> str:
    """Return the entry of the menu that a route belongs to."""
    translator = translators[route.label]
    if not translator.languages:
        return route.label
    return next(line.label for line in translators.routes if translators[line.label] is translator)


def route_of(translators: Translators, entry: str, pair: str) -> Route:
    """Return the route that the menus name. pair: the direction of a multilingual model, or ""."""
    first = translators.route(entry)
    return translators.find(pair, first.checkpoint) or first if pair and translators[entry].languages else first


def menus(translators: Translators, route: Route) -> dict | None:
    """Return the two menus of languages with their values; None for a model of one pair."""
    languages = translators[route.label].languages
    return languages and {
        "sources": languages.sources,
        "targets": languages.targets,
        "source": route.source,
        "target": route.target,
        "model": route.checkpoint,
        "entry": entry_of(translators, route),
    }


def describe_route(translators: Translators, route: Route) -> dict:
    """Return the menus of a route, its example sentences, and what a large model costs, JSON-ready."""
    offer = {"sentences": sentences(translators, route), "cost": cost(translators[route.label])}
    return {"entry": entry_of(translators, route), "menus": menus(translators, route), "offer": offer}


def describe_toy(recipe: ToyRecipe) -> dict:
    """Return describe_route() of a network that the visitor trained. ValueError if it cannot be trained."""
    pairs, _ = parse(recipe)
    return {"entry": TOY, "menus": None, "offer": {"sentences": [text for text, _ in pairs[:SHOWN]], "cost": None}}


def read_recipe(fields: Mapping) -> ToyRecipe:
    """Read the recipe of the network that the visitor trained. A Refusal without one."""
    if fields.get("recipe") is None:
        raise Refusal("“Your toy” is the network you train and open on the Train tab. You have not opened one yet.")
    return normalise(ToyRecipe.from_plain(fields["recipe"]))


def sentences(translators: Translators, route: Route) -> list[str]:
    """Return the model's example sentences for a direction, else a few of other models in the same language."""
    own = translators[route.label].examples.get(route.direction, ())
    borrowed = [
        example
        for line in translators.routes
        if language_of(line.source) == language_of(route.source)
        for example in translators[line.label].examples.get(line.direction, ())
    ]
    return list(dict.fromkeys(example.text for example in own or borrowed[:OFFERED]))


def mismatch(translators: Translators, trace: TranslationTrace) -> dict | None:
    """Return a hint if a text is clearly in another language than its direction reads, else None.

    The hint is {text, switch}. switch is {label, link} of a direction that reads the language, preferably into the
    expected one, or None if no model reads it.
    """
    expected = language_of(parse_direction(trace.direction)[0])
    language = other_language(trace.source_text, expected)
    if language is None:
        return None
    text = LOOKS_LIKE[language]
    reading = [route for route in translators.routes if language_of(route.source) == language]
    route = min(
        reading,
        key=lambda route: (language_of(route.target) != expected, route.checkpoint != trace.checkpoint),
        default=None,
    )
    if route is None:
        return {"text": text, "switch": None}
    link = {"text": trace.source_text, "direction": route.direction, "checkpoint": route.checkpoint}
    label = say("Translate {direction}", direction=name_of(translators, route))
    return {"text": text, "switch": {"label": label, "link": link}}


def is_large(translator: Translator) -> bool:
    """Return whether a model is as large as published ones."""
    return translator.weight_bytes >= FLOAT * LARGE


def cost(translator: Translator) -> Words | None:
    """Return the memory and speed of a large model in words, None for a small one."""
    if not is_large(translator):
        return None
    weights = list(translator.model.parameters())
    numbers = sum(weight.numel() for weight in weights)
    read = translator.model.step_numbers * weights[0].element_size()
    return say(
        "A large model: {n} million parameters, {memory} GB of memory shared by all visitors. It "
        "reads {read} MB for each token, so translating is slow. Texts are limited to {limit} tokens.",
        n=f"{numbers / 1e6:.0f}",
        memory=f"{translator.weight_bytes / 1e9:.1f}",
        read=f"{read / 1e6:.0f}",
        limit=translator.max_tokens,
    )
