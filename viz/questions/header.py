"""Questions of the head of the page."""

from __future__ import annotations

from collections.abc import Mapping

from model.trace.address import Address
from viz.questions.registry import Answer, Context, question
from viz.ui import direction
from viz.ui.desk.doubts import doubts


@question(lane="translate")
def page_doubts(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the doubts about a translation. The page asks once its map is painted: the answer takes a pass of the
    model."""
    trace = context.trace(address)
    return {"doubts": doubts(trace, context.translators.made(trace.digest))}


@question(lane="page")
def page_direction(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the menus of languages and the example sentences of a direction.

    fields: entry, of the menu of directions; pair, of a model of many languages.
    """
    entry, pair = (str(fields.get(name) or "") for name in ("entry", "pair"))
    route = direction.route_of(context.translators, entry, pair)
    return direction.chosen(context.translators, route)
