"""Labels of tokens, words, rows and heads, as people read them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import groupby, zip_longest

from attention_atlas.model.trace.alignment import content_words
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
    """Return a token as people read it, not escaped.

    `▁` (a space) stays, a byte <0xC3> becomes ‹C3›, a token of the task prefix gets ⟨brackets⟩, and characters that are
    invisible or reorder the text around them become their code point.
    """
    if is_byte(token):
        return f"‹{token[3:5]}›"
    label = "".join(_to_visible(character, is_alone=len(token) == 1) for character in token)
    if label and unicodedata.combining(label[0]):
        label = "◌" + label
    if is_prefix(token):
        return f"⟨{label}⟩"
    return label or "‹empty›"


def _to_visible(character: str, *, is_alone: bool) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if character == _JOINER and not is_alone:
        return character  # joins emoji
    if unicodedata.category(character) in _INVISIBLE:
        return f"‹U+{ord(character):04X}›"
    return character


def text_of(token: str) -> dict:
    """Return a token for the page, as {text, symbol}."""
    return {"text": display(token), "symbol": is_symbol(token)}


def word_label(tokens: Sequence[str]) -> str:
    """Return the word that these tokens spell, without the space mark; bytes are decoded if they are valid UTF-8."""
    parts: list[str] = []
    for are_bytes, run in groupby(tokens, is_byte):
        if are_bytes:
            parts.append(_decode_bytes(bytes(int(token[3:5], 16) for token in run)))
        else:
            parts += [token if is_symbol(token) else token.replace(SPACE, " ") for token in run]
    text = "".join(parts).strip()
    return display(text) if text else SPACE


def _decode_bytes(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(f"‹{byte:02X}›" for byte in data)


def words(tokens: Sequence[str]) -> list[tuple[tuple[int, ...], str]]:
    """Return the words of a text without special symbols: the positions of their tokens, and their labels."""
    return [(group, word_label([tokens[i] for i in group])) for group in content_words(tokens)]


def escape(text: str) -> str:
    """Escape text for Plotly, which interprets tags and entities in tick labels, titles and hover text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shorten(text: str, limit: int = 18) -> str:
    """Shorten a text to at most `limit` characters, with an ellipsis at the end."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def ticks(labels: Sequence[str], limit: int = 40) -> tuple[list[int], list[str]]:
    """Return positions and escaped texts of at most `limit` evenly spaced tick labels, including the first."""
    step = max(1, -(-len(labels) // limit))
    return list(range(0, len(labels), step)), [escape(shorten(label)) for label in labels[::step]]


def place(kind: AttentionKind, layer: int, head: int) -> dict[str, object]:
    """Return the values {kind}, {layer} and {head} of a message about a head, counted from 1. layer, head: from 0."""
    return {"kind": KIND_TITLES[kind], "layer": layer + 1, "head": head + 1}


def row_title(kind: AttentionKind, *, predicted: bool) -> Words:
    """Return the title of the query axis. predicted: decoder rows are labelled by the token that they predict."""
    if kind == AttentionKind.ENCODER_SELF:
        return say("query: source token")
    return say("query: the token it writes") if predicted else say("query: the token it reads")


def key_title(kind: AttentionKind, *, joint: bool = False) -> Words:
    """Return the title of the key axis. joint: whether source and target prefix are side by side."""
    if joint:
        return say("key: source tokens, then target prefix")
    return say("key: target token read") if kind == AttentionKind.DECODER_SELF else say("key: source token")


def row_tokens(trace: TranslationTrace, kind: AttentionKind, *, predicted: bool) -> tuple[str, ...]:
    """Return the tokens that label the rows of a kind: in the decoder those read, or those predicted."""
    if kind != AttentionKind.ENCODER_SELF and predicted:
        return trace.target_tokens
    return trace.maps(kind).query_tokens


def row_name(trace: TranslationTrace, kind: AttentionKind, row: int) -> Words | str:
    """Return the name of a row for a sentence; a decoder's row names the token that it reads and the one it writes."""
    read, *written = _row(trace, kind, row)
    return say("reads {read} → writes {written}", read=read, written=written[0]) if written else read


def row_names(trace: TranslationTrace, kind: AttentionKind) -> list[str]:
    """Return short names of all rows, such as "I → like" for the decoder."""
    return [" → ".join(_row(trace, kind, row)) for row in range(len(trace.maps(kind).query_tokens))]


def pair_names(read: Sequence[str], written: Sequence[str]) -> list[str]:
    """Return short names of decoder rows without a trace. Rows that write nothing (padding) name the token read."""
    return [
        " → ".join(map(display, pair if pair[1] else pair[:1])) for pair in zip_longest(read, written, fillvalue="")
    ]


def _row(trace: TranslationTrace, kind: AttentionKind, row: int) -> tuple[str, ...]:
    if kind.side is Side.ENCODER:
        return (display(trace.source_tokens[row]),)
    return display(trace.decoder_inputs[row]), display(trace.target_tokens[row])
