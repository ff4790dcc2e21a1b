"""How tokens are shown to people: display forms, whole words, and text that Plotly does not read as markup."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

from attention_atlas.model.trace.kinds import AttentionKind, Side
from attention_atlas.model.trace.language import Words, say
from attention_atlas.model.trace.tokens import is_byte, is_prefix, is_symbol
from attention_atlas.model.trace.translation import TranslationTrace
from attention_atlas.model.trace.words import SPACE

KIND_TITLES = {
    AttentionKind.ENCODER_SELF: say("Encoder self-attention"),
    AttentionKind.DECODER_SELF: say("Decoder self-attention"),
    AttentionKind.CROSS: say("Cross-attention"),
    AttentionKind.ALIGNMENT: say("Alignment"),
}
_NAMED = {"\n": "⏎", "\r": "␍", "\t": "⇥", "\x00": "␀"}
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_JOINER = "\u200d"


def display(token: str) -> str:
    """A token as people read it, not escaped: `▁` (a space) stays, a byte piece <0xC3> becomes ‹C3›, a prefix's piece
    stands in ⟨brackets⟩, and characters that are invisible or reorder the text around them become their code point."""
    if is_byte(token):
        return f"‹{token[3:5]}›"
    shown = "".join(_visible(character, alone=len(token) == 1) for character in token)
    if shown and unicodedata.combining(shown[0]):
        shown = "◌" + shown
    if is_prefix(token):
        return f"⟨{shown}⟩"
    return shown or "‹empty›"


def _visible(character: str, *, alone: bool) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if character == _JOINER and not alone:
        return character  # holds emoji together
    if unicodedata.category(character) in _INVISIBLE:
        return f"‹U+{ord(character):04X}›"
    return character


def word_label(tokens: Sequence[str]) -> str:
    """The word that these tokens spell, without the space mark; byte pieces are put together where they are UTF-8."""
    parts: list[str] = []
    pending = bytearray()
    for token in (*tokens, ""):
        if is_byte(token):
            pending.append(int(token[3:5], 16))
            continue
        if pending:
            parts.append(_decoded(bytes(pending)))
            pending.clear()
        parts.append(token if is_symbol(token) else token.replace(SPACE, " "))
    text = "".join(parts).strip()
    return display(text) if text else SPACE


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(f"‹{byte:02X}›" for byte in data)


def escape(text: str) -> str:
    """For Plotly, which reads tags and entities in tick labels, titles and hover text: the same text, literally."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shorten(text: str, limit: int = 18) -> str:
    """At most `limit` characters, the last one an ellipsis where something was left out."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def ticks(labels: Sequence[str], limit: int = 40) -> tuple[list[int], list[str]]:
    """Positions and escaped texts of at most `limit` evenly spaced tick labels, the first always among them."""
    step = max(1, -(-len(labels) // limit))
    return list(range(0, len(labels), step)), [escape(shorten(label)) for label in labels[::step]]


def place(kind: AttentionKind, layer: int, head: int) -> dict[str, object]:
    """The values {kind}, {layer} and {head} of a sentence about a head. layer, head: from 0; people count from 1."""
    return {"kind": KIND_TITLES[kind], "layer": layer + 1, "head": head + 1}


def row_title(kind: AttentionKind, *, predicted: bool) -> Words:
    """The title of the query axis: which of its two tokens a decoder row is named after."""
    if kind == AttentionKind.ENCODER_SELF:
        return say("query: source token")
    return say("query: the token it writes") if predicted else say("query: the token it reads")


def key_title(kind: AttentionKind, *, joint: bool = False) -> Words:
    """The title of the key axis. joint: source and target prefix side by side."""
    if joint:
        return say("key: source tokens, then target prefix")
    return say("key: target token read") if kind == AttentionKind.DECODER_SELF else say("key: source token")


def row_tokens(trace: TranslationTrace, kind: AttentionKind, *, predicted: bool) -> tuple[str, ...]:
    """The tokens that name the rows of a kind: for the decoder those read or those predicted."""
    if kind != AttentionKind.ENCODER_SELF and predicted:
        return trace.target_tokens
    return trace.maps(kind).query_tokens


def row_name(trace: TranslationTrace, kind: AttentionKind, row: int) -> Words | str:
    """A row in a sentence: a decoder's by both of its tokens, the one that it reads and the one that it then writes."""
    read, *written = _row(trace, kind, row)
    return say("reads {read} → writes {written}", read=read, written=written[0]) if written else read


def row_names(trace: TranslationTrace, kind: AttentionKind) -> list[str]:
    """The same beside a map, in short: "I → like"."""
    return [" → ".join(_row(trace, kind, row)) for row in range(len(trace.maps(kind).query_tokens))]


def pair_names(read: Sequence[str], written: Sequence[str]) -> list[str]:
    """The same of a decoder's rows that are no trace's; one that writes nothing, as padding does, by what it reads."""
    return [
        " → ".join(map(display, pair if pair[1] else pair[:1])) for pair in zip_longest(read, written, fillvalue="")
    ]


def _row(trace: TranslationTrace, kind: AttentionKind, row: int) -> tuple[str, ...]:
    if kind.side is Side.ENCODER:
        return (display(trace.source_tokens[row]),)
    return display(trace.decoder_inputs[row]), display(trace.target_tokens[row])
