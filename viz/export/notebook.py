"""The explorer in notebooks (Jupyter, VS Code, Colab) and in saved notebooks, without a server.

A cell's output is an iframe, so that keys and styles do not interfere with the notebook's. It contains the explorer's
scripts (0.5 MB), so each cell works alone.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention_atlas.model.files import replace_file
from attention_atlas.model.trace.kinds import Kind
from attention_atlas.model.trace.translation import TranslationTrace, check_trace
from attention_atlas.viz.export.standalone import document
from attention_atlas.viz.maps.patterns import most_telling
from attention_atlas.viz.maps.reduce import View
from attention_atlas.viz.wire.payload import payload
from attention_atlas.viz.words import for_page

__all__ = ["Explorer", "compare", "explore"]

HEIGHT = 760  # pixels, until the frame reports its height


@dataclass(frozen=True, eq=False)
class Explorer:
    """The result of explore() and compare(): notebooks display it, save() writes it as a file."""

    traces: tuple[TranslationTrace, ...]
    view: View
    side_by_side: bool = False

    def _repr_html_(self) -> str:
        lines = "".join(
            f'<p dir="auto" style="margin: 4px 0">{html.escape(trace.source_text)} → '
            f"<b>{html.escape(trace.translation)}</b></p>"
            for trace in self.traces
        )
        page = html.escape(document(self.traces, self._payloads()))
        return (
            f'{lines}<iframe title="Attention Atlas" srcdoc="{page}" allow="clipboard-write" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return "\n".join(f"{trace.source_text} → {trace.translation}" for trace in self.traces)

    def save(self, path: Path | str) -> None:
        """Write the explorer as one HTML file that opens without a network. OSError if it cannot be written."""
        page = document(self.traces, self._payloads(), heading=True)
        replace_file(Path(path), lambda partial: partial.write_text(page, encoding="utf-8"))

    def _payloads(self) -> list[dict]:
        payloads: list[Any] = [for_page(payload(trace, exact=True)) for trace in self.traces]
        view = {name: value for name, value in vars(self.view).items() if name != "predicted"}
        payloads[-1]["selection"] = view | ({"view": "compare"} if self.side_by_side else {})
        return payloads


def explore(trace: TranslationTrace, view: View | Kind | None = None) -> Explorer:
    """Return the interactive explorer of a translation: thumbnails of all heads and one large map.

    A notebook displays it if it is a cell's last value. It contains the exact weights, so that a saved notebook shows
    it without a server. Decoder rows are labelled by the token that they predict, as on the page.

    view: the map that it opens with; None: the head that points most clearly. ValueError if the trace has no such head.
    """
    view = most_telling(check_trace(trace)) if view is None else View.coerce(view)
    view.split(trace)[0].used_heads(trace)
    return Explorer((trace,), view)


def compare(trace_a: TranslationTrace, trace_b: TranslationTrace, view: View | Kind | None = None) -> Explorer:
    """Return the explorer of two translations, which shows the same head of both side by side.

    They may be of two models, or of one model with and without interventions. view: as in explore(), of trace_b.
    ValueError if trace_b has no such head, or if both are the same trace.
    """
    if trace_a is trace_b:
        raise ValueError(f"compare() needs two traces, found the same one twice: {trace_a.source_text!r:.80}")
    return Explorer((check_trace(trace_a), trace_b), explore(trace_b, view).view, side_by_side=True)
