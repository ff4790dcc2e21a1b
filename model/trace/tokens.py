"""Facts about pieces of the vocabulary. Importable without torch."""

from __future__ import annotations

import re

_SYMBOLS = frozenset(("<s>", "</s>", "<pad>", "<unk>", "<mask>"))
# A language as each family writes it: ours <2en>, Marian >>eng<<, M2M100 __en__, NLLB eng_Latn, mBART en_XX.
_LANGUAGE = re.compile(
    r"<2[^\W\d_]+>|>>[A-Za-z][A-Za-z0-9_]*<<|__[a-z]{2,3}__|[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}")


def is_byte(token: str) -> bool:
    """Whether a piece is one byte of a character that the vocabulary cannot spell, such as <0xC3>."""
    return len(token) == 6 and token.startswith("<0x") and token.endswith(">")


def is_symbol(token: str) -> bool:
    """Whether a piece is a control symbol: begin, end, padding, or a target language such as <2en>."""
    return token in _SYMBOLS or _LANGUAGE.fullmatch(token) is not None
