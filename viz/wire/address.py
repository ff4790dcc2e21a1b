"""Links to a translation: the text, the model, the search and the interventions, in the part of a URL behind `#`,
which browsers do not send to the server."""

from __future__ import annotations

from urllib.parse import urlencode

from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.decoding import Decoding
from attention_atlas.model.trace.translation import TranslationTrace, check_trace

VERSION = "2"  # of links; one without a version opens with the view that links had before (viz/web/explorer/state.js)
MAX_LENGTH = 65_536  # characters of all interventions in a link


def link_fields(source: TranslationTrace | Address, decoding: Decoding | None) -> dict:
    """Return what the page makes a link of, JSON-ready.

    beam is the width of the search, null if unknown. interventions is JSON text, "" for none, null for those that no
    link can carry.
    """
    return {
        "text": source.text if isinstance(source, Address) else source.source_text,
        "direction": source.direction,
        "checkpoint": source.checkpoint,
        "beam": decoding and decoding.beam,
        "interventions": interventions_file.to_text(source.interventions, MAX_LENGTH),
    }


def query_fields(trace: TranslationTrace) -> dict[str, str]:
    """Return the fields of a link to a trace as text, without defaults and interventions that no link can carry."""
    fields = link_fields(trace, trace.decoding)
    named = {name: str(value) for name, value in fields.items() if value and (name, value) != ("beam", 1)}
    return {"v": VERSION, **named}


def fragment(trace: TranslationTrace) -> str:
    """Return the URL fragment that opens a page at this trace, with its `#`."""
    return f"#{urlencode(query_fields(trace))}"


def link(trace: TranslationTrace, page: str = "") -> str:
    """Return a link that opens a page at this translation: the same text, model, search and interventions.

    If the target was given, the link opens the model's own translation instead.

    page: the address of a served page, such as "http://127.0.0.1:7860/". ValueError for interventions that no link can
    carry.
    """
    if link_fields(check_trace(trace), trace.decoding)["interventions"] is None:
        raise ValueError(
            f"no link can carry these changes ({trace.interventions.describe():.200}): functions and values of other "
            f"passes have no text, and {MAX_LENGTH:,} characters are the most; save() keeps the whole trace"
        )
    return page + fragment(trace)
