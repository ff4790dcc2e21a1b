"""The explorer tab: every head of the model on one screen. The page draws; the server sends a payload a translation."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Mapping

import gradio as gr

from model.trace.kinds import AttentionKind
from model.trace.language import Refusal, Words
from model.trace.translation import TranslationTrace
from model.translators import Translators
from viz.export.formats import FORMATS
from viz.maps.reduce import View, named_by_both, score_map
from viz.ui import overlays
from viz.ui.asked import Asked, wanted_by
from viz.ui.component import Component
from viz.ui.desk import fields
from viz.ui.desk.desk import MODEL, PRIVATE, Desk
from viz.ui.desk.history import found, remember, weight_bytes
from viz.ui.desk.scene import Scene
from viz.ui.desk.sent import sent
from viz.ui.experiments import beside, cutting
from viz.ui.header import Header, asked_of, translated
from viz.ui.lab.frame import told_of
from viz.ui.rpc import Message, told
from viz.ui.session import TRANSLATES, Selection, Session
from viz.wire.overlay import descriptor
from viz.wire.payload import LARGEST, block, key_of, selection_dict, thumbnails
from viz.wire.summary import INVITATION
from viz.wire.tiles import strip, tiles

LARGEST_FILE = 64_000_000  # bytes of weights, or of queries and keys, in a file that the page sends

EVENTS = (
    *("select", "layers", "tiles", "cell", "overlay", "model_overlay", "export", "model_export", "cut", "cut_open"),
    *("keep", "alike", "again"),
)


def build(translators: Translators | None, header: Header) -> None:
    """Lay out and wire the tab. translators: of the models that can be asked; None: the traces are all there is.
    Another sentence's maps come with the header's answer, which hands them on."""
    session = header.session
    first = sent(translators, header.first, header.first_selection) if header.first else {"invitation": INVITATION}
    explorer = component(first, model=translators is not None)
    share_selection(explorer, session)
    desk = Desk(explorer, session, translators)

    def about(find: Callable[[Message, Scene], dict | tuple]) -> Callable[..., dict | tuple]:
        """find, of the translation that the question names."""

        def answer(
            message: Message,
            trace: TranslationTrace | None,
            history: tuple[TranslationTrace, ...],
            selection: Selection = Selection(),
            asked: Asked = Asked(),
        ) -> dict | tuple:
            return find(message, desk.scene(found((*history, trace), message.data.get("key")), selection, asked))

        return answer

    shown = [session.trace, session.history]
    states = [*shown, session.selection, session.asked]
    desk.answers("layers", about(lambda message, scene: layers(scene.trace, message.data)), shown)
    desk.answers("tiles", about(lambda message, scene: tiled(scene.trace, message.data)), shown)
    desk.answers("cell", about(lambda message, scene: cell(scene.trace, message.data)), shown)
    # What needs the model waits for its turn, where one is lent a GPU; what needs the trace alone does not.
    for prefix, turn in (("", {}), ("model_", MODEL)):
        overlay = about(lambda message, scene: overlaid(scene, message.data))
        desk.answers(f"{prefix}overlay", overlay, states, refused=not_overlaid, **turn)
        desk.answers(f"{prefix}export", about(lambda message, scene: exported(scene, message.data)), states, **turn)
    session.asked.change(lambda asked: told(**told_of(asked)), [session.asked], [explorer], queue=False, **PRIVATE)
    cut = about(lambda message, scene: {"cut": cutting.answered(scene, message.data)})
    desk.answers("cut", cut, states, turn=True, refused=not_cut, queue=False, **MODEL)
    uncut = about(lambda message, scene: ({}, *header.shown(message, cutting.translated(scene, message.data))))
    desk.answers("cut_open", uncut, shown, header.shows, refused=not_cut, **TRANSLATES)

    def keep(
        message: Message, trace: TranslationTrace | None, history: tuple[TranslationTrace, ...]
    ) -> tuple[dict, object]:
        kept = beside.translated(desk.scene(found((*history, trace), message.data.get("key"))), message.data)
        return {"kept": sent(translators, kept)}, remember(kept)

    def alike(message: Message, trace: TranslationTrace | None, history: tuple[TranslationTrace, ...]) -> dict:
        pair = {name: message.data.get(name) for name in ("key", "other")}
        first, second = (found((*history, trace), pair[name]) for name in ("other", "key"))
        return {"alike": {**pair, **beside.answered(desk.scene(second), first)}}

    desk.answers("keep", keep, shown, [session.history], **TRANSLATES)
    if translators:
        again = resumed(translators)
        # Outside the queue nobody hears that a state has changed: the page shows all of it already.
        desk.answers("again", again, [], states, turn=True, queue=False, **MODEL)
    desk.answers("alike", alike, shown, turn=True, refused=not_alike, queue=False, **MODEL)


def resumed(translators: Translators) -> Callable[[Message], tuple]:
    """What answers a page that goes on here after its own server has ended (viz/web/page/reconnect.js): it says what it
    shows, and these become the visitor's states. Where that is another translation here, the page has to begin anew."""

    def again(message: Message) -> tuple:
        data = message.data
        trace = translated(translators, asked_of(translators, data), data)
        if key_of(trace) != data.get("key"):
            return {"other": True}, *[gr.skip()] * 4
        parts = {name: one if isinstance(one := data.get(name), dict) else {} for name in ("selection", "asked")}
        asked = wanted_by(parts["asked"], trace, Asked())
        found = (trace, chosen(trace, parts["selection"]), asked)
        shown, selection, asked = map(message.state, found)
        return {}, shown, remember(trace), selection, asked

    return again


def component(value: dict, *, model: bool = False) -> Component:
    """The explorer with this payload, told what it can ask of the server. model: also what only a model can answer."""
    return Component(
        "explorer",
        told(**value),
        plotly=True,
        events=EVENTS,
        options={
            "formats": [{"name": name, "about": form.about} for name, form in FORMATS.items()],
            **overlays.options(model=model),
            "pairs": beside.offered() if model else {},
        },
        elem_id="explorer",
    )


def share_selection(component: Component, session: Session) -> None:
    """What is selected in the component is selected on the whole page, and the other way round."""
    session.selection.change(
        lambda selection: told(selection=selection_dict(selection)),
        [session.selection],
        [component],
        queue=False,
        trigger_mode="always_last",
        **PRIVATE,
    )
    # Through the queue: what changes a state outside it does not set off that state's own change event.
    # One by one: of several at once, Gradio would send the first one's data again in place of the last one's.
    component.select(
        choose, [session.trace], [session.selection], trigger_mode="multiple", concurrency_limit=1, **PRIVATE
    )


def choose(trace: TranslationTrace | None, event: gr.EventData) -> object:
    """The selection's state, as the page reports it."""
    message = Message.of(event)
    return message.state(chosen(trace, message.data))


def chosen(trace: TranslationTrace | None, data: Mapping[str, object]) -> Selection:
    """The selection that the page reports, inside the limits of the trace. A Refusal for an unknown kind."""
    found = Selection.from_plain(data)
    return found.fitted(trace) if trace else found


def layers(trace: TranslationTrace, data: Mapping[str, object]) -> dict:
    """Thumbnails of kinds and blocks of layers that the page asks for, up to about 1 MB; it asks again for the rest. Of
    a kind whose maps are large, thumbnails of one layer."""
    data = {"thumbnails": [], "strips": [], "wanted": [], **data}
    strips = [strip(trace, kind, layer) for kind, layer in fields.each(data, "strips", fields.kind_and_layer)[:1]]
    small = [thumbnails(trace, kind) for kind in dict.fromkeys(fields.each(data, "thumbnails", fields.kind))]
    size, blocks = sum(len(one["data"]) for one in small), []
    for kind, layer in fields.each(data, "wanted", fields.kind_and_layer):
        if size > LARGEST:
            break
        blocks.append(block(trace, kind, layer, layer + 1))
        size += len(blocks[-1]["data"])
    return {"key": data["key"], "layers": blocks, "thumbnails": small, "strips": strips}


def tiled(trace: TranslationTrace, data: Mapping[str, object]) -> dict:
    """Tiles of a head's large map: `wanted`, [level, row, column] each."""
    kind, layer, head = fields.head(data.get("head"))
    wanted = [tuple(fields.wholes({"tile": one}, "tile")) for one in fields.each(data, "wanted", list)]
    return {"key": data["key"], "tiles": tiles(trace, *_existing(trace, kind, layer, head), wanted)}


def cell(trace: TranslationTrace, data: Mapping[str, object]) -> dict:
    """The exact weight of a cell [row, column], which in a tile has a byte."""
    kind, layer, head = _existing(trace, *fields.head(data.get("head")))
    row, column = fields.whole(data, "row"), fields.whole(data, "column")
    weights = trace.maps(kind).weights[layer, head]
    if not (0 <= row < len(weights) and 0 <= column < weights.shape[1]):
        raise Refusal("The page asked for something unknown: {what}", what=f"cell {(row, column)}")
    found = {"head": [kind.value, layer, head], "row": row, "column": column, "value": float(weights[row, column])}
    return {"key": data["key"], "cell": found}


def _existing(trace: TranslationTrace, kind: AttentionKind, layer: int, head: int) -> tuple[AttentionKind, int, int]:
    View(kind, layer, head).used_heads(trace)  # raises
    return kind, layer, head


def overlaid(scene: Scene, data: Mapping[str, object]) -> dict:
    """The map that the page asks to see in attention's place; `as` is the page's own name for it."""
    name, view = data.get("overlay"), View.of(data.get("view"))
    found = overlays.shown(name, scene, view)
    sent = descriptor(name, overlays.OVERLAYS[name].title, view.kind, found)
    return {"key": data["key"], "overlay": sent, "as": data.get("as")}


def not_overlaid(message: Message, words: Words | str) -> dict:
    """By its name the page knows which map it need not ask for again."""
    return {"error": words, "key": message.data.get("key"), "as": message.data.get("as")}


def not_cut(message: Message, words: Words | str) -> dict:
    """It stands where the answer would."""
    return {"cut": {"error": words}}


def not_alike(message: Message, words: Words | str) -> dict:
    """It stands where the table would."""
    return {"alike": {**{name: message.data.get(name) for name in ("key", "other")}, "error": words}}


def exported(scene: Scene, data: Mapping[str, object]) -> dict:
    """The file that the page asks for, gzipped for the way: the whole trace, or the map that is shown."""
    name, form, trace = data.get("format"), fields.entry(data, "format", FORMATS), scene.trace
    if form.trace and name == "npz" and (size := weight_bytes(trace)) > LARGEST_FILE:
        raise Refusal(
            "This file would have {n} MB, and the page sends up to {limit} MB. In Python, trace.save() writes it.",
            n=size // 1_000_000,
            limit=LARGEST_FILE // 1_000_000,
        )
    if form.trace:
        opens = fields.text(data, "link", "") or scene.selection
        file, written = f"attention-{key_of(trace)}", form.trace.write(trace, opens)
    else:
        view, overlay = View.of(data.get("view")), data.get("overlay")
        file = f"{overlay or 'attention'}-{view.kind.value}-layer{view.layer + 1}-head{view.head + 1}"
        shown = overlays.shown(overlay, scene, view) if overlay else score_map(trace, view)
        written = form.map.write(trace, view, named_by_both(shown, trace, view) if data.get("both") else shown)
    packed = base64.b64encode(gzip.compress(written, compresslevel=6)).decode("ascii")
    return {"download": {"name": f"{file}.{name}", "type": form.media_type, "data": packed}}
