"""What is done to every text before a tokenizer sees it."""

from __future__ import annotations

import unicodedata

from model.trace.language import Refusal

MAX_CHARACTERS = 10_000


def tidy(text: str) -> str:
    """What is translated: composed (NFC) and without outer white space. The training data is so too.
    ValueError for more characters than the limit: neither this nor the tokenizer is for megabytes."""
    if len(text) > MAX_CHARACTERS:
        raise Refusal("The text has {n} characters; the limit is {limit}.", n=len(text), limit=MAX_CHARACTERS)
    return unicodedata.normalize("NFC", text).strip()
