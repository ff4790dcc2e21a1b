"""The tabs of panels, and their description for the page.

Every module in a folder of panels (viz/panels/FOLDER/) defines a Panel named PANEL and is discovered there. A tab shows
the panels of its folders in groups.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import isgeneratorfunction

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.trace.directions import Route, language_of, parse_direction
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.model.translators import Translators
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.words import Words, say


@dataclass(frozen=True)
class Group:
    """Panels that stand under one name in the strip of their tab. name: unique in the tab."""

    name: str
    title: Words
    panels: tuple[str, ...]


@dataclass(frozen=True)
class Tab:
    """A tab of panels.

    name     its identifier in the page
    groups   of its panels, in the strip's order. A panel that no group names is the last one of the group with the name
             of its folder, else of the tab
    folders  of its panels; () stands for the folder with the tab's name
    asks     whether the question "why this token?" stands above the panels, and a new question makes them stale
    folded   the label behind which all panels wait, below the tab's first picture
    """

    name: str
    title: Words
    groups: tuple[Group, ...]
    folders: tuple[str, ...] = ()
    asks: bool = False
    folded: Words | None = None

    def grouped(self) -> list[tuple[Group, tuple[Panel, ...]]]:
        """Return its groups in order, each with its panels."""
        members: dict[str, list[Panel]] = {group.name: [] for group in self.groups}
        named = {name: group.name for group in self.groups for name in group.panels}
        order = [name for group in self.groups for name in group.panels]
        for folder in self.folders or (self.name,):
            default = folder if folder in members else self.groups[-1].name
            for panel in PANELS[folder]:
                members[named.get(panel.name, default)].append(panel)
        for panels in members.values():
            panels.sort(key=lambda panel: order.index(panel.name) if panel.name in named else len(order))
        return [(group, tuple(members[group.name])) for group in self.groups]

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Its panels in order."""
        return tuple(panel for _, panels in self.grouped() for panel in panels)


TABS = (
    Tab(
        "why",
        say("Why"),
        (
            Group("contributions", say("Contributions"), ("why-tokens", "why-parts", "why-heads")),
            Group("experiments", say("Experiments"), ("why-patch", "why-circuit")),
            Group("research", say("For research"), ("why-holds", "why-smallest")),
        ),
        asks=True,
        folded=say("All methods, parts and heads"),
    ),
    Tab(
        "inside",
        say("Inside"),
        (
            Group("overview", say("Overview"), ("map",)),
            Group("embedding", say("Embedding"), ("embedding", "space")),
            Group("attention", say("Attention"), ("projections", "attention", "masks", "heads")),
            Group("layer", say("Layer"), ("residual", "add-norm", "feed-forward")),
            Group("output", say("Output"), ("logits", "lenses")),
            Group("experiments", say("Experiments"), ("scale", "scoring", "kernels", "plain", "race", "cost", "steer")),
        ),
    ),
    Tab(
        "train",
        say("Train"),
        (
            Group("model", say("This model"), ("batch", "learned", "moments", "surprise")),
            Group("recurrent", say("Predecessors"), ("gates", "additive", "recurrent")),
        ),
    ),
    Tab(
        "more",
        say("More"),
        (
            Group("heads", say("Heads"), ("heads-survey", "heads-search", "heads-units", "heads-links", "heads-match")),
            Group(
                "positions",
                say("Positions"),
                (
                    "position-table",
                    "position-curves",
                    "position-similarity",
                    "position-rotation",
                    "position-bias",
                    "position-schemes",
                    "break",
                ),
            ),
            Group("verify", say("Verify"), ("verify", "bleu")),
        ),
        folders=("heads", "positions", "verify"),
    ),
)


def load_panels(folder: str) -> tuple[Panel, ...]:
    """Import the panels of a folder and return them by name."""
    package = importlib.import_module(f"{__package__}.{folder}")
    modules = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    panels = sorted((importlib.import_module(module.name).PANEL for module in modules), key=lambda panel: panel.name)
    assert len({panel.name for panel in panels}) == len(panels), f"two panels of {folder} have one name"
    return tuple(panels)


def tab_of(panel: Panel) -> Tab:
    """Return the tab that shows a panel."""
    return next(tab for tab in TABS if panel in tab.panels)


def lacking(trace: TranslationTrace, translator: Translator) -> list[dict]:
    """Return the panels that do not apply to a translation and its model, each with the unmet need, JSON-ready."""
    scene = Scene(trace, Selection().clamp(trace), translator)
    return [
        {"name": panel.name, "panel": panel.title, "why": need.message}
        for tab in TABS
        for panel in tab.panels
        for need in panel.unmet_needs(scene)
    ]


def route_with(panel: Panel, trace: TranslationTrace, translators: Translators) -> Route | None:
    """Return a route whose model can show a panel, preferably of the trace's direction, else of its source language;
    None if no model can."""

    def distance(route: Route) -> tuple[bool, bool]:
        source, _ = parse_direction(trace.direction)
        return route.direction != trace.direction, language_of(route.source) != language_of(source)

    for route in sorted(translators.routes, key=distance):
        scene = Scene(replace(trace, direction=route.direction), made_by=translators[route.label])
        if not panel.unmet_needs(scene):
            return route
    return None


PANELS: dict[str, tuple[Panel, ...]] = {  # by the folder's name
    folder: load_panels(folder) for tab in TABS for folder in tab.folders or (tab.name,)
}


def describe_tab(tab: Tab, configs: Sequence[ModelConfig]) -> dict:
    """Return the description of a tab for the page (viz/web/lab/lab.js). configs: of the models served.

    asks     whether the question stands above the panels (viz/web/why/question.js)
    follows  fields of the page's store; panels ask again when one of them changes (viz/web/store/store.js)
    """
    return {
        "tab": tab.name,
        "asks": tab.asks,
        "folded": tab.folded,
        "follows": ["address", "asked"] if tab.asks else ["address"],
        "groups": [
            {
                "name": group.name,
                "title": group.title,
                "panels": [_describe_panel(panel, configs) for panel in panels],
            }
            for group, panels in tab.grouped()
        ],
    }


def _describe_panel(panel: Panel, configs: Sequence[ModelConfig]) -> dict:
    """Return the description of a panel for the page."""
    unchanged = ("name", "title", "look", "method", "section", "paper", "checks_page", "stops")
    return {
        **{name: getattr(panel, name) for name in unchanged},
        "controls": {name: control.to_plain(configs) for name, control in zip(panel.fields, panel.controls)},
        "button": panel.button and {"label": panel.button.label, "id": panel.button.elem_id},
        "streams": isgeneratorfunction(panel.compute),
    }
