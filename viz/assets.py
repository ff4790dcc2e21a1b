"""Which files of viz/web/ each of the page's components is made of."""

from __future__ import annotations

from pathlib import Path

import plotly

WEB = Path(__file__).resolve().parent / "web"
PLOTLY = Path(plotly.__file__).resolve().parent / "package_data" / "plotly.min.js"

LANGUAGE = WEB / "core" / "language.js"  # stands in the page itself
ALONE = WEB / "alone" / "alone.js"  # what an explorer outside the app begins with
CORE = ("core/shared.js", "core/rpc.js")  # what every component's scripts need, before all else
PICTURE = ("picture/drawing.js", "picture/copy.js")  # what whoever shows pictures needs; their style is the page's

# A component's scripts in the order in which they need each other; the last one registers it under its name.
SCRIPTS = {
    "explorer": (
        *PICTURE,
        *(f"explorer/{name}.js" for name in ("trace", "model", "state", "overlays", "colouring", "words", "controls")),
        *(
            f"explorer/views/{name}.js"
            for name in ("atlas", "frame", "detail", "lines", "text", "compare", "views", "picture")
        ),
        *(
            f"explorer/{name}.js"
            for name in ("wire/echo", "wire/requests", "actions", "cut", "help", "keys", "explorer")
        ),
    ),
    "stepper": (
        *PICTURE,
        "explorer/trace.js",
        "explorer/views/atlas.js",
        *(f"stepper/{name}.js" for name in ("path", "tokens", "heads", "panels", "beam", "transport", "stepper")),
    ),
    "panel": (
        *PICTURE,
        *(f"lab/{name}.js" for name in ("scroll", "maps", "blocks", "cells")),
        "why/kept.js",
        *(f"lab/{name}.js" for name in ("heads", "matrix", "exports")),
        "why/words.js",
        "heads/survey.js",
        "heads/links.js",
        "lab/panel.js",
    ),
    "train": (*PICTURE, *(f"train/{name}.js" for name in ("settings", "maps", "curves", "train"))),
    "question": ("why/kept.js", "why/question.js"),
    "prose": ("page/prose.js",),
    "examples": ("present/way.js", "page/examples.js"),
    "languages": ("page/languages.js",),
    "translation": ("page/translation.js",),
    "guide": ("tour/guide.js",),
}
# What is fetched when a tour or a presentation is started, each with the style sheet beside it.
TOUR = WEB / "tour" / "tour.js"
PRESENTATION = WEB / "present" / "present.js"


# Components above the tabs. Their style sheets are small, and if one came after its component had drawn, all below
# would jump.
EARLY = ("prose", "languages", "examples", "translation", "guide")


def scripts(component: str) -> tuple[Path, ...]:
    """Everything that a component runs, in order, without Plotly.js."""
    return tuple(WEB / name for name in (*CORE, *SCRIPTS[component]))


def style(component: str) -> Path:
    """Its style sheet: beside its own script, under the same name."""
    return (WEB / SCRIPTS[component][-1]).with_suffix(".css")


def picture_style() -> str:
    """The style sheet of PICTURE."""
    return (WEB / PICTURE[-1]).with_suffix(".css").read_text(encoding="utf-8")


def page_style() -> str:
    """What is part of the page itself: its own style sheet, that of pictures, and those of EARLY."""
    own = (WEB / "page" / "page.css", *map(style, EARLY))
    return picture_style() + "".join(path.read_text(encoding="utf-8") for path in own)
