"""Questions of the head of the page."""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.directions import Route
from attention_atlas.model.trace.interventions import Interventions
from attention_atlas.model.trace.language import Refusal, words_of
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.trust.measured import PROVOKED, Found
from attention_atlas.model.trace.trust.signals import SIGNALS
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz import directions
from attention_atlas.viz.explorer.explorer import sent
from attention_atlas.viz.maps.labels import word_label
from attention_atlas.viz.panels import registry
from attention_atlas.viz.panels.panel import TRANSFORMER
from attention_atlas.viz.panels.scene import Scene, not_served
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.wire.summary import summarise
from attention_atlas.viz.words import Words, say

SEARCHES = {"1": say("greedy"), "5": say("beam 5")}  # the width of the beam -> its label in the menu
LONGEST = 128  # tokens of both sides: of longer texts the reading takes too long for a line
SAYS = {
    "unsure": lambda words, other: say("unsure between “{words}” and “{other}” here", words=words, other=other),
    "unmoved": lambda words, _: say("“{words}” would be as probable without your sentence", words=words),
    "detached": lambda words, _: say("“{words}” came from nothing in your sentence", words=words),
    "unread": lambda words, _: say("the model hardly used “{words}”", words=words),
    "repeated": lambda words, _: say("“{words}” is repeated", words=words),
}
WHERE = {  # where one sees it, as a link's fields
    "unsure": {"tab": "stepper"},
    "unmoved": {"tab": "why", "panel": "why-tokens"},
    "detached": {"tab": "verify", "panel": "trust"},
    "unread": {"tab": "verify", "panel": "trust"},
    "repeated": {"tab": "explorer", "kind": "cross"},
}


@question(lane="translate")
def page_translate(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the translation of a text, or the one at an address: what the line above the tabs shows, and the map.

    fields, without an address: text, beam, interventions, and either the menus' entry and pair (of a model of many
    languages) or a link's direction and checkpoint. The answer has "fill", the entries that the menus are to show,
    where the fields are a link's, or where "fills" asks for it; also where the text is refused, as {"error", "fill"}.
    recipe: of the visitor's own network, which then translates.
    """
    if address is not None:
        return shown(context, context.trace(address))
    if fields.get("entry") == directions.TOY or fields.get("recipe") is not None:
        recipe = directions.recipe_of(fields)
        translator, code = context.traces.translator_of(Address("", recipe=recipe))
        menus, fills = directions.chosen_toy(recipe), fields.get("direction")
    else:
        route = route_of(context.translators, fields)
        translator, code = context.translators[route.label], route.direction
        menus, fills = directions.chosen(context.translators, route), fields.get("direction") or not fields.get("entry")
    beam = beam_of(fields)
    fill = {"beam": beam, **menus} if fills or fields.get("fills") else None
    text, changes = (str(fields.get(name) or "") for name in ("text", "interventions"))
    try:
        trace = translator.translate(text, code, beam=int(beam), interventions=_interventions(changes))
    except ValueError as error:
        return {"error": words_of(error), "fill": fill}
    return {**shown(context, trace), "fill": fill}


def route_of(translators: Translators, fields: Mapping) -> Route:
    """Return the model and direction of a link's fields, or of the menus'. The first of all where neither is served."""
    code, checkpoint, entry, pair = (
        str(fields.get(name) or "") for name in ("direction", "checkpoint", "entry", "pair")
    )
    if code or not entry:
        return translators.find(code, checkpoint) or translators.routes[0]
    return directions.route_of(translators, entry, pair)


def beam_of(fields: Mapping) -> str:
    """Return the width of the beam; greedy where it is none of the menu's."""
    beam = str(fields.get("beam") or "")
    return beam if beam in SEARCHES else "1"


def _interventions(text: str) -> Interventions:
    try:
        return interventions_file.from_text(text)
    except ValueError as error:
        raise Refusal("The change to the model in this link cannot be read: {why}.", why=str(error)) from error


def shown(context: Context, trace: TranslationTrace) -> dict:
    """Return the line of a translation, and its map for the explorer. The trace is kept for later questions."""
    context.traces.add(trace)
    return {**line(context.translators, trace), "map": sent(context.translators, trace)}


def line(translators: Translators, trace: TranslationTrace) -> dict:
    """Return what the line above the tabs shows of a translation."""
    translator = translators.made(trace.digest)
    if translator is None:
        raise not_served(trace.checkpoint)
    return {
        **summarise(trace, translator, registry.lacking(trace, translator)),
        "doubtful": doubtful(trace, translator),
        "mismatch": directions.mismatch(translators, trace),
    }


@question(lane="translate")
def page_doubts(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the doubts about a translation: a pass of the model, which the page asks for once its map is painted."""
    trace = context.trace(address)
    return {"doubts": doubts(trace, context.translators.made(trace.digest))}


def doubtful(trace: TranslationTrace, translator: Translator | None) -> bool:
    """Return whether there can be doubts: about a free translation by a plain model whose signals were measured."""
    scene = Scene(trace, made_by=translator)
    given = trace.interventions or (trace.decoding and trace.decoding.given)
    long = len(trace.source_ids) + len(trace.target_ids) > LONGEST
    return not (translator is None or given or long) and TRANSFORMER.is_met(scene) and bool(scene.trust.shown)


def doubts(trace: TranslationTrace, translator: Translator | None) -> list[dict]:
    """Return the signals that speak up about a translation: {text, right, about, step, link}. It takes a pass of the
    model. Only signals that passed their measurement speak."""
    if not doubtful(trace, translator):
        return []
    scene, answers = Scene(trace, made_by=translator), []
    for name in scene.trust.alarms(scene.reading):
        signal, found = SIGNALS[name], scene.trust.best(name)
        place = signal.place(scene.reading)
        tokens = trace.source_tokens if signal.in_source else trace.target_tokens
        step = None if signal.in_source or not place else place[0]
        others = () if step is None else (t for t in trace.top_tokens[step] if t != trace.target_tokens[step])
        answers.append(
            {
                "text": SAYS[name](word_label([tokens[i] for i in place]), word_label([next(iter(others), "")])),
                "right": say("right in {share}", share=share(found)),
                "about": how_often(found),
                "step": step,
                "link": WHERE[name],
            }
        )
    return answers


def share(found: Found) -> str:
    """Of a signal's alarms, those that were right."""
    return f"{found.right / found.alarms:.0%}" if found.alarms else "–"


def how_often(found: Found) -> Words:
    """How often a signal was right where people or rules had labelled translations."""
    numbers = {
        "share": share(found),
        "n": found.alarms,
        "auroc": f"{found.auroc:.2f}",
        "other": f"{found.baseline_auroc:.2f}",
    }
    if found.on == PROVOKED:
        return say(
            "Right in {share} of its {n} alarms about this model's own translations of sources that lead it astray; "
            "AUROC {auroc}, without a model {other}.",
            **numbers,
        )
    return say(
        "Right in {share} of its {n} alarms about translations that people labelled; AUROC {auroc}, without a model "
        "{other}.",
        **numbers,
    )


@question(lane="page")
def page_direction(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the menus of languages and the example sentences of a direction.

    fields: entry, of the menu of directions; pair, of a model of many languages; recipe, of the visitor's own network.
    """
    if fields.get("entry") == directions.TOY:
        return directions.chosen_toy(directions.recipe_of(fields))
    entry, pair = (str(fields.get(name) or "") for name in ("entry", "pair"))
    route = directions.route_of(context.translators, entry, pair)
    return directions.chosen(context.translators, route)
