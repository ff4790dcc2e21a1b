"""A visitor's translations: the one that is shown, and those before it whose maps the page may still ask for."""

from __future__ import annotations

from collections.abc import Sequence

from model.trace.language import Refusal
from model.trace.translation import TranslationTrace
from viz.ui.gradio6.visitors import changed
from viz.wire.payload import key_of

REMEMBERED = 6  # translations whose layers and exports stay available, as in explorer.js
REMEMBERED_BYTES = 12_000_000  # of weights, for a visitor; the newest always stays


def remembered(history: tuple[TranslationTrace, ...], trace: TranslationTrace) -> tuple[TranslationTrace, ...]:
    """The history with the trace as its newest entry, within its bounds."""
    kept, size = [trace], weight_bytes(trace)
    for earlier in reversed(history):
        size += weight_bytes(earlier)
        if len(kept) == REMEMBERED or size > REMEMBERED_BYTES:
            break
        if key_of(earlier) != key_of(trace):
            kept.append(earlier)
    return tuple(reversed(kept))


def remember(trace: TranslationTrace) -> object:
    """The history's next value: with this trace, beside whatever it has by then."""
    return changed(remembered, trace, otherwise=(trace,))


def found(traces: Sequence[TranslationTrace | None], key: object) -> TranslationTrace:
    """The translation that the page names. A Refusal for one that is no longer remembered."""
    for trace in traces:
        if trace and key_of(trace) == key:
            return trace
    raise Refusal("This translation is no longer remembered: translate the sentence again.")


def weight_bytes(trace: TranslationTrace) -> int:
    """Of a trace's maps."""
    return sum(trace.maps(kind).weights.nbytes for kind in trace.kinds)
