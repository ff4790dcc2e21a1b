"""A translation in a page's address, behind the # that no server sees: text, model, search, changes to the model."""

from __future__ import annotations

from urllib.parse import urlencode

from attention_atlas.model.trace import interventions_file
from attention_atlas.model.trace.address import Address
from attention_atlas.model.trace.decoding import Decoding
from attention_atlas.model.trace.translation import TranslationTrace, check_trace

MAX_LENGTH = 65_536  # characters of all changes in a link


def link_fields(of: TranslationTrace | Address, decoding: Decoding | None) -> dict:
    """What the page makes a link of, JSON-ready. beam: the width of the search, null where that is not known;
    interventions: JSON, "" for none, null for those that no link can carry."""
    return {
        "text": of.text if isinstance(of, Address) else of.source_text,
        "direction": of.direction,
        "checkpoint": of.checkpoint,
        "beam": decoding and decoding.beam,
        "interventions": interventions_file.to_text(of.interventions, MAX_LENGTH),
    }


def query_fields(trace: TranslationTrace) -> dict[str, str]:
    """The fields of a link to a trace, without the changes that no link can carry."""
    found = link_fields(trace, trace.decoding)
    return {name: str(value) for name, value in found.items() if value and (name, value) != ("beam", 1)}


def fragment(trace: TranslationTrace) -> str:
    """The fields as they stand behind a page's address."""
    return f"#{urlencode(query_fields(trace))}"


def link(trace: TranslationTrace, page: str = "") -> str:
    """An address that opens a page at this translation: the same text, model and search, under the same changes. Of a
    target that was given it opens what the model itself writes.

    page: where one is served, such as "http://127.0.0.1:7860/". ValueError, in words, for changes that no link can
    carry.
    """
    if link_fields(check_trace(trace), trace.decoding)["interventions"] is None:
        raise ValueError(
            f"no link can carry these changes ({trace.interventions.describe():.200}): functions and values of other "
            f"passes have no text, and {MAX_LENGTH:,} characters are the most; save() keeps the whole trace"
        )
    return page + fragment(trace)
