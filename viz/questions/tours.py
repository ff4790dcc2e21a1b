"""Questions of the guided tours and the worksheets."""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.trace.address import Address
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.tours import guide
from attention_atlas.viz.tours.tour import tours


@question(lane="model")
def page_stop(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return a stop of a tour with its measured claims. The fields are tour, stop (from 1), direction ("" for the
    page's), and optionally the beginning of a digest of a model that has to be served."""
    direction = None if address is None else address.direction
    return guide.stop_payload(context.translators, tours(), fields, direction)


@question(lane="model")
def page_task(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return a question of a worksheet. The fields are text, direction, checkpoint, ask (the kind of question),
    word."""
    return guide.task(context.translators, fields)


@question(lane="page")
def page_workshop(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the choices for a workshop link: models with the names of their tours, and the tours' titles."""
    return guide.workshop_options(context.translators, tours())


@question(lane="page")
def page_offer(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the choices for a worksheet: tours with questions, directions, and kinds of questions."""
    return guide.worksheet_options(context.translators, tours())
