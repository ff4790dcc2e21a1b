"""What a panel of the tab "Why" lets people take away: its picture, and the numbers of the whole answer."""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.analysis.why import split
from attention_atlas.model.analysis.why.attribution import answer
from attention_atlas.model.trace.why.evidence import Unit
from attention_atlas.viz.export.explained import Explained
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire.fields import entry
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.words import Words

EXPORT = "export"


def exports(
    given: Mapping[str, object] | None = None, *, more: Mapping[str, Words] | None = None, picture: bool = True
) -> dict:
    """The buttons, as a block. A panel that has it has an act EXPORT, which answers with file(). given: what the page
    sends that act besides, where the panel's answer would take too long to be found again; more: formats that are the
    panel's own, and what they are; picture: whether there is a grid to be drawn as one."""
    formats = {name: form.about for name, form in FORMATS.items() if form.why} | dict(more or {})
    return {
        "type": "exports",
        "act": EXPORT,
        "data": dict(given or {}),
        "picture": picture,
        "formats": [{"cell": "token", "text": name, "about": about} for name, about in formats.items()],
    }


def matrix_file(scene: Scene, data: Mapping[str, object]) -> File:
    """The matrix and the parts in the format that the page names."""
    return file(data, Explained.of(answer(scene.case), split.parts(scene.case)), about_step("why", scene))


def about_step(name: str, scene: Scene) -> str:
    """A file's name for an answer about the pinned token."""
    return f"{name}-step{scene.question.step + 1}"


def file(data: Mapping[str, object], found: Explained, name: str) -> File:
    """An answer in the format that the page names. ValueError for one that there is not."""
    form = entry(data, "format", {key: form for key, form in FORMATS.items() if form.why})
    return File(f"{name}.{data['format']}", form.media_type, form.why.write(found))


def translation_fields(scene: Scene) -> dict:
    """What was translated, for the file of an experiment; model.trace.why.plain makes it JSON-ready."""
    trace = scene.trace
    return {"text": trace.source_text, "translation": trace.translation, "target_tokens": trace.target_tokens}


def question_fields(scene: Scene) -> dict:
    """The same with what was asked."""
    return {**translation_fields(scene), "question": scene.question, "metric": scene.case.metric(), "unit": Unit.NATS}
