"""The explorer tab: every head of the model on one screen. The page draws; the server sends a payload a translation."""

from __future__ import annotations

from model.trace.translation import TranslationTrace
from viz.export.formats import FORMATS
from viz.questions.registry import Context
from viz.ui import overlays
from viz.ui.component import add_component
from viz.ui.desk.sent import sent
from viz.ui.experiments import beside
from viz.ui.selection import most_telling
from viz.wire.summary import INVITATION


def build(context: Context, first: TranslationTrace | None) -> None:
    """Lay out the tab. Another translation comes with the answer of page_translate, through the page's store."""
    add_explorer(
        sent(context.translators, first, most_telling(first)) if first else {"invitation": INVITATION}, model=True
    )


def add_explorer(value: dict, *, model: bool = False) -> None:
    """Add the explorer of a payload. model: whether a model answers its questions."""
    add_component(
        "explorer",
        value,
        plotly=True,
        options={
            "formats": [{"name": name, "about": form.about} for name, form in FORMATS.items()],
            **overlays.options(model=model),
            "pairs": beside.offered() if model else {},
        },
        elem_id="explorer",
    )
