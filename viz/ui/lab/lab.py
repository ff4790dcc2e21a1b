"""A tab of the lab: its panels as data, which viz/web/lab/lab.js lays out, with a component for the whole tab.

A panel's content is the answer to a question (viz/questions/panels.py), asked when the panel is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isgeneratorfunction

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.questions.registry import Context
from attention_atlas.viz.ui.component import add_component
from attention_atlas.viz.ui.lab import registry
from attention_atlas.viz.ui.lab.panel import Panel


def build(
    tab: registry.Tab, context: Context, first: TranslationTrace | None, before: Callable[[], dict] | None = None
) -> None:
    """Lay out the panels that the registry has for this tab. before: returns a place of its strip, with a component
    of its own (viz/web/lab/lab.js), that comes first."""
    options = described(tab, context)
    if before:
        options["places"].insert(0, before())
    add_component("lab", plotly=True, elem_id=f"lab-{tab.name}", options=options)


def described(tab: registry.Tab, context: Context) -> dict:
    """Return what the page is told of a tab.

    asks     whether the question stands above the panels (viz/web/why/question.js)
    follows  fields of the page's store; panels ask again when one of them changes (viz/web/store/store.js)
    """
    configs = [translator.config for translator in context.translators.values()]
    return {
        "tab": tab.name,
        "asks": tab.asks,
        "folded": tab.folded,
        "follows": ["address", "asked"] if tab.asks else ["address"],
        "places": [
            {
                "name": place.name,
                "title": place.title,
                "is_chapter": isinstance(place, registry.Chapter),
                "panels": [of_panel(panel, configs) for panel in panels],
            }
            for place, panels in tab.places()
        ],
    }


def of_panel(panel: Panel, configs: Sequence[ModelConfig]) -> dict:
    """Return what the page is told of a panel."""
    return {
        "name": panel.name,
        "title": panel.title,
        "look": panel.look,
        "section": panel.section,
        "paper": panel.paper,
        "controls": {name: control.to_plain(configs) for name, control in zip(panel.fields, panel.controls)},
        "button": panel.again and {"label": panel.again.label, "id": panel.again.elem_id},
        "checks_page": panel.checks_page,
        "streams": isgeneratorfunction(panel.compute),
        "stops": panel.stops,
    }
