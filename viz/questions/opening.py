"""The page's opening: an example and its translation, prepared when the app starts.

The page opens with the first route. Browsers set to English open with a route from English, if there is one: theirs is
served beside the page (viz/server/web_files.py), which holds the other.
"""

from __future__ import annotations

from attention_atlas.model.trace.directions import Route, language_of
from attention_atlas.model.translators import Translators
from attention_atlas.viz import directions
from attention_atlas.viz.explorer.explorer import explorer_payload, opening_selection
from attention_atlas.viz.questions import header
from attention_atlas.viz.questions.registry import Context

LANGUAGE = "en"  # of the browsers with an opening of their own


def own_route(translators: Translators) -> Route | None:
    """Return the route with which browsers set to LANGUAGE open, preferably into the language that the first route
    reads; None if that is the first route, or nothing reads LANGUAGE."""
    first = translators.routes[0]
    reading = [
        route
        for route in translators.routes
        if language_of(route.source) == LANGUAGE and directions.sentences(translators, route)
    ]
    if first in reading:
        return None
    return min(reading, key=lambda route: language_of(route.target) != language_of(first.source), default=None)


def describe(context: Context, route: Route) -> dict:
    """Translate the first example of a route, and return what the page shows of it, JSON-ready: its text, the entry of
    the menu, and the values of the components examples, translation and explorer. The last two are missing if there is
    no example.

    Raises ValueError, naming the model and the example, if the translation fails.
    """
    translators = context.translators
    model = translators[route.label]
    text = next(iter(directions.sentences(translators, route)), "")
    menus = {
        "text": text,
        "entry": directions.entry_of(translators, route),
        "examples": directions.describe_route(translators, route),
    }
    if not text:
        return menus
    try:
        model.translate(text.split()[0], route.direction)  # warm up: the first pass of a process is slow
        trace = model.translate(text, route.direction)
    except ValueError as error:
        raise ValueError(f"the example {text!r} of {model.name}: {error}") from error
    context.traces.add(trace)
    return {
        **menus,
        # Its warnings are computed in advance.
        "translation": {**header.line(translators, trace), "doubts": header.warnings_about(trace, model)},
        "explorer": explorer_payload(translators, trace, opening_selection(translators, trace)),
    }
