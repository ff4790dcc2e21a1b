"""The explorer in a notebook's cell: Jupyter, VS Code, Colab, and what is saved of them, without a server.

A cell holds a frame with a document of its own, so that neither its keys nor its styles meet the notebook's. Plotly.js
and the explorer's scripts are 2 MB: the first explorer of a session carries them, and those after it find them there.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping, MutableMapping
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

HEIGHT = 760  # pixels, until the frame knows better
_CARRIERS = "_attention_atlas"  # in the session's own names: cell -> the request for which it was run last


@dataclass(frozen=True, eq=False)
class Explorer:
    """What explore() and compare() return: as a cell's last value it is shown; save() writes it as a file."""

    traces: tuple[TranslationTrace, ...]
    view: View
    together: bool = False

    def _repr_html_(self) -> str:
        lines = "".join(
            f'<p dir="auto" style="margin: 4px 0">{html.escape(trace.source_text)} → '
            f"<b>{html.escape(trace.translation)}</b></p>"
            for trace in self.traces
        )
        page = html.escape(document(self.traces, self._payloads(), alone=_carries_scripts()))
        return (
            f'{lines}<iframe title="Attention Atlas" srcdoc="{page}" allow="clipboard-write" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        return "\n".join(f"{trace.source_text} → {trace.translation}" for trace in self.traces)

    def save(self, path: Path | str) -> None:
        """Write it as one HTML file that opens without a network. OSError where that cannot be written."""
        page = document(self.traces, self._payloads(), heading=True)
        replace_file(Path(path), lambda partial: partial.write_text(page, encoding="utf-8"))

    def _payloads(self) -> list[dict]:
        found: list[Any] = [for_page(payload(trace, exact=True)) for trace in self.traces]
        view = self.view
        found[-1]["selection"] = {
            **{name: getattr(view, name) for name in ("layer", "head", "heads", "words")},
            "kind": view.kind.value,
            "combine": view.combine.value,
            "special": view.special.value,
            **({"view": "compare"} if self.together else {}),
        }
        return found


def explore(trace: TranslationTrace, view: View | Kind | None = None) -> Explorer:
    """The whole interactive explorer of a translation: every head small, one of them large, as lines or as text.

    In a notebook it is shown where it is a cell's last value, with the exact weights in it: saved with the notebook, it
    opens again without a server. view: the map it opens with; without one, the head that points most clearly. Rows of
    the decoder are named by what they predict, as on the page. ValueError if the trace has no such head.
    """
    view = most_telling(check_trace(trace)) if view is None else View.coerce(view)
    view.split(trace)[0].used_heads(trace)
    return Explorer((trace,), view)


def compare(trace_a: TranslationTrace, trace_b: TranslationTrace, view: View | Kind | None = None) -> Explorer:
    """The explorer over two translations, the same head of both side by side; of two models, or of one with and without
    an intervention. view as in explore(), of trace_b. ValueError if it has no such head, or if the two are the same."""
    if trace_a is trace_b:
        raise ValueError(f"two translations are compared, and this is one twice: {trace_a.source_text!r:.80}")
    return Explorer((check_trace(trace_a), trace_b), explore(trace_b, view).view, together=True)


def _carries_scripts() -> bool:
    """Whether an explorer shown now must bring the scripts: the first of a session, and a cell that is run once more,
    whose old output is gone. In Colab every cell: there no output sees another."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or "google.colab" in sys.modules or not hasattr(shell, "get_parent"):
        return True
    return first_of(shell.user_ns.setdefault(_CARRIERS, {}), shell.get_parent())


def first_of(carriers: MutableMapping[str, str], request: Mapping) -> bool:
    """Note that a request (a message of Jupyter's protocol) shows an explorer, and say whether it must bring the
    scripts. Front ends tell which cell they run; without that, only the first request brings them."""
    run = request.get("header", {}).get("msg_id", "")
    cell = request.get("metadata", {}).get("cellId", run)
    needed = not carriers or carriers.get(cell, run) != run
    carriers[cell] = run
    return needed
