"""Downloads of the panels of the tab "Why": the buttons, and the files of an answer."""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.analysis.why import attribution, split
from attention_atlas.model.trace.why.evidence import Unit, to_jsonable
from attention_atlas.viz.export.explained import Explained
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.wire.fields import read_entry
from attention_atlas.viz.wire.file import File
from attention_atlas.viz.words import Words

EXPORT = "export"


def exports(
    data: Mapping[str, object] | None = None, *, more: Mapping[str, Words] | None = None, picture: bool = True
) -> dict:
    """Return the block of download buttons. Its panel has an action EXPORT that returns file().

    data     what the page sends back with the action, for answers that take too long to compute again
    more     further formats of this panel, name -> description
    picture  whether the panel has a grid that can be downloaded as a picture
    """
    formats = {name: form.about for name, form in FORMATS.items() if form.why} | dict(more or {})
    return {
        "type": "exports",
        "act": EXPORT,
        "data": dict(data or {}),
        "picture": picture,
        "formats": [{"cell": "token", "text": name, "about": about} for name, about in formats.items()],
    }


def matrix_file(scene: Scene, data: Mapping[str, object]) -> File:
    """Return the attributions and the parts in the requested format."""
    answer = Explained.of(attribution.attribute_case(scene.case), split.split_case(scene.case))
    return _write(data, answer, about_step("why", scene))


def file(data: Mapping[str, object], fields: Mapping[str, object], name: str) -> File:
    """Return an experiment's fields (for to_jsonable()) in the format data["format"]. A Refusal for an unknown one."""
    return _write(data, Explained(to_jsonable(fields)), name)


def _write(data: Mapping[str, object], answer: Explained, name: str) -> File:
    form = read_entry(data, "format", {key: form for key, form in FORMATS.items() if form.why})
    return File(f"{name}.{data['format']}", form.media_type, form.why(answer))


def about_step(name: str, scene: Scene) -> str:
    """Return the file name of an answer about the pinned token."""
    return f"{name}-step{scene.question.step + 1}"


def translation_fields(scene: Scene) -> dict:
    """Return the fields of an experiment's file that name the translation, for to_jsonable()."""
    trace = scene.trace
    return {"text": trace.source_text, "translation": trace.translation, "target_tokens": trace.target_tokens}


def question_fields(scene: Scene) -> dict:
    """Return translation_fields() with the question, its metric and the unit."""
    return {**translation_fields(scene), "question": scene.question, "metric": scene.case.metric(), "unit": Unit.NATS}
