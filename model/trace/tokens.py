"""Facts about pieces of the vocabulary. Importable without torch."""

from __future__ import annotations


def is_byte(token: str) -> bool:
    """Whether a piece is one byte of a character that the vocabulary cannot spell, such as <0xC3>."""
    return len(token) == 6 and token.startswith("<0x") and token.endswith(">")


def is_symbol(token: str) -> bool:
    """Whether a piece is a control symbol: begin, end, padding, or a target language such as <2en>."""
    return token in ("<s>", "</s>", "<pad>", "<unk>") or (
        token.startswith("<2") and token.endswith(">") and token[2:-1].isalpha())
