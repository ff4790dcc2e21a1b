"""The question of the glossary, whose pictures are of the sentence on the page."""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.trace.address import Address
from attention_atlas.viz.panels.scene import Selection
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.wire.glossary import glossary_payload


@question(lane="page")
def page_glossary(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return what the glossary's pictures show of a translation. The field is selection."""
    trace = context.trace(address)
    selected = Selection.from_plain(fields.get("selection")).clamp(trace)
    return glossary_payload(trace, selected.kind, selected.layer, selected.head, selected.query)
