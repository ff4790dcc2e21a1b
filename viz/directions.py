"""From which language into which, and by which model: a menu, and two searchable ones for a model of many languages."""

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
    "de": say("This text looks like German, but the direction chosen reads another language."),
    "en": say("This text looks like English, but the direction chosen reads another language."),
    "fr": say("This text looks like French, but the direction chosen reads another language."),
}
RECURRENT_PAIRS = {("de", "en"): say("German → English (recurrent)")}
TOY = "toy"  # the menu's entry for the network that the visitor trained
YOURS = say("Your toy")
LABELS = (*LANGUAGE_PAIRS.values(), *RECURRENT_PAIRS.values(), YOURS)
LARGE = 50_000_000  # parameters, above which the page says what a model costs
SHOWN = 6  # sentences of a toy's corpus
OFFERED = 4  # sentences of another model to try


def entries(translators: Translators) -> list[tuple[object, str]]:
    """The menu: (what it shows, the label of a route). A model of many languages is one entry. No label of a route may
    be a label of the page: Gradio 6.31 translates those, too, and then refuses them."""
    found: dict[str, Words | str] = {}
    for route in translators.routes:
        found.setdefault(entry_of(translators, route), name_of(translators, route))
    return [(label(text), entry) for entry, text in found.items()]


def name_of(translators: Translators, route: Route) -> Words | str:
    """ "German → English"; of a recurrent network "German → English (recurrent)"; with the checkpoint's name in
    brackets where others of its kind serve the same direction before it; of a model of many languages its name."""
    if translators[route.label].languages:
        return route.checkpoint
    network = type(translators[route.label].model)
    alike = [
        other
        for other in translators.routes
        if other.direction == route.direction and type(translators[other.label].model) is network
    ]
    if network is Recurrent and alike[0] is route and (route.source, route.target) in RECURRENT_PAIRS:
        return RECURRENT_PAIRS[route.source, route.target]
    name = LANGUAGE_PAIRS.get((route.source, route.target), f"{route.source} → {route.target}")
    return name if route.is_first else f"{label(name)} ({route.checkpoint})"


def entry_of(translators: Translators, route: Route) -> str:
    """The entry of the menu that a route belongs to."""
    translator = translators[route.label]
    if not translator.languages:
        return route.label
    return next(one.label for one in translators.routes if translators[one.label] is translator)


def route_of(translators: Translators, entry: str, pair: str) -> Route:
    """Return the route that the menus name. pair: of a model of many languages, or "". ValueError for others."""
    first = translators.route(entry)
    return translators.find(pair, first.checkpoint) or first if pair and translators[entry].languages else first


def menus(translators: Translators, route: Route) -> dict | None:
    """The two menus of languages with what is chosen in them; None for a model that needs none."""
    languages = translators[route.label].languages
    return languages and {
        "sources": languages.sources,
        "targets": languages.targets,
        "source": route.source,
        "target": route.target,
        "model": route.checkpoint,
        "entry": entry_of(translators, route),
    }


def chosen(translators: Translators, route: Route) -> dict:
    """Return what the page shows of a route, JSON-ready: its menus, sentences to try, and what a large model costs."""
    offer = {"sentences": sentences(translators, route), "cost": cost(translators[route.label])}
    return {"entry": entry_of(translators, route), "menus": menus(translators, route), "offer": offer}


def chosen_toy(recipe: ToyRecipe) -> dict:
    """chosen() of a visitor's own network. ValueError, in words, for what cannot be trained."""
    pairs, _ = parse(recipe)
    return {"entry": TOY, "menus": None, "offer": {"sentences": [text for text, _ in pairs[:SHOWN]], "cost": None}}


def recipe_of(fields: Mapping) -> ToyRecipe:
    """The recipe of the visitor's own network, in a question's fields. A Refusal where there is none."""
    if fields.get("recipe") is None:
        raise Refusal("“Your toy” is the network that you train in the tab Train and open there: there is none yet.")
    return normalise(ToyRecipe.from_plain(fields["recipe"]))


def sentences(translators: Translators, route: Route) -> list[str]:
    """The model's own for this direction, else a few in the same language that another one brings."""
    own = translators[route.label].examples.get(route.direction, ())
    others = [
        example
        for other in translators.routes
        if language_of(other.source) == language_of(route.source)
        for example in translators[other.label].examples.get(other.direction, ())
    ]
    return list(dict.fromkeys(example.text for example in own or others[:OFFERED]))


def mismatch(translators: Translators, trace: TranslationTrace) -> dict | None:
    """Return a hint where a text is clearly in another language than its direction reads, JSON-ready; else None.

    {text, switch}; switch is {label, link} of a direction that reads the language, preferably into the one that was to
    be read, or None if none is served.
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
    """Whether a model is of the size of published ones."""
    return translator.weight_bytes >= FLOAT * LARGE


def cost(translator: Translator) -> Words | None:
    """What a large model costs before it is asked for anything; None: it is none."""
    if not is_large(translator):
        return None
    weights = list(translator.model.parameters())
    numbers = sum(weight.numel() for weight in weights)
    read = translator.model.step_numbers * weights[0].element_size()
    return say(
        "A large model: {n} million parameters, {memory} GB in memory for all visitors together. For each token "
        "it reads {read} MB of them, so a translation takes its time. Texts have at most {limit} tokens.",
        n=f"{numbers / 1e6:.0f}",
        memory=f"{translator.weight_bytes / 1e9:.1f}",
        read=f"{read / 1e6:.0f}",
        limit=translator.max_tokens,
    )
