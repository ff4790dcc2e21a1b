"""Questions of the tab "Why"."""

from __future__ import annotations

from collections.abc import Mapping

from model.trace.address import Address
from viz.questions.panels import scene_of
from viz.questions.registry import Answer, Context, question
from viz.ui.lab import frame
from viz.wire.summary import INVITATION


@question(lane="model")
def page_why(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the pinned token, its contrast, and the measured headline (frame.answered). fields: asked, selection."""
    return {"invitation": INVITATION} if address is None else frame.answered(scene_of(context, address, fields))


@question(lane="translate")
def page_ask(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {asked}: the pinned token and its contrast, for the page to keep. Refused for what cannot be asked.

    fields: step, and what the token is compared with: token (an id), text, or alone; asked, what was asked before.
    """
    return frame.asked_about(scene_of(context, address, fields), fields)
