"""Questions of the tab Attention: maps, overlays, exported files, cut edges, and a second sentence."""

from __future__ import annotations

from collections.abc import Mapping

from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.language import Refusal
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.explorer import compare, cut, overlays
from attention_atlas.viz.explorer.explorer import explorer_payload
from attention_atlas.viz.export.formats import FORMATS
from attention_atlas.viz.maps.reduce import View, label_rows_by_both, score_map
from attention_atlas.viz.questions.panels import scene_of
from attention_atlas.viz.questions.registry import Answer, Context, question
from attention_atlas.viz.questions.traces import weight_bytes
from attention_atlas.viz.wire import fields as field
from attention_atlas.viz.wire.file import File, check_size
from attention_atlas.viz.wire.payload import MAX_BYTES, block, descriptor, thumbnails
from attention_atlas.viz.wire.tiles import strip, tiles


@question(lane="page")
def page_layers(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return thumbnails of kinds and blocks of layers, up to about 1 MB; the page asks again for the rest. A kind with
    large maps has thumbnails of one layer only.

    The fields are thumbnails (kinds), wanted ([kind, layer] each), strips ([kind, layer] of a large kind).
    """
    trace = context.trace(address)
    fields = {"thumbnails": [], "strips": [], "wanted": [], **fields}
    strips = [strip(trace, kind, layer) for kind, layer in field.read_list(fields, "strips", field.parse_layer)[:1]]
    small = [thumbnails(trace, kind) for kind in dict.fromkeys(field.read_list(fields, "thumbnails", AttentionKind))]
    size, blocks = sum(len(kind["data"]) for kind in small), []
    for kind, layer in field.read_list(fields, "wanted", field.parse_layer):
        if size > MAX_BYTES:
            break
        blocks.append(block(trace, kind, layer, layer + 1))
        size += len(blocks[-1]["data"])
    return {"key": trace.key, "layers": blocks, "thumbnails": small, "strips": strips}


@question(lane="page")
def page_tiles(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return tiles of a head's large map. The fields are head ([kind, layer, head]) and wanted ([level, row, column]
    each)."""
    trace = context.trace(address)
    numbers = [tuple(field.read_integers({"tile": tile}, "tile")) for tile in field.read_list(fields, "wanted", list)]
    return {"key": trace.key, "tiles": tiles(trace, *_head_of(trace, fields), numbers)}


@question(lane="page")
def page_cell(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the exact weight of a cell, which a tile rounds to one byte. The fields are head ([kind, layer, head]),
    row and column."""
    trace = context.trace(address)
    kind, layer, head = _head_of(trace, fields)
    row, column = field.read_integer(fields, "row"), field.read_integer(fields, "column")
    weights = trace.maps(kind).weights[layer, head]
    if not (0 <= row < len(weights) and 0 <= column < weights.shape[1]):
        raise Refusal("The page asked for something unknown: {what}", what=f"cell {(row, column)}")
    value = float(weights[row, column])
    weight = {"head": [kind.value, layer, head], "row": row, "column": column, "value": value}
    return {"key": trace.key, "cell": weight}


def _head_of(trace: TranslationTrace, fields: Mapping) -> tuple[AttentionKind, int, int]:
    (place,) = field.read_list({"head": [fields.get("head")]}, "head", field.parse_head)
    View(*place).used_heads(trace)  # raises ValueError
    return place


@question(lane="model")
def page_overlay(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return a map to draw instead of attention.

    The fields are overlay (its name), view, as (the page's name for the answer), selection and asked.
    """
    scene, name, view = scene_of(context, address, fields), fields.get("overlay"), View.from_plain(fields.get("view"))
    score_map = overlays.overlay_map(name, scene, view)
    payload = descriptor(name, overlays.OVERLAYS[name].title, view.kind, score_map)
    return {"key": scene.trace.key, "overlay": payload, "as": fields.get("as")}


@question(lane="model")
def page_export(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return a file of the whole trace or of one map.

    The fields are format, view, overlay, both (whether a row is named by both of its tokens), link (the page's
    address), selection and asked."""
    scene = scene_of(context, address, fields)
    name, form, trace = fields.get("format"), field.read_entry(fields, "format", FORMATS), scene.trace
    if form.trace:
        if name == "npz":
            check_size(weight_bytes(trace))  # before the file is built
        opens = field.read_text(fields, "link", "") or scene.selection
        file, content = f"attention-{trace.key}", form.trace.write(trace, opens)
    else:
        view, overlay = View.from_plain(fields.get("view")), fields.get("overlay")
        file = f"{overlay or 'attention'}-{view.kind.value}-layer{view.layer + 1}-head{view.head + 1}"
        values = overlays.overlay_map(overlay, scene, view) if overlay else score_map(trace, view)
        content = form.map.write(trace, view, label_rows_by_both(values, trace, view) if fields.get("both") else values)
    return File(f"{file}.{name}", form.media_type, content)


@question(lane="model")
def page_cut(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Translate again without some edges of attention. Returns both translations, the effect on the pinned token, and
    the address of the new translation.

    The fields are kind, heads, queries, keys, how (see viz.explorer.cut), selection and asked.
    """
    scene = scene_of(context, address, fields)
    broken = cut.translate_without(scene, fields)
    context.traces.add(broken)
    return {"cut": {**cut.describe_effect(scene, fields, broken), "opens": Address.of(broken).to_plain()}}


@question(lane="translate")
def page_beside(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Translate a second sentence with the same model and return its maps. The field is text."""
    scene = scene_of(context, address, {})
    trace = scene.translator.translate(field.read_text(fields, "text"), scene.trace.direction)
    context.traces.add(trace)
    return {"kept": explorer_payload(context.translators, trace)}


@question(lane="model")
def page_alike(context: Context, address: Address | None, fields: Mapping) -> Answer:
    """Return the words that two sentences share and their cosines. The field other is the first sentence's address."""
    first, scene = context.trace(Address.from_plain(fields.get("other"))), scene_of(context, address, {})
    return {"alike": {"key": scene.trace.key, "other": first.key, **compare.compare_words(scene, first)}}
