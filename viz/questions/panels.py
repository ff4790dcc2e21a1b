"""Questions of the panels of the lab."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping

from model.trace.address import Address
from model.trace.translation import TranslationTrace
from viz.questions.registry import Answer, Context, question
from viz.ui.asked import Asked
from viz.ui.desk import fields as field
from viz.ui.desk.scene import Scene
from viz.ui.lab.panel import Panel
from viz.ui.lab.registry import PANELS
from viz.ui.session import Selection
from viz.wire import blocks
from viz.wire.summary import INVITATION
from viz.words import Words, say

EMPTY = {"blocks": [blocks.text(INVITATION)]}  # while nothing is translated


@question(lane="model")
def page_panel(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the content of a panel: {blocks, about, lacks, controls}. A panel that computes in parts yields one with
    "more" for each part, and {"more": False} at the end.

    fields: panel (its name), controls (name -> value), selection, asked, and drawn for a panel that checks the page.
    """
    panel = field.entry(fields, "panel", by_name())
    if address is None:
        return EMPTY
    scene, values = scene_of(context, address, fields), values_of(panel, fields)
    missing = panel.missing(scene)
    frame = {
        "about": about(scene.trace),
        "lacks": bool(missing),
        "controls": dict(zip(panel.fields, panel.fitted(scene, values))),
    }
    if missing:
        return {"blocks": missing, **frame}
    content = panel.content(scene, *values)
    return _in_parts(content, frame) if isinstance(content, Iterator) else {"blocks": content, **frame}


def _in_parts(content: Iterator, frame: dict) -> Generator[dict]:
    for found in content:
        yield {"blocks": found, **frame, "more": True}
    yield {"more": False}


@question(lane="model")
def page_panel_act(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the blocks for a slot of a panel. fields: as in page_panel, act (its name), and data from the block."""
    panel = field.entry(fields, "panel", by_name())
    if address is None:
        return EMPTY
    scene = scene_of(context, address, fields)
    data = {**_data(fields), "act": fields.get("act")}
    return {"blocks": panel.act(scene, data, *values_of(panel, fields)), "about": about(scene.trace)}


@question(lane="model")
def page_panel_fill(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return {fill}, the new text of a panel's line. fields: as in page_panel, and data from the block."""
    panel = field.entry(fields, "panel", {name: one for name, one in by_name().items() if one.fills})
    scene = scene_of(context, address, fields)
    return {"fill": panel.given(panel.fills, scene, _data(fields), *values_of(panel, fields))}


def scene_of(context: Context, address: Address | None, fields: Mapping) -> Scene:
    """Return the scene of a question. fields: selection and asked, as the page keeps them, and drawn."""
    trace = context.trace(address)
    return Scene(
        trace,
        Selection.from_plain(fields.get("selection")).fitted(trace),
        context.translators.made(trace.digest),
        Asked.from_plain(fields.get("asked")),
        context.means,
        context.translators,
        fields.get("drawn"),
    )


def by_name() -> dict[str, Panel]:
    """All panels."""
    return {panel.name: panel for panels in PANELS.values() for panel in panels}


def _data(fields: Mapping) -> Mapping:
    data = fields.get("data")
    return data if isinstance(data, dict) else {}


def values_of(panel: Panel, fields: Mapping) -> list[object]:
    """Return the values of a panel's controls; for one that the page leaves out, its start."""
    values = fields.get("controls")
    values = values if isinstance(values, dict) else {}
    return [values.get(name, control.start) for name, control in zip(panel.fields, panel.controls)]


def about(trace: TranslationTrace) -> Words:
    """Which translation a panel is about, and how it was decoded."""
    return say(
        "{source} → {target} · decoding: {how}",
        source=shortened(trace.source_text),
        target=shortened(trace.translation) or say("(nothing)"),
        how=trace.decoded_by,
    )


def shortened(text: str, limit: int = 60) -> str:
    """A text of at most this many characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
