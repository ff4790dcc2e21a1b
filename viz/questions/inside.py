"""Questions of the picture in the tab Inside: one stage of the model each (viz/panels/picture.py)."""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.nets.networks import check_transformer
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import Side
from attention_atlas.viz.panels import picture
from attention_atlas.viz.panels.scene import Scene
from attention_atlas.viz.questions.panels import scene_of
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.wire import fields as field


def _layer(scene: Scene, fields: Mapping) -> dict:
    side = field.read_entry(fields, "side", {side.value: side for side in Side})
    return picture.layer(scene, side, field.read_integer(fields, "layer"))


def _head(scene: Scene, fields: Mapping) -> dict:
    (place,) = field.read_list({"head": [fields.get("head")]}, "head", field.parse_head)
    first = field.read_integer(fields, "first") if "first" in fields else None
    return picture.head(scene, *place, field.read_integer(fields, "query"), first)


def _embedding(scene: Scene, fields: Mapping) -> dict:
    return picture.embedding(scene, field.read_entry(fields, "side", {side.value: side for side in Side}))


def _memory(scene: Scene, fields: Mapping) -> dict:
    return picture.memory(scene, field.read_integer(fields, "step"))


def _output(scene: Scene, fields: Mapping) -> dict:
    return picture.output(scene, field.read_integer(fields, "step"))


def _weight(scene: Scene, fields: Mapping) -> dict:
    (place,) = field.read_list({"head": [fields.get("head")]}, "head", field.parse_head)
    query, key = field.read_integer(fields, "query"), field.read_integer(fields, "key")
    return picture.follow_weight(scene, *place, query, key)


def _probability(scene: Scene, fields: Mapping) -> dict:
    return picture.follow_probability(scene, field.read_integer(fields, "step"), field.read_integer(fields, "token"))


STAGES = {
    "layer": _layer,  # side, layer
    "head": _head,  # head ([kind, layer, head]), query, and first, of the window of keys
    "embedding": _embedding,  # side
    "memory": _memory,  # step
    "output": _output,  # step
    "weight": _weight,  # head, query, key
    "probability": _probability,  # step, token (an id)
}


@question(lane="model")
def page_inside(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return one stage of the picture. The fields are stage (of STAGES) and that stage's own, all counted from 0."""
    answer, scene = field.read_entry(fields, "stage", STAGES), scene_of(context, address, fields)
    check_transformer(scene.translator.model)
    return {"key": scene.trace.key, "stage": answer(scene, fields)}
