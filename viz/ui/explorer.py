"""The explorer tab: every head of the model on one screen. The page draws; the server sends a payload a translation."""

from __future__ import annotations

import base64
import gzip

import gradio as gr

from model.trace.kinds import AttentionKind
from model.trace.translation import TranslationTrace
from model.translator import Translators
from viz.export.formats import FORMATS, Taken
from viz.maps.reduce import View, score_map
from viz.ui import overlays
from viz.ui.component import Component
from viz.ui.header import Header
from viz.ui.session import TRANSLATES, Selection
from viz.wire.overlay import descriptor
from viz.wire.payload import LARGEST, block, key_of, payload, selection_dict
from viz.wire.summary import INVITATION
from viz.words import known

REMEMBERED = 6  # translations whose layers and exports stay available, as in explorer.js
REMEMBERED_BYTES = 12_000_000  # of weights, for a visitor; the newest always stays

EVENTS = ("select", "layers", "overlay", "model_overlay", "export", "model_export", "restore")


def build(translators: Translators, header: Header) -> None:
    """Lay out and wire the tab."""
    session = header.session
    explorer = component(payload(header.first, header.first_selection) if header.first else {"invitation": INVITATION})
    history = gr.State((header.first,) if header.first else ())
    private = {"api_visibility": "private", "show_progress": "hidden"}

    def show(trace: TranslationTrace, selection: Selection, history: tuple[TranslationTrace, ...]):
        return payload(trace, selection.fitted(trace)), remembered(history, trace)

    session.trace.change(show, [session.trace, session.selection, history], [explorer, history], **private)
    session.selection.change(
        lambda selection: {"selection": selection_dict(selection)}, [session.selection], [explorer],
        queue=False, trigger_mode="always_last", **private)
    # Through the queue: what changes a state outside it does not set off that state's own change event.
    explorer.select(chosen, [session.trace], [session.selection], trigger_mode="always_last", **private)
    explorer.layers(layers, [history], [explorer], **private)

    def overlay(history: tuple[TranslationTrace, ...], event: gr.EventData) -> dict:
        return overlaid(translators, history, event)

    def export(history: tuple[TranslationTrace, ...], selection: Selection, event: gr.EventData) -> dict:
        return exported(translators, history, selection, event)

    # What needs the model waits for its turn, where one is lent a GPU; what needs the trace alone does not.
    for on_overlay, on_export, turn in ((explorer.overlay, explorer.export, {}), (
            explorer.model_overlay, explorer.model_export, {"concurrency_id": "model"})):
        on_overlay(overlay, [history], [explorer], **turn, **private)
        on_export(export, [history, session.selection], [explorer], **turn, **private)
    explorer.restore(header.restore, [], [session.text, session.direction, header.result, session.trace],
                     **TRANSLATES, **private)


def component(value: dict) -> Component:
    """The explorer with this payload, told what it can ask of the server."""
    return Component("explorer", value, plotly=True, events=EVENTS,
                     options={"formats": [{"name": name, "about": form.about} for name, form in FORMATS.items()],
                              **overlays.options()},
                     elem_id="explorer")


def remembered(history: tuple[TranslationTrace, ...], trace: TranslationTrace) -> tuple[TranslationTrace, ...]:
    """The history with the trace as its newest entry, within its bounds."""
    kept, size = [trace], _bytes(trace)
    for earlier in reversed(history):
        size += _bytes(earlier)
        if len(kept) == REMEMBERED or size > REMEMBERED_BYTES:
            break
        if key_of(earlier) != key_of(trace):
            kept.append(earlier)
    return tuple(reversed(kept))


def chosen(trace: TranslationTrace | None, event: gr.EventData) -> Selection:
    """The selection that the page reports, inside the limits of the trace."""
    def position(name: str) -> int | None:
        value = event._data.get(name)
        return value if isinstance(value, int) and value >= 0 else None

    try:
        kind = AttentionKind(event._data.get("kind"))
    except ValueError as error:
        raise gr.Error(f"The page asked for an unknown kind of attention: {error}") from error
    found = Selection(kind, position("layer") or 0, position("head") or 0, position("query"), position("key"))
    return found.fitted(trace) if trace else found


def layers(history: tuple[TranslationTrace, ...], event: gr.EventData) -> dict:
    """Blocks of the layers that the page asks for, one after another up to about 1 MB; it asks again for the rest."""
    try:
        trace = _find(history, event)
        size, blocks = 0, []
        for kind, layer in event._data.get("wanted", []):
            blocks.append(block(trace, AttentionKind(kind), int(layer), int(layer) + 1))
            size += len(blocks[-1]["data"])
            if size > LARGEST:
                break
    except (ValueError, TypeError) as error:
        return _answer(event, error=known(str(error)))
    return _answer(event, key=event._data["key"], layers=blocks)


def overlaid(translators: Translators | None, history: tuple[TranslationTrace, ...], event: gr.EventData) -> dict:
    """The map that the page asks to see in attention's place; `as` is the page's own name for it."""
    try:
        trace, name = _find(history, event), event._data.get("overlay")
        view = View.of(event._data.get("view"))
        found = overlays.shown(name, overlays.Place(trace, view, translators))
    except ValueError as error:
        return _answer(event, error=known(str(error)))
    sent = descriptor(name, overlays.OVERLAYS[name].title, view.kind, found)
    return _answer(event, key=event._data["key"], overlay=sent, **{"as": event._data.get("as")})


def exported(translators: Translators | None, history: tuple[TranslationTrace, ...], selection: Selection,
             event: gr.EventData) -> dict:
    """The file that the page asks for, gzipped for the way: the whole trace, or the map that is shown."""
    try:
        trace, name = _find(history, event), event._data.get("format")
        if name not in FORMATS:
            raise ValueError(f"unknown export {name!r}")
        view = View.of(event._data.get("view"))
        overlay = event._data.get("overlay")
        place = overlays.Place(trace, view, translators)
        shown = overlays.shown(overlay, place) if overlay else score_map(trace, view)
        taken = Taken(trace, view, shown, selection.fitted(trace))
        data = (FORMATS[name].trace or FORMATS[name].map).write(taken)
    except ValueError as error:
        return _answer(event, error=known(str(error)))
    packed = base64.b64encode(gzip.compress(data, compresslevel=6)).decode("ascii")
    what = key_of(trace) if FORMATS[name].trace else f"{view.kind.value}-layer{view.layer + 1}-head{view.head + 1}"
    return _answer(event, download={"name": f"{overlay or 'attention'}-{what}.{name}", "type": FORMATS[name].media_type,
                                    "data": packed})


def _answer(event: gr.EventData, **content) -> dict:
    # The question's serial number: Gradio passes no value on to the page that equals the one before.
    return {"serial": event._data.get("serial"), **content}


def _find(history: tuple[TranslationTrace, ...], event: gr.EventData) -> TranslationTrace:
    for trace in history:
        if key_of(trace) == event._data.get("key"):
            return trace
    raise ValueError("This translation is no longer remembered: translate the sentence again.")


def _bytes(trace: TranslationTrace) -> int:
    return sum(trace.maps(kind).weights.nbytes for kind in trace.kinds)
