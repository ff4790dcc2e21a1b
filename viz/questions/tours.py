"""Questions of the tours and the worksheets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from attention_atlas.model.trace.address import Address
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.tours import guide
from attention_atlas.viz.tours.tour import tours

every = cache(tours)


@question(lane="model")
def page_stop(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """A stop of a tour, as guide.answered() says. fields: tour, stop (from 1), direction; "" for the page's own."""
    direction = None if address is None else address.direction
    return guide.answered(context.translators, every(), fields, direction)


@question(lane="model")
def page_task(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """A question of a worksheet. fields: text, direction, checkpoint, ask (its kind), word."""
    return guide.task(context.translators, fields)


@question(lane="page")
def page_offer(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the choices for a worksheet: tours that ask, directions, and kinds of questions."""
    return guide.sheets(context.translators, every())
