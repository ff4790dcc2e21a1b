"""The files that people can take away, by name. Buttons, checks and the API iterate them; CONTRIBUTING.md says how to
add one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from model.trace import storage
from model.trace.kinds import AttentionKind
from model.trace.scores import ScoreMap
from model.trace.translation import TranslationTrace
from viz.export import explained, head, standalone, table
from viz.export.explained import Explained
from viz.maps.reduce import View
from viz.words import Words, say


@dataclass(frozen=True, eq=False)
class Taken:
    """What a file is made of: a trace, the view of it that is shown, and the map of that view. selection: what a file
    that can be looked at opens with (viz.ui.session.Selection), or None."""

    trace: TranslationTrace
    view: View
    map: ScoreMap
    selection: object = None


@dataclass(frozen=True)
class Scope:
    """How a format holds a whole trace, one map, or an answer of the tab "Why".

    write   Taken, or Explained -> the file's bytes
    read    the bytes -> the numbers in them: of a trace {kind: float32 [layers, heads, query, key]}, of a map float32
            [row, column], of an answer float64 [row, column], exactly as they were written. ValueError if the bytes
            are no such file
    """

    write: Callable[[Taken], bytes] | Callable[[Explained], bytes]
    read: Callable[[bytes], Mapping[AttentionKind, np.ndarray] | np.ndarray]


@dataclass(frozen=True)
class Format:
    """A kind of file, for a whole trace, for one map, for an answer of the tab "Why", or for several of them.

    media_type   as in HTTP. In the API's answers text and JSON stand as they are, all else in base64
    about        what its button on the page says when one points at it. The button gives the whole trace where the
                 format can hold it, else the map that is shown
    """

    media_type: str
    about: Words
    trace: Scope | None = None
    map: Scope | None = None
    why: Scope | None = None


def _weights(trace: TranslationTrace) -> dict[AttentionKind, np.ndarray]:
    return {kind: trace.maps(kind).weights for kind in trace.kinds}


_EXACT = "The whole trace, every weight exact, as {format}"

FORMATS: dict[str, Format] = {
    "csv": Format(
        "text/csv",
        say("The map as a table"),
        map=Scope(lambda taken: table.to_csv(taken.map).encode(), lambda data: table.from_csv(data.decode())[2]),
        why=Scope(explained.to_csv, explained.from_csv),
    ),
    "json": Format(
        "application/json",
        say(_EXACT, format="JSON"),
        trace=Scope(
            lambda taken: storage.to_json(taken.trace).encode(), lambda data: _weights(storage.from_json(data.decode()))
        ),
        map=Scope(lambda taken: head.to_json(taken.trace, taken.view), head.from_json),
        why=Scope(explained.to_json, explained.from_json),
    ),
    "npz": Format(
        "application/octet-stream",
        say(_EXACT, format="NPZ"),
        trace=Scope(lambda taken: storage.to_npz(taken.trace), lambda data: _weights(storage.from_npz(data))),
        map=Scope(lambda taken: head.to_npz(taken.trace, taken.view), head.from_npz),
        why=Scope(explained.to_npz, explained.from_npz),
    ),
    "html": Format(
        "text/html",
        say("This explorer with this translation as one file that opens without a network"),
        trace=Scope(
            lambda taken: standalone.to_html(taken.trace, taken.selection).encode(),
            lambda data: standalone.from_html(data.decode()),
        ),
    ),
}
