"""Questions of the head of the page."""

from __future__ import annotations

from collections.abc import Mapping

from model.trace import interventions_file
from model.trace.address import Address
from model.trace.directions import Route
from model.trace.interventions import Interventions
from model.trace.language import Refusal, words_of
from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.questions.registry import Answer, Context, question
from viz.ui import direction
from viz.ui.desk.doubts import doubtful, doubts
from viz.ui.desk.sent import sent
from viz.ui.lab import registry
from viz.ui.selection import serving
from viz.wire.summary import summarise
from viz.words import say

SEARCHES = {"1": say("greedy"), "5": say("beam 5")}  # the width of the beam -> its label in the menu


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
    if fields.get("entry") == direction.TOY or fields.get("recipe") is not None:
        return translated_by_toy(context, fields)
    route = route_of(context.translators, fields)
    is_link = fields.get("direction") or not fields.get("entry")
    fill = None
    if is_link or fields.get("fills"):
        fill = {"beam": beam_of(fields), **direction.chosen(context.translators, route)}
    try:
        trace = translated(context.translators, route, fields)
    except ValueError as error:
        return {"error": words_of(error), "fill": fill}
    return {**shown(context, trace), "fill": fill}


def translated_by_toy(context: Context, fields: Mapping) -> dict:
    """page_translate() by the visitor's own network."""
    recipe = direction.recipe_of(fields)
    toy, _ = context.traces.translator_of(Address("", recipe=recipe))
    text, changes = (str(fields.get(name) or "") for name in ("text", "interventions"))
    fill = {"beam": beam_of(fields), **direction.chosen_toy(recipe)}
    try:
        trace = toy.translate(text, beam=int(beam_of(fields)), interventions=_interventions(changes))
    except ValueError as error:
        return {"error": words_of(error), "fill": fill}
    return {**shown(context, trace), "fill": fill if fields.get("direction") or fields.get("fills") else None}


def route_of(translators: Translators, fields: Mapping) -> Route:
    """Return the model and direction of a link's fields, or of the menus'. The first of all where neither is served."""
    code, checkpoint, entry, pair = (
        str(fields.get(name) or "") for name in ("direction", "checkpoint", "entry", "pair")
    )
    if code or not entry:
        return translators.find(code, checkpoint) or translators.routes[0]
    return direction.route_of(translators, entry, pair)


def beam_of(fields: Mapping) -> str:
    """Return the width of the beam; greedy where it is none of the menu's."""
    beam = str(fields.get("beam") or "")
    return beam if beam in SEARCHES else "1"


def translated(translators: Translators, route: Route, fields: Mapping) -> TranslationTrace:
    """Translate the fields' text. ValueError, in words, for what cannot be translated."""
    text, changes = (str(fields.get(name) or "") for name in ("text", "interventions"))
    return translators[route.label].translate(
        text, route.direction, beam=int(beam_of(fields)), interventions=_interventions(changes)
    )


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
    translator = serving(translators, trace)
    return {
        **summarise(trace, translator, registry.lacking(trace, translator)),
        "doubtful": doubtful(trace, translator),
        "mismatch": direction.mismatch(translators, trace),
    }


@question(lane="translate")
def page_doubts(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the doubts about a translation. The page asks once its map is painted: the answer takes a pass of the
    model."""
    trace = context.trace(address)
    return {"doubts": doubts(trace, context.translators.made(trace.digest))}


@question(lane="page")
def page_direction(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the menus of languages and the example sentences of a direction.

    fields: entry, of the menu of directions; pair, of a model of many languages; recipe, of the visitor's own network.
    """
    if fields.get("entry") == direction.TOY:
        return direction.chosen_toy(direction.recipe_of(fields))
    entry, pair = (str(fields.get(name) or "") for name in ("entry", "pair"))
    route = direction.route_of(context.translators, entry, pair)
    return direction.chosen(context.translators, route)
