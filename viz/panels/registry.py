"""The tabs of panels, and their description for the page.

Every module in the folder of a tab (viz/panels/TAB/) defines a Panel named PANEL and is discovered there.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import isgeneratorfunction
from itertools import chain, groupby

from attention_atlas.model.config import ModelConfig
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.translator import Translator
from attention_atlas.viz.panels.panel import Panel
from attention_atlas.viz.panels.scene import Scene, Selection
from attention_atlas.viz.words import Words, say


@dataclass(frozen=True)
class Chapter:
    """Consecutive panels that share one place in the strip of their tab. name: unique in the tab."""

    name: str
    title: Words
    panels: tuple[str, ...]


@dataclass(frozen=True)
class Tab:
    """A tab of panels.

    name    its identifier in the page, and the folder of its panels
    order   the names of its panels, and chapters; panels that are not named come last
    asks    whether the question "why this token?" stands above the panels, and a new question makes them stale
    folded  the label behind which all panels wait, below the tab's first picture
    """

    name: str
    title: Words
    order: tuple[str | Chapter, ...]
    asks: bool = False
    folded: Words | None = None

    def places(self) -> list[tuple[Panel | Chapter, tuple[Panel, ...]]]:
        """Return the places of its strip in order, each a panel or a chapter, with their panels."""
        chapters = {name: place for place in self.order if isinstance(place, Chapter) for name in place.panels}
        groups = groupby(PANELS[self.name], lambda panel: chapters.get(panel.name, panel))
        return [(place, tuple(panels)) for place, panels in groups]


TABS = (
    Tab(
        "why",
        say("Why"),
        (
            "why-tokens",
            "why-parts",
            "why-heads",
            "why-patch",
            Chapter("research", say("For research"), ("why-holds", "why-smallest")),
        ),
        asks=True,
        folded=say("All methods, parts and heads"),
    ),
    Tab("heads", say("Heads"), ("heads-survey", "heads-search", "heads-units", "heads-links", "heads-match")),
    Tab(
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
    Tab(
        "inside",
        say("Inside"),
        (
            "map",
            Chapter("embedding", say("Embedding"), ("embedding", "space")),
            Chapter("attention", say("Attention"), ("projections", "attention")),
            "masks",
            Chapter("layer", say("Layer"), ("heads", "residual", "add-norm", "feed-forward")),
            Chapter("logits", say("Logits"), ("logits", "lenses")),
            Chapter(
                "experiments", say("Experiments"), ("scale", "scoring", "kernels", "plain", "race", "cost", "steer")
            ),
        ),
    ),
    Tab("train", say("Train"), ("batch", "learned", "moments", "surprise")),
    Tab("verify", say("Verify"), ("verify", "bleu")),
)


def load_panels(tab: Tab) -> tuple[Panel, ...]:
    """Import the panels of a tab's folder and return them in the tab's order."""
    folder = importlib.import_module(f"{__package__}.{tab.name}")
    modules = pkgutil.iter_modules(folder.__path__, f"{folder.__name__}.")
    panels = [importlib.import_module(module.name).PANEL for module in modules]
    by_name = {panel.name: panel for panel in sorted(panels, key=lambda panel: panel.name)}
    assert len(by_name) == len(panels), f"two panels of {tab.name} have one name"
    order = (place.panels if isinstance(place, Chapter) else (place,) for place in tab.order)
    named = [by_name.pop(name) for name in chain.from_iterable(order)]
    return (*named, *by_name.values())


def lacking(trace: TranslationTrace, translator: Translator) -> list[dict]:
    """Return the panels that do not apply to a translation and its model, each with the unmet need, JSON-ready."""
    scene = Scene(trace, Selection().clamp(trace), translator)
    return [
        {"name": panel.name, "panel": panel.title, "why": need.message}
        for panels in PANELS.values()
        for panel in panels
        for need in panel.unmet_needs(scene)
    ]


PANELS: dict[str, tuple[Panel, ...]] = {tab.name: load_panels(tab) for tab in TABS}  # by the tab's name


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
        "places": [
            {
                "name": place.name,
                "title": place.title,
                "is_chapter": isinstance(place, Chapter),
                "panels": [_describe_panel(panel, configs) for panel in panels],
            }
            for place, panels in tab.places()
        ],
    }


def _describe_panel(panel: Panel, configs: Sequence[ModelConfig]) -> dict:
    """Return the description of a panel for the page."""
    unchanged = ("name", "title", "look", "section", "paper", "checks_page", "stops")
    return {
        **{name: getattr(panel, name) for name in unchanged},
        "controls": {name: control.to_plain(configs) for name, control in zip(panel.fields, panel.controls)},
        "button": panel.button and {"label": panel.button.label, "id": panel.button.elem_id},
        "streams": isgeneratorfunction(panel.compute),
    }
