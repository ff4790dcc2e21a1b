"""The registry of export formats, by name. docs/contributing/extend.md explains how to add one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from attention_atlas.model.trace import storage
from attention_atlas.model.trace.kinds import AttentionKind
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.viz.export import explained, standalone, table
from attention_atlas.viz.words import Words, say


@dataclass(frozen=True)
class Scope:
    """How a format writes and reads a whole trace or one map.

    write  returns the file's bytes. Of a trace its arguments are the trace and what an HTML file opens with (a
           viz.panels.scene.Selection, the text of a link, or None); of a map the trace, the view, and the view's map,
           which may be that of an overlay
    read   returns the numbers of a file exactly: of a trace {kind: float32 [layers, heads, query, key]}, of a map
           float32 [row, column]. ValueError for any other file
    """

    write: Callable[..., bytes]
    read: Callable[[bytes], Mapping[AttentionKind, np.ndarray] | np.ndarray]


@dataclass(frozen=True)
class Format:
    """A file format, for whole traces, maps, answers of the tab "Why", or several of these.

    media_type  as in HTTP. The API sends text and JSON as they are, all else in base64
    about       the tooltip of its button on the page, which downloads the whole trace if the format can hold it, else
                the map
    why         writes an answer of the tab "Why" to bytes
    """

    media_type: str
    about: Words
    trace: Scope | None = None
    map: Scope | None = None
    why: Callable[[explained.Explained], bytes] | None = None


def _weights(trace: TranslationTrace) -> dict[AttentionKind, np.ndarray]:
    return {kind: trace.maps(kind).weights for kind in trace.kinds}


def _exact(format: str) -> Words:
    return say("The whole trace, every weight exact, as {format}", format=format)


FORMATS: dict[str, Format] = {
    "csv": Format(
        "text/csv",
        say("The map as a table"),
        map=Scope(
            lambda trace, view, shown: table.to_csv(shown).encode(), lambda data: table.from_csv(data.decode())[2]
        ),
        why=explained.to_csv,
    ),
    "json": Format(
        "application/json",
        _exact("JSON"),
        trace=Scope(
            lambda trace, selection: storage.to_json(trace).encode(),
            lambda data: _weights(storage.from_json(data.decode())),
        ),
        map=Scope(lambda trace, view, shown: table.to_json(trace, view), table.from_json),
        why=explained.to_json,
    ),
    "npz": Format(
        "application/octet-stream",
        _exact("NPZ"),
        trace=Scope(lambda trace, selection: storage.to_npz(trace), lambda data: _weights(storage.from_npz(data))),
        map=Scope(lambda trace, view, shown: table.to_npz(trace, view), table.from_npz),
        why=explained.to_npz,
    ),
    "html": Format(
        "text/html",
        say("This explorer and this translation as one file that opens offline"),
        trace=Scope(
            lambda trace, opens: standalone.to_html(trace, opens).encode(),
            lambda data: standalone.from_html(data.decode()),
        ),
    ),
}
