"""What a panel of the tab "Why" lets people take away: its picture, and the numbers of the whole answer."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from model.analysis.why import split
from model.analysis.why.attribution import answer
from viz.export.explained import Explained
from viz.export.formats import FORMATS
from viz.ui.lab.panel import Scene

EXPORT = "export"


def exports() -> dict:
    """The buttons, as a block. A panel that has it has take() as its act EXPORT."""
    return {"type": "exports", "act": EXPORT, "formats": [
        {"cell": "token", "text": name, "about": form.about} for name, form in FORMATS.items() if form.why]}


def take(scene: Scene, data: Mapping[str, object]) -> list[dict]:
    """The file of the format that the page names."""
    name = data.get("format")
    if name not in FORMATS or not FORMATS[name].why:
        raise ValueError(f"unknown export {name!r}")
    written = FORMATS[name].why.write(Explained(answer(scene.case), split.parts(scene.case)))
    return [{"type": "download", "file": f"why-step{scene.question.step + 1}.{name}",
             "media": FORMATS[name].media_type, "data": base64.b64encode(written).decode("ascii")}]
